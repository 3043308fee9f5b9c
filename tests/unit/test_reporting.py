"""Tables and figures: every number of a small table by hand, its shapes for people, and what must not happen."""

import csv
import json
import math
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.errors import EncoreError
from encore.evaluation import scores, significance
from encore.evaluation.scores import Scored
from encore.evaluation.significance import Difference
from encore.provenance.manifest import MANIFEST, describe
from encore.reporting import cells, forest, html, latex, layout, markdown, tidy, verdicts
from encore.reporting.cells import Grid
from encore.reporting.comparisons import Comparison
from encore.reporting.sheet import sheet
from encore.storage import write_json

QUERIES = [f"q{number}" for number in range(40)]
CLUSTERS = [f"m{number // 4}" for number in range(40)]
NUMERIC = ("reported", "reproduced", "sd", "seeds", "tie", "delta", "interval", "p_", "detectable", "queries")
GAINS = {"none": 0.0, "control": 0.02, "mlm": 0.02, "ict": 0.25}


def write_scores(folder: Path, gain: float, seed: int, answered: int = 40) -> str:
    generator = np.random.default_rng(seed)
    values = np.clip(0.3 + gain + 0.02 * generator.normal(size=40), 0, 1)
    values[answered:] = 0
    there = np.arange(40) < answered
    found = {
        ("test", "RR@10"): Scored(QUERIES, CLUSTERS, values, values - 0.001, values, there),
        ("graded", "nDCG@10"): Scored(
            QUERIES[:8], CLUSTERS[:8], values[:8] / 2, values[:8] / 2, values[:8] / 2, there[:8]
        ),
    }
    scores.write(folder, found)
    outputs = {scores.FILE: describe(folder / scores.FILE)}
    write_json(folder / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})
    return str(folder)


def plan(tmp_path: Path, seeds: int = 5, **changes: Any) -> dict[str, Any]:
    """One setting with BM25, none, control and two objectives, and a setting whose only row was not run."""
    roles = {"none": "none", "control": "control"}
    rows: list[dict[str, Any]] = [
        {"id": "bm25", "label": "BM25", "setting": "BM25 negatives", "system": "bm25", "role": "baseline"}
        | {"seeds": [{"seed": None, "scores": write_scores(tmp_path / "bm25", 0.1, 99, answered=38)}]}
    ]
    for name, gain in GAINS.items():
        folders = [
            {"seed": seed, "scores": write_scores(tmp_path / f"{name}-s{seed}", gain, 10 * seed + len(name))}
            for seed in range(seeds)
        ]
        row = {"id": name, "label": name.upper(), "setting": "BM25 negatives", "system": f"tiny+{name}"}
        rows.append(row | {"role": roles.get(name, "objective"), "seeds": folders})
    rows.append({"id": "seed", "label": "SEED & co_1", "setting": "Copied", "role": "objective"})
    column = {"dataset": "pydocs", "collection": "pydocs-1a2b3c4d"}
    table = {
        "name": "table1",
        "paper": "encore",
        "title": "A <small> table",
        "dataset_labels": {"pydocs": "Python documentation"},
        "rows": rows,
        "columns": [
            column | {"id": "rr", "label": "RR@10", "split": "test", "measure": "RR@10", "primary": True},
            column | {"id": "ndcg", "label": "nDCG@10", "split": "graded", "measure": "nDCG@10"},
        ],
        "significance": {"comparators": ["none", "control", "mlm"], "family": "holm"},
        "notes": ["A note of the plan."],
        "stand_in": True,
    }
    return table | changes


def grid_of(table: dict[str, Any]) -> Grid:
    return cells.grid(layout.Layout.model_validate(table))


def lines_of(folder: Path, grid: Grid) -> dict[tuple[str, str], dict[str, str]]:
    tidy.write(folder / "t.csv", grid)
    with (folder / "t.csv").open(newline="") as file:
        return {(line["row"], line["measure"]): line for line in csv.DictReader(file)}


def by_seed(table: dict[str, Any], row: str) -> np.ndarray:
    """RR@10 [queries, seeds] of a row, straight from its files."""
    folders = [seed["scores"] for seed in next(one for one in table["rows"] if one["id"] == row)["seeds"]]
    return np.stack([scores.read(Path(folder))["test", "RR@10"].values for folder in folders], axis=1)


def test_each_number_of_a_line_is_the_one_computed_by_hand(tmp_path: Path) -> None:
    table = plan(tmp_path)
    line = lines_of(tmp_path, grid_of(table))["ict", "RR@10"]
    ours, control = (by_seed(table, name) for name in ("ict", "control"))
    difference = significance.clustered(ours - control, CLUSTERS)
    assert float(line["reproduced"]) == pytest.approx(ours.mean(), abs=1e-11)
    assert float(line["sd"]) == pytest.approx(ours.mean(axis=0).std(ddof=1), abs=1e-11)
    assert float(line["delta_control"]) == pytest.approx((ours - control).mean(), abs=1e-11)
    assert (float(line["interval_low"]), float(line["interval_high"])) == pytest.approx(
        difference.interval(), abs=1e-11
    )
    assert float(line["p_control"]) == pytest.approx(difference.p, rel=1e-9)
    one_seed = significance.paired_t(ours[:, 0] - control[:, 0])
    assert float(line["p_ttest_one_seed_control"]) == pytest.approx(one_seed, rel=1e-9)
    assert float(line["tie_low"]) == pytest.approx(ours.mean() - 0.001, abs=1e-11)
    assert float(line["tie_high"]) == float(line["reproduced"])
    shown = ("seeds", "queries_judged", "queries_answered", "markers", "verdict", "collection", "reported")
    assert [line[name] for name in shown] == ["5", "40", "40", "†‡§", "holds here", "pydocs-1a2b3c4d", ""]


def test_the_header_is_the_contract(tmp_path: Path) -> None:
    header = list(lines_of(tmp_path, grid_of(plan(tmp_path, seeds=1)))["ict", "RR@10"])
    assert " ".join(header) == (
        "paper table row label setting system dataset split measure reported reproduced sd seeds tie_low tie_high "
        "delta_none delta_control delta_mlm interval_low interval_high p_none p_control p_mlm "
        "p_holm_none p_holm_control p_holm_mlm p_ttest_one_seed_none p_ttest_one_seed_control p_ttest_one_seed_mlm "
        "p_randomisation_none p_randomisation_control p_randomisation_mlm markers detectable "
        "queries_judged queries_answered verdict collection"
    )


def test_a_missing_value_is_empty_and_never_zero(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, grid_of(plan(tmp_path, seeds=1)))
    copied = lines["seed", "RR@10"]
    assert {copied[name] for name in copied if name.startswith(NUMERIC)} == {""}
    assert copied["verdict"] == verdicts.UNTESTED
    assert (lines["bm25", "RR@10"]["seeds"], lines["ict", "RR@10"]["sd"]) == ("", "")
    assert (lines["bm25", "RR@10"]["queries_answered"], lines["bm25", "RR@10"]["queries_judged"]) == ("38", "40")
    assert lines["mlm", "RR@10"]["delta_mlm"] == ""


def test_holm_corrects_objectives_by_comparators_on_the_primary_measure_only(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, grid_of(plan(tmp_path)))
    pairs = [("mlm", "none"), ("mlm", "control"), ("ict", "none"), ("ict", "control"), ("ict", "mlm")]
    expected = significance.holm([float(lines[row, "RR@10"][f"p_{other}"]) for row, other in pairs])
    found = [float(lines[row, "RR@10"][f"p_holm_{other}"]) for row, other in pairs]
    assert found == pytest.approx(expected, rel=1e-9)
    assert lines["control", "RR@10"]["p_none"] != ""
    for outside in (("control", "RR@10"), ("ict", "nDCG@10")):
        assert lines[outside]["p_holm_none"] == lines[outside]["markers"] == lines[outside]["verdict"] == ""


def test_fewer_than_five_seeds_give_no_verdict_but_numbers(tmp_path: Path) -> None:
    line = lines_of(tmp_path, grid_of(plan(tmp_path, seeds=4)))["ict", "RR@10"]
    assert line["verdict"] == "too few seeds"
    assert float(line["delta_control"]) > 0.2


def comparison(mean: float, p_holm: float, seeds: int = 5) -> Comparison:
    return Comparison(Difference(mean, 0.01, seeds - 1, p_holm / 6, seeds), 1.0, 1.0, p_holm, family=6)


@pytest.mark.parametrize(
    ("none", "control", "word"),
    [
        (comparison(0.1, 0.01), comparison(0.1, 0.01), "holds here"),
        (comparison(0.1, 0.01), comparison(0.1, 0.06), "not distinguishable"),
        (comparison(0.1, 0.06), comparison(0.1, 0.01), "not distinguishable"),
        (comparison(0.1, 0.01), comparison(-0.1, 0.01), "fails here"),
        (comparison(0.1, 0.01), comparison(0.1, 0.01, seeds=4), "too few seeds"),
    ],
)
def test_a_gain_must_hold_over_none_and_over_control(none: Comparison, control: Comparison, word: str) -> None:
    assert verdicts.verdict([none, control], stand_in=True) == word
    papers = {"holds here": "reproduced", "fails here": "contradicted"}
    assert verdicts.verdict([none, control], stand_in=False) == papers.get(word, word)


def test_wrong_verdicts_stay_under_the_stated_rate() -> None:
    """Planted truth: three objectives that change nothing, with query, module and seed luck. Any verdict is wrong."""
    generator = np.random.default_rng(11)
    member = generator.integers(0, 15, 60)
    clusters = [f"m{number}" for number in member]
    wrong = 0
    for _ in range(1000):
        luck = 0.05 * generator.normal(size=(5, 15, 1))[:, member] + 0.2 * generator.normal(size=(5, 60, 1))
        runs = luck + 0.03 * generator.normal(size=(5, 1, 5)) + 0.1 * generator.normal(size=(5, 60, 5))
        pairs = [(row, other) for row in (2, 3, 4) for other in (0, 1)]
        found = [significance.clustered(runs[row] - runs[other], clusters) for row, other in pairs]
        corrected = significance.holm([one.p for one in found])
        tests = [Comparison(one, 1.0, 1.0, p, 6) for one, p in zip(found, corrected, strict=True)]
        words = {verdicts.verdict(tests[place : place + 2], stand_in=True) for place in (0, 2, 4)}
        wrong += words != {verdicts.OPEN}
    assert wrong / 1000 <= significance.SIGNIFICANT


def test_a_planted_gain_holds_and_a_planted_loss_fails(tmp_path: Path) -> None:
    table = plan(tmp_path)
    assert lines_of(tmp_path, grid_of(table))["ict", "RR@10"]["verdict"] == "holds here"
    for seed in next(row for row in table["rows"] if row["id"] == "mlm")["seeds"]:
        write_scores(tmp_path / "worse" / str(seed["seed"]), -0.2, seed["seed"])
        seed["scores"] = str(tmp_path / "worse" / str(seed["seed"]))
    line = lines_of(tmp_path, grid_of(table))["mlm", "RR@10"]
    assert (line["verdict"], line["markers"]) == ("fails here", "−†−‡")


def test_rows_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=1)
    table["rows"][4]["seeds"][0]["seed"] = 7
    with pytest.raises(EncoreError, match="share no seed"):
        grid_of(table)
    table["columns"][0]["measure"] = "R@100"
    with pytest.raises(EncoreError, match="has no R@100 on test, only nDCG@10 on graded, RR@10 on test"):
        grid_of(table)


def test_seeds_judged_on_other_queries_are_refused(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=2)
    folder = tmp_path / "other"
    there = np.ones(2, bool)
    part = Scored(["q1", "q0"], ["m", "m"], *[np.zeros(2)] * 3, there)
    scores.write(folder, {("test", "RR@10"): part, ("graded", "nDCG@10"): part})
    table["rows"][4]["seeds"][1]["scores"] = str(folder)
    with pytest.raises(EncoreError, match="judged on different queries of pydocs"):
        grid_of(table)


def test_reported_numbers_come_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "reported.csv"
    rows = ["row_label,setting,dataset,metric,value", "BERT,bm25,marco,MRR@10,0.316", "BERT,mined,marco,MRR@10,0.335"]
    path.write_text("\n".join([*rows, "BERT,bm25,marco,R@1000,", ""]))
    table = plan(tmp_path, seeds=1, reported=str(path))
    table["rows"][1] |= {"reported_label": "BERT", "reported_setting": "bm25"}
    table["columns"][0] |= {"reported_dataset": "marco", "reported_metric": "MRR@10"}
    table["columns"][1] |= {"reported_dataset": "marco", "reported_metric": "R@1000"}
    lines = lines_of(tmp_path, grid_of(table))
    assert lines["none", "RR@10"]["reported"] == "0.316"
    assert lines["none", "nDCG@10"]["reported"] == lines["ict", "RR@10"]["reported"] == ""
    assert "(0.316)" in markdown.render(sheet(grid_of(table)))
    del table["rows"][1]["reported_setting"]
    with pytest.raises(EncoreError, match="2 reported numbers fit"):
        grid_of(table)


def test_numbers_are_short_and_read_back() -> None:
    assert [tidy.number(value) for value in (None, 0.1 + 0.2, 1.0, 1e-20)] == ["", "0.3", "1.0", "1e-20"]
    assert float(tidy.number(math.pi)) == pytest.approx(math.pi, rel=1e-11)


def test_markdown_is_aligned_and_marks_the_best(tmp_path: Path) -> None:
    text = markdown.render(sheet(grid_of(plan(tmp_path))))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 + 6
    assert len({len(line) for line in rows}) == 1
    best = next(line for line in rows if "ICT" in line)
    assert best.count("**") == 4
    assert "†‡§" in best
    assert "SEED & co\\_1" in text
    assert "40 queries judged (BM25 answered 38)" in text
    assert "does not confirm a paper" in text
    assert "A note of the plan." in text


def test_the_terminal_sees_no_markup_and_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text(markdown.render(sheet(grid_of(plan(tmp_path)))))
    shown = markdown.show(tmp_path, "t", bold="{}")
    rows = [line for line in shown.splitlines() if line.startswith("|") and "SEED" not in line]
    assert "*" not in shown
    assert len({len(line) for line in rows}) == 1
    assert str(tmp_path / "t.csv") in shown
    with pytest.raises(EncoreError, match="is missing"):
        markdown.show(tmp_path, "other")


def test_one_seed_is_said_below_the_table(tmp_path: Path) -> None:
    notes = sheet(grid_of(plan(tmp_path, seeds=1))).notes
    assert any("about these checkpoints, not about the objectives" in note for note in notes)
    assert any("needs 5 seeds" in note for note in notes)


def test_latex_has_whole_rows_and_no_bare_specials(tmp_path: Path) -> None:
    text = latex.render(sheet(grid_of(plan(tmp_path))))
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0].strip().splitlines()
    rows = [line for line in body if line.endswith(r"\\") and "multicolumn" not in line]
    assert len(rows) == 1 + 6
    assert {line.replace(r"\&", "").count("&") for line in rows} == {4}
    assert r"SEED \& co\_1" in text
    assert r"\textsuperscript{$\dagger$$\ddagger$\S{}}" in text
    assert not set(text) & set("†‡§±−’“”")


def with_costs(tmp_path: Path) -> dict[str, Any]:
    """The small table with columns of latency and size; BM25 and ICT were measured, the others not."""
    table = plan(tmp_path)
    hardware = {"processor": "A Processor", "gpu": None, "threads": 1}
    for name, median, size in (("bm25", 12.345, 3 * 2**20), ("ict", 1234.25, 2**20 // 2)):
        folder = tmp_path / f"latency-{name}"
        record = {"total": {"median_ms": median}, "index": {"bytes": size}, "hardware": hardware, "queries": 200}
        write_json(folder / "latency.json", record)
        outputs = {"latency.json": describe(folder / "latency.json")}
        write_json(folder / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})
        next(row for row in table["rows"] if row["id"] == name)["efficiency"] = str(folder)
    for kind, label in (("latency", "ms/query"), ("size", "Index, MiB")):
        column = {"id": kind, "label": label, "dataset": "pydocs", "split": "test", "collection": "pydocs-1a2b3c4d"}
        table["columns"].append(column | {"efficiency": kind})
    return table


def test_costs_stand_in_their_columns_and_nothing_is_tested_on_them(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, grid_of(with_costs(tmp_path)))
    ms, mib = "latency (ms a query)", "size (MiB)"
    assert [lines["bm25", name]["reproduced"] for name in (ms, mib)] == ["12.345", "3.0"]
    assert [lines["ict", name]["reproduced"] for name in (ms, mib)] == ["1234.25", "0.5"]
    others = NUMERIC[0:1] + NUMERIC[2:]
    for row, name in ((row, name) for row in ("bm25", "ict", "mlm", "seed") for name in (ms, mib)):
        assert {value for key, value in lines[row, name].items() if key.startswith(others)} == {""}
        assert lines[row, name]["markers"] == lines[row, name]["verdict"] == ""
    assert lines["mlm", ms]["reproduced"] == lines["seed", mib]["reproduced"] == ""


def test_costs_are_shown_in_all_formats_and_never_bold(tmp_path: Path) -> None:
    shown = sheet(grid_of(with_costs(tmp_path)))
    assert shown.header[:5] == ["", "RR@10", "nDCG@10", "ms/query", "Index, MiB"]
    entries = {line[0].text: line[3:5] for block in shown.blocks for line in block.lines}
    assert [entry.text for entry in entries["BM25"]] == ["12.3", "3.00"]
    assert [entry.text for entry in entries["ICT"]] == ["1,234", "0.50"]
    assert [entry.text for entry in entries["MLM"]] == ["", ""]
    assert not any(entry.bold or entry.marker for line in entries.values() for entry in line)
    for text in (markdown.render(shown), latex.render(shown), html.render(shown)):
        assert "12.3" in text
        assert "A Processor, 1 thread" in text
    assert sum("ms/query" in note for note in shown.notes) == 1


def test_without_a_control_no_difference_to_it_is_announced(tmp_path: Path) -> None:
    table = plan(tmp_path)
    table["rows"] = [row for row in table["rows"] if row["id"] != "control"]
    shown = sheet(grid_of(table))
    assert shown.header == ["", "RR@10", "nDCG@10"]
    assert any("†" in entry.marker for block in shown.blocks for line in block.lines for entry in line)


def test_a_damaged_measurement_is_one_clear_line(tmp_path: Path) -> None:
    table = with_costs(tmp_path)
    (tmp_path / "latency-ict" / "latency.json").write_text('{"total": {}}')
    with pytest.raises(EncoreError, match=r"latency-ict/latency\.json is no measurement"):
        grid_of(table)


class Page(HTMLParser):
    """Counts the cells of each row and notices anything that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[int] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append(0)
        if tag in {"td", "th"}:
            self.rows[-1] += int(dict(attrs).get("colspan") or 1)
        self.fetched += [name for name, _ in attrs if name in {"src", "href"}]


def test_html_is_one_whole_page(tmp_path: Path) -> None:
    text = html.render(sheet(grid_of(plan(tmp_path))))
    page = Page()
    page.feed(text)
    assert page.rows == [5] * 9
    assert page.fetched == []
    assert "A &lt;small&gt; table" in text
    assert "<small>" not in text
    assert "url(" not in text


def test_the_figure_says_what_its_data_says_and_is_the_same_twice(tmp_path: Path) -> None:
    grid = grid_of(plan(tmp_path))
    for folder in ("a", "b"):
        forest.draw(tmp_path / folder, grid)
    for ending in ("png", "svg", "csv"):
        first, second = ((tmp_path / folder / f"table1.{ending}").read_bytes() for folder in ("a", "b"))
        assert first == second
    with (tmp_path / "a" / "table1.csv").open(newline="") as file:
        arms = list(csv.DictReader(file))
    assert [(arm["label"], arm["significant"]) for arm in arms] == [("MLM", "0"), ("ICT", "1")]
    line = lines_of(tmp_path, grid)["ict", "RR@10"]
    assert [arms[1][name] for name in ("difference", "interval_low", "interval_high")] == [
        line[name] for name in ("delta_control", "interval_low", "interval_high")
    ]


def test_a_figure_without_anything_to_compare_is_refused(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=1, significance=None)
    with pytest.raises(EncoreError, match="nothing to draw"):
        forest.draw(tmp_path, grid_of(table))
    assert "Verdict" not in sheet(grid_of(table)).header


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, f"workflow/scripts/{script}.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": "src", "MPLCONFIGDIR": "/tmp"})


def test_the_programs_write_files_and_manifests_and_check_their_scores(tmp_path: Path) -> None:
    path = tmp_path / "table1.json"
    path.write_text(json.dumps(plan(tmp_path, seeds=1)))
    for script, endings in (("table", {"csv", "md", "tex", "html"}), ("figure", {"csv", "png", "svg"})):
        done = run(script, "--plan", path, "--output", tmp_path / script)
        assert done.returncode == 0, done.stderr
        manifest = json.loads((tmp_path / script / "table1.manifest.json").read_text())
        assert set(manifest["outputs"]) == {f"table1.{ending}" for ending in endings}
        assert len(manifest["inputs"]) == 5
        assert manifest["spec"] == json.loads(path.read_text())
    with (tmp_path / "ict-s0" / scores.FILE).open("ab") as file:
        file.write(b"!")
    done = run("table", "--plan", path, "--output", tmp_path / "again")
    assert done.returncode == 1
    assert "ict-s0/scores.parquet has" in done.stderr
    assert not (tmp_path / "again").exists()


def test_a_wrong_plan_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="is missing"):
        layout.read(tmp_path / "none.json", layout.Layout)
    (tmp_path / "t.json").write_text('{"name": "t", "paper": "p", "title": "", "rows": [], "columns": [{"id": "x"}]}')
    with pytest.raises(EncoreError, match=r"columns\.0\.label: Field required"):
        layout.read(tmp_path / "t.json", layout.Layout)

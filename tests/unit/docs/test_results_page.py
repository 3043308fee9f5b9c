"""Pages with results are rendered from recorded runs, and records are as they were recorded."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from encore.commands.audit.findings import Finding
from encore.errors import EncoreError
from encore.products.catalogue import load_plan
from encore.products.targets import kind_of
from tests.support.results_pages import JUDGE, PROGRAM, RECORDING

ROOT = Path(__file__).parents[3]


RECORDS = PROGRAM.records()
FIVE = RECORDS["five-seeds"]


@pytest.fixture(scope="module")
def rendered():
    return PROGRAM.rendered()


def test_pages_equal_the_records(rendered):
    for path, text in rendered.items():
        assert path.read_text() == text, "run `make results`"


def test_results_are_pages_of_at_most_ten_screens(rendered):
    """Some 1,300 words, tables alike; every claim of the papers is on one of them."""
    pages = {path.stem: text for path, text in rendered.items() if path.stem.startswith("results")}
    assert len(pages) > 10
    assert {name for name, text in pages.items() if len(re.findall(r"\S*\w\S*", text)) > 1300} == set()
    claims = re.findall(r"^\| (C\d+): ", "".join(pages[name] for name, *_ in PROGRAM.CLAIMS), re.M)
    assert len(claims) == len(set(claims)) == 126


def test_a_link_to_a_section_leads_to_the_page_that_has_it():
    text = "<!-- page: a -->\n# One\n\n[x](#two-b), [y](#one)\n<!-- page: b -->\n# T\n\n## Two, b\n"
    assert PROGRAM.pages_of(text) == {"a": "# One\n\n[x](b.md#two-b), [y](#one)\n", "b": "# T\n\n## Two, b\n"}


def test_a_number_changed_by_hand_is_found(tmp_path):
    record = tmp_path / "demo"
    for path in RECORDS["demo"].folder.rglob("*.*"):
        (record / path.relative_to(RECORDS["demo"].folder)).parent.mkdir(parents=True, exist_ok=True)
        (record / path.relative_to(RECORDS["demo"].folder)).write_bytes(path.read_bytes())
    table = record / "tables/table1.md"
    table.write_text(table.read_text().replace("0.428", "0.438"))
    (record / "tables/table9.md").write_text("added")
    assert JUDGE.altered(record) == ["tables/table1.md", "tables/table9.md"]


def test_the_tables_for_reading_and_for_programs_have_the_same_numbers():
    """``value`` reads the CSV; each of its numbers is in the row of the Markdown."""
    for record in RECORDS.values():
        for path in sorted((record.folder / "tables").rglob("*.csv")):
            table = str(path.relative_to(record.folder / "tables").with_suffix(""))
            rows = [line.split("|") for line in record.table(table).splitlines()]
            shown = {(row[1].strip(), re.split(r"±| \(", cell)[0].strip(" *†‡§−")) for row in rows for cell in row[2:]}
            cells = (
                record.data(f"tables/{table}").query("column not in ['latency', 'size']").dropna(subset="reproduced")
            )
            assert len(cells) >= 6
            for cell in cells.itertuples():
                digits = 2 if cell.measure.startswith("vectors") else 3
                number = f"{cell.reproduced:.{digits}f}"
                if table.startswith("two_tower/"):  # in percent, as the paper prints it
                    number = f"{100 * cell.reproduced:.2f}"
                assert (cell.label, number) in shown, (table, cell.label, cell.column)


def test_a_verdict_is_not_shown_for_tests_that_were_not_judged(monkeypatch):
    judged, changed, added = PROGRAM.claims_of(FIVE)
    assert changed.empty
    assert {"C02", "C08", "C119"} <= set(judged.id)
    others = set(added) - set(PROGRAM.about_amounts(added))
    assert others == {"C35", "C52", "C71", "C84", "C120", "C127", "C128"}, "the page says why these are not judged"
    tests = PROGRAM.tests_of_claims()
    monkeypatch.setattr(PROGRAM, "tests_of_claims", lambda: tests | {"C02": "other"})
    again, other, _ = PROGRAM.claims_of(FIVE)
    assert set(judged.id) - set(again.id) == set(other.id) == {"C02"}


def test_the_readme_counts_the_recorded_verdicts_and_the_page_explains_those_that_contradict_a_paper():
    judged, _, added = PROGRAM.claims_of(FIVE)
    verdicts = judged.set_index("id").verdict
    found, untested = len(verdicts) + len(added), int((verdicts == "not testable here").sum()) + len(added)
    text = " ".join((ROOT / "README.md").read_text().split())
    counts = re.search(r"verdicts on (\d+) of the (\d+) claims\].*?; (\d+) cannot", text)
    assert tuple(map(int, counts.groups())) == (found - untested, found, untested)

    page = (ROOT / "docs/results-claims.md").read_text()
    explained = set(re.findall(r"C\d+", " ".join(re.findall(r"\*\*((?:C\d+[, ]*)+)\*\*", page))))
    assert explained >= set(verdicts[verdicts.isin(["fails here", "premise not met"])].index)


def test_the_trainings_under_more_seeds_are_outside_their_interval():
    low, high = json.loads(RECORDS["ten-seeds"].expected("table1", "Further MLM", "rr10", "BM25 negatives"))
    more = RECORDS["more-seeds"].trained("table1", "mlm", "rr10", "BM25 negatives")
    assert more.keys() == {10, 11}
    assert not any(low <= float(value) <= high for value in more.values()), "the page says so"


def test_the_page_names_what_claims_left_out_and_sums_chance():
    page, listed = ((ROOT / f"docs/{name}.md").read_text() for name in ("results-claims", "results-claims-bow"))
    assert re.search(r"^\| C31: .* \| holds here \| 30 of 30, 60 left out \|", listed, re.M)
    claims = FIVE.data("claims").dropna(subset="chance")
    agree = claims.verdict.isin(["holds here", "same direction"]).sum()
    told = f"Of {len(claims)} claims with a chance {agree} agree with the estimates; {claims.chance.sum():.1f} would"
    assert told in " ".join(page.split())


def test_marks_that_another_row_under_the_same_name_hides_are_named(tmp_path):
    """A second row of one model counts in the correction: .03 is multiplied by two, and without that row by one."""
    blank = {f"{kind}_{name}": None for kind in ("p", "p_holm", "delta") for name in ("none", "control", "mlm")}
    blank |= {"column": "rr10", "delta_mlm": 0.1}
    rows = [
        blank | {"row": name, "label": name.upper(), "p_mlm": p, "p_holm_mlm": adjusted}
        for name, p, adjusted in (("ict", 0.03, 0.06), ("ed", 0.4, 0.4), ("bow", 0.001, 0.003))
    ]
    (tmp_path / "tables").mkdir()
    (tmp_path / "run.json").write_text("{}")
    pd.DataFrame(rows).to_csv(tmp_path / "tables/t.csv", index=False)
    (changed,) = PROGRAM.Record(tmp_path).without("t", "rr10", "ed").to_dict("records")
    assert changed == {"label": "ICT", "comparator": "mlm", "side": "above", "p": 0.03, "was": 0.06}
    assert PROGRAM.Record(tmp_path).without("t", "rr10", "none of them").empty


def test_the_page_says_that_the_league_has_one_model_twice(rendered):
    """RetroMAE's numbers are those of enhanced decoding, to the digit, in every measure under every seed."""
    values = pd.read_csv(RECORDS["league"].folder / "per_seed.csv").set_index("row")[["column", "seed", "value"]]
    assert values.loc["retromae"].reset_index(drop=True).equals(values.loc["ed"].reset_index(drop=True))
    page = rendered[ROOT / "docs/results-league.md"].partition("## The league with ten seeds")[2]
    assert "23 pre-trainings are different, 14 of which gain" in page
    assert "ICT + MLM (COSTA's) is significantly above further MLM (p 0.040, and 0.054 in the table)" in page


@pytest.mark.slow
def test_a_record_of_the_pages_is_made_by_its_name_alone(monkeypatch):
    given = []
    done = SimpleNamespace(returncode=0)
    monkeypatch.setattr(RECORDING.subprocess, "run", lambda command, check: given.append(command) or done)
    for name, (config, products) in RECORDING.RECORDINGS.items():
        assert RECORDING.make(name) == Path(config)
        targets, plan = [f"results/{product}" for product in products], PROGRAM.load_plan(ROOT / config)
        assert given[-1] == ["snakemake", *targets, "--profile", "local", "--configfile", config]
        assert all(kind_of(plan, target) for target in targets), name
    done.returncode = 1
    with pytest.raises(EncoreError, match="Snakemake failed, so demo is not recorded"):
        RECORDING.make("demo")
    with pytest.raises(EncoreError, match="no page shows a record 'mine'"):
        RECORDING.make("mine")


def test_runs_whose_files_were_removed_are_counted_and_nothing_else_is_forgiven():
    run, scores = "results/runs/bm25-1/test-1", "results/scores/bm25-1/test-1"
    removed = [Finding(run, f"{run}/{file} is missing") for file in ("run.npz", "run.trec.gz")]
    bad = [
        Finding(run, f"{run}/manifest.json is missing: the artifact was not finished"),
        Finding(run, f"{run}/run.npz was altered: its sha256 is not the one in its manifest"),
        Finding(scores, f"{scores}/scores.npz is missing"),
    ]
    assert RECORDING.without_removed_runs([removed[0], *bad, removed[1]]) == (bad, 1)
    assert RECORDING.without_removed_runs(bad) == (bad, 0)


def test_a_model_with_two_words_is_named_where_the_smaller_family_gives_the_better_one():
    """Table 1's models are among those of the table of objectives, which corrects for more of them."""
    assert RECORDS["ten-seeds"].two_words("table1", "objectives") == ["BFS"]
    headline = (ROOT / "docs/results-table1.md").read_text().split("- **What holds.**")[1].split("\n- ")[0]
    assert "but BFS are above" in headline
    assert "the larger family of tests counts" in headline


@pytest.mark.usefixtures("at_the_root")
def test_published_models_were_recorded_from_the_rows_that_are_declared():
    record = RECORDS["real-zero-shot"]
    plan = load_plan(Path(record.run["config"]))
    declared = plan.catalogue.tables["real/zero-shot"]
    known = {
        (row.id, plan.resolve.canonical(row.system.format(**column.vars)))
        for row in declared.rows
        for column in declared.columns
        if column.dataset
    }
    cells = record.data("tables/real/zero-shot").dropna(subset=["reproduced", "system"])
    assert len({*zip(cells.row, cells.system, strict=True)}) >= len(declared.rows)
    assert {*zip(cells.row, cells.system, strict=True)} <= known


def test_the_page_has_the_known_numbers_that_were_recorded():
    found = RECORDS["checks"].data("checks")
    assert set(found.verdict) == {"agrees"}
    assert list(found.system) == ["bm25", "bm25", "anserini"]
    found = found[found.system == "bm25"].set_index("measure")
    published, ours = (
        [f"{found[column][measure]:.4f}" for measure in ("AP", "P@30")] for column in ("published", "ours")
    )
    row = f"AP {published[0]}, P@30 {published[1]} (Anserini) | {', '.join(ours)} |"
    assert row in (ROOT / "docs/real-data.md").read_text()


def test_a_run_that_others_published_is_a_row_next_to_our_bm25():
    """As the page says: alike in P@30 for each query, and 0.0001 lower in nDCG@10."""
    record = RECORDS["checks"]
    cells = record.data("tables/real/published-run").query("row == 'anserini'").set_index("column")
    assert set(cells.origin) == {"run of others"}
    assert (cells.queries_answered == 52).all()
    queries = pd.read_csv(record.folder / "tables/real/published-run.queries.csv.gz", index_col=["query", "cluster"])
    ours, theirs = queries.to_numpy().T
    assert (ours == theirs).all()
    assert round(cells.delta_bm25["ndcg10"], 4) == -0.0001
    assert "a run that others made (castorini/anserini at 81e3414" in record.table("real/published-run", notes=True)


def test_published_models_are_told_as_they_were_tested_against_bm25():
    """all-MiniLM-L6-v2 is below it on SQuAD alone, the checkpoint on all three."""
    cells = RECORDS["real-zero-shot"].data("tables/real/zero-shot").dropna(subset="p_holm_bm25")
    below = cells[(cells.delta_bm25 < 0) & (cells.p_holm_bm25 < 0.05)]
    assert below.groupby("row").column.agg(set).to_dict() == {
        "checkpoint": {"squad-r10", "cranfield-ndcg10", "cacm-ndcg10"},
        "minilm": {"squad-r10"},
    }
    assert len(cells) == 6
    assert not ((cells.delta_bm25 > 0) & (cells.p_holm_bm25 < 0.05)).any()

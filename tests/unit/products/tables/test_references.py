"""Released runs next to rows of a table: what is planned and refused, what is written, and an independent oracle."""

import csv
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from encore.data.collection import Collection
from encore.data.rankings import Ranking, Run, rank
from encore.data.runs import describe as header
from encore.data.runs import write_run
from encore.data.trec_runs import write_trec
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol, judging, scores
from encore.evaluation.reproducibility import PERSISTENCE, order
from encore.plan.plan import Plan
from encore.products.kinds import BY_RULE
from encore.products.record import make_product
from encore.products.tables import reproduction
from encore.products.tables.plan import table_plan
from encore.products.tables.references import refuse_damaged
from encore.products.targets import check_target
from encore.storage.files import write_json
from encore.storage.manifest import MANIFEST, describe
from tests.support import inside
from tests.support.small_reads import table_reads

Make = Callable[..., Plan]
BASE = {"row": "BM25 negatives: none", "column": "rr10"}
ICT = {"row": "BM25 negatives: ict", "column": "rr10"}
SPEC = {"splits": {"test": {"RR": "RR@10", "nDCG": "nDCG@10"}}}
QUERIES = [f"q{number}" for number in range(30)]
DOCUMENTS = [f"d{number}" for number in range(60)]


@pytest.fixture
def released(tmp_path: Path) -> Path:
    path = tmp_path / "released.trec"
    path.write_text("q1 Q0 d1 1 2.5 theirs\nq1 Q0 d2 2 1.5 theirs\n")
    return path


def named(path: Path, *entries: dict[str, str]) -> dict[str, Any]:
    return {"references": {"table1": [{"run": str(path), **entry} for entry in entries]}}


@pytest.mark.usefixtures("at_the_root")
def test_a_released_run_is_in_the_digest_of_its_table_alone(make: Make, released: Path) -> None:
    plain, plan = make(), make(named(released, BASE, ICT | {"over": "none"}))
    before, content = table_plan(plain, "table1").dumped(), table_plan(plan, "table1").dumped()
    assert plain.made.keys() == plan.made.keys()
    assert "references" not in before
    assert content.keys() - before.keys() == {"references", "references_sha256", "depth"}
    base, ict = content["references"]
    assert (base["over"], ict["over"]) == (None, {"setting": "BM25 negatives", "row": "none"})
    assert ict["columns"] == ["rr10", "r100", "r1000"], "not that of the graded split, which is another run"
    cells = {(row["setting"], row["id"]): row["cells"] for row in content["rows"]}
    judged = plan.find(cells["BM25 negatives", "ict"]["rr10"]["reads"][0]["folder"])
    assert ict["ours"] == [{"seed": 0, "folder": judged.inputs["run"].folder}]
    folders = {str(folder) for folder in BY_RULE["reproduce"].slice(plan, "table1").reads()}
    assert folders >= {judged.folder, judged.inputs["run"].folder, judged.inputs["collection"].folder}
    assert len(folders) == 5
    released.write_text(released.read_text().replace("2.5", "3.5"))
    assert table_plan(plan, "table1").dumped()["references_sha256"] != content["references_sha256"]
    check_target(plan, "results/tables/table1.reproduction.csv")
    assert [each.folder for each in table_reads(plan, "table1")] == [
        each.folder for each in table_reads(plain, "table1")
    ]


@pytest.mark.usefixtures("at_the_root")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (ICT | {"run": "nowhere.trec"}, "references of table1: nowhere.trec: No such file or directory; give a file"),
        (ICT | {"row": "itc"}, "references.table1: no row 'itc' is built; did you mean ict"),
        (ICT | {"row": "ict"}, "row 'ict' is under BM25 negatives, Mined negatives; write `setting: ict`"),
        (ICT | {"column": "rr1"}, "there is no column 'rr1'; did you mean rr10"),
        (ICT | {"over": "none"}, "is over 'none', which has no run under column 'rr10'; name one"),
    ],
)
def test_what_names_nothing_is_refused(make: Make, released: Path, entry: dict[str, str], words: str) -> None:
    with pytest.raises(EncoreError) as refused:
        table_plan(make(named(released, entry)), "table1").dumped()
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("at_the_root")
def test_damaged_files_and_wrong_names_are_refused_before_any_job(make: Make, released: Path) -> None:
    plan = make(named(released, ICT))
    refuse_damaged(plan, ["table1"])
    released.write_text(released.read_text() + "q2\td1\t1\n")
    with pytest.raises(
        EncoreError,
        match=r"^references.table1: .*, line 3: 3 columns instead of TREC's six; bring another",
    ):
        refuse_damaged(plan, ["table1"])
    refuse_damaged(plan, ["table2"])
    released.write_text("")
    with pytest.raises(EncoreError, match=r"released.trec"):
        refuse_damaged(plan, ["table1"])
    with pytest.raises(
        EncoreError, match=r"references.tabel1: no such table in `tables:` of this run; did you mean table1"
    ):
        make({"references": {"tabel1": []}})
    with pytest.raises(
        EncoreError, match=r"^tables/table1.reproduction: this run's `references:` name no released run"
    ):
        check_target(make(), "results/tables/table1.reproduction.csv")


def drawn(seed: int, quality: float, count: int = 40) -> Run:
    """A run that finds each query's document, of the same number, the sooner the better it is."""
    generator = np.random.default_rng(seed)
    run = {}
    for number, query in enumerate(QUERIES):
        values = generator.normal(size=len(DOCUMENTS))
        values[number] += quality
        run[query] = rank(DOCUMENTS, values, count)
    return run


def collection(folder: Path) -> Path:
    lines = [json.dumps({"_id": query, "text": query}) for query in QUERIES]
    (folder / "qrels").mkdir(parents=True)
    with gzip.open(folder / "queries.jsonl.gz", "wt") as file:
        file.writelines(f"{line}\n" for line in lines)
    rows = "".join(f"{query}\td{number}\t1\n" for number, query in enumerate(QUERIES))
    (folder / "qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    outputs = {name: describe(folder / name) for name in ("queries.jsonl.gz", "qrels/test.tsv")}
    write_json(folder / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})
    return folder


def ours(tmp_path: Path, name: str, run: Run) -> dict[str, str]:
    """A run of ours and its scores."""
    folder, judged = tmp_path / f"run-{name}", tmp_path / f"scores-{name}"
    write_run(folder, run, header(name, collection="c", split="test", retrieval=[]))
    outputs = {name: describe(folder / name) for name in ("run.npz", "run.trec.gz")}
    write_json(folder / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})
    scores.write_scores(judged, judging.judge(run, Collection(tmp_path / "collection"), EvaluationProtocol(**SPEC)))
    outputs = {scores.FILE: describe(judged / scores.FILE)}
    write_json(judged / MANIFEST, {"spec": SPEC, "results": {}, "inputs": {}, "outputs": outputs})
    return {"run": str(folder), "scores": str(judged)}


RUNS = {
    "base": [drawn(seed, 1.0) for seed in (1, 2)],
    "better": [drawn(seed, 2.5) for seed in (3, 4)],
    "their-base": [drawn(5, 1.2)],
    "their-better": [drawn(6, 2.0, 50)],
}


def plan(tmp_path: Path) -> Path:
    """A table of two rows, each with two seeds and a released run; the second is over the first."""
    collection(tmp_path / "collection")
    rows, references = [], []
    for row in ("base", "better"):
        made = [ours(tmp_path, f"{row}{seed}", run) for seed, run in enumerate(RUNS[row])]
        theirs = tmp_path / f"their-{row}.trec.gz"
        write_trec(theirs, RUNS[f"their-{row}"][0], header("theirs", collection="c", split="test", retrieval=[]))
        reads = [{"seed": seed, "folder": each["scores"]} for seed, each in enumerate(made)]
        asked = {"system": row, "dataset": "small", "split": "test", "reads": reads}
        cells = {"rr": asked | {"value": "RR"}, "ndcg": asked | {"value": "nDCG"}}
        rows.append({"id": row, "label": row.upper(), "setting": "", "cells": cells})
        own = [{"seed": seed, "folder": each["run"]} for seed, each in enumerate(made)]
        one = {"setting": "", "row": row, "columns": ["rr", "ndcg"], "run": str(theirs), "ours": own}
        over = {"setting": "", "row": "base"} if row == "better" else None
        references.append(one | {"collection": str(tmp_path / "collection"), "over": over})
    columns = [{"id": "rr", "label": "MRR", "primary": True}, {"id": "ndcg", "label": "nDCG"}]
    table = {"name": "t", "paper": "encore", "title": "T", "rows": rows, "columns": columns}
    table |= {"references": references, "depth": 40, "references_sha256": {references[0]["run"]: "abc"}}
    write_json(tmp_path / "t.json", table)
    return tmp_path / "t.json"


def reciprocal(run: Run) -> np.ndarray[Any, Any]:
    """RR@10 by counting."""
    places = [list(run[query].documents[:10]) for query in QUERIES]
    return np.array([1 / (place.index(f"d{n}") + 1) if f"d{n}" in place else 0.0 for n, place in enumerate(places)])


def tau_and_overlap(one: Ranking, other: Ranking, depth: int) -> tuple[float, float]:
    """Pairs of ranks counted one by one; the overlap's weighted mean from sets made again at every rank."""
    left, right = one.documents[:depth], other.documents[:depth]
    union = sorted({*left, *right})
    first, second = [union.index(each) for each in left], [union.index(each) for each in right]
    signs = [np.sign(first[i] - first[j]) * np.sign(second[i] - second[j]) for i in range(depth) for j in range(i)]
    weights = PERSISTENCE ** np.arange(depth)
    shared = [len({*left[: k + 1]} & {*right[: k + 1]}) / (k + 1) for k in range(depth)]
    return float(np.mean(signs)), float((weights * shared).sum() / weights.sum())


def test_what_is_written_is_what_an_oracle_counts(tmp_path: Path) -> None:
    place = plan(tmp_path)
    said = make_product("reproduce", place, None, inside.files("reproduce", "t", tmp_path))
    assert said.startswith("table t: 8 lines in ")
    layout = reproduction.ReproductionSlice.model_validate(json.loads(place.read_text()))
    record = json.loads((tmp_path / "t.reproduction.manifest.json").read_text())
    assert record["stage"] == "reproduce"
    assert list(record["outputs"]) == ["t.reproduction.csv"]
    with (tmp_path / "t.reproduction.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    for line in (line for line in lines if line["measure"] == "RR"):
        seed = int(line["seed"])
        own, base = RUNS[line["row"]][seed], RUNS["base"][seed]
        theirs, their_base = RUNS[f"their-{line['row']}"][0], RUNS["their-base"][0]
        found = {name: float(value) for name, value in line.items() if _is_number(value)}
        counted = [tau_and_overlap(theirs[query], own[query], 40) for query in QUERIES]
        assert (found["tau_union"], found["rbo"]) == pytest.approx(tuple(np.mean(counted, axis=0)))
        a, b = reciprocal(own), reciprocal(theirs)
        assert (found["ours"], found["released"]) == pytest.approx((a.mean(), b.mean()))
        assert found["rmse"] == pytest.approx(math.sqrt(((a - b) ** 2).mean()))
        assert found["p_ttest"] == pytest.approx(stats.ttest_rel(a, b).pvalue)
        if line["row"] == "base":
            assert (line["over"], line["effect_ratio"], line["delta_relative_improvement"]) == ("", "", "")
            continue
        c, d = reciprocal(base), reciprocal(their_base)
        assert line["over"] == "BASE"
        assert found["effect_ratio"] == pytest.approx((a.mean() - c.mean()) / (b.mean() - d.mean()))
        assert found["delta_relative_improvement"] == pytest.approx(b.mean() / d.mean() - a.mean() / c.mean())
    notes = reproduction.reproduction_notes(tmp_path / "t.reproduction.csv", layout)
    assert [note.split(",")[0] for note in notes] == [
        f"{row} next to the released run their-{row.lower()}.trec.gz" for row in ("BASE", "BETTER")
    ]
    ratio = np.mean(
        [float(line["effect_ratio"]) for line in lines if (line["row"], line["column"]) == ("better", "rr")]
    )
    assert f"effect ratio {ratio:.3f} over BASE" in notes[1]
    assert "effect ratio" not in notes[0]


def test_the_measures_of_order_are_what_an_oracle_counts() -> None:
    one, other = drawn(7, 1.0), drawn(8, 3.0)
    for depth in (2, 7, 40):
        counted = [tau_and_overlap(other[query], one[query], depth) for query in QUERIES]
        found = order(one, other, depth)
        assert (found.tau, found.overlap) == pytest.approx(tuple(np.mean(counted, axis=0)))


def test_a_run_of_other_queries_is_refused_by_name(tmp_path: Path) -> None:
    content = json.loads(plan(tmp_path).read_text())
    other = tmp_path / "other.trec"
    other.write_text("z1 Q0 d1 1 2.5 theirs\n")
    content["references"][0]["run"] = str(other)
    layout = reproduction.ReproductionSlice.model_validate(content)
    with pytest.raises(EncoreError, match=r"other.trec and .*run-base0: the two runs answer no query in common"):
        reproduction.write_reproduction(tmp_path, layout, tmp_path)
    assert not (tmp_path / f"{layout.name}.reproduction.csv").exists()


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False

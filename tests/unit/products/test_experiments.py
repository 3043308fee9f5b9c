"""Runs of anybody, judged and compared in memory: by other means, in forms of other programs, and what is refused."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import encore
from encore.evaluation import check_from_files
from encore.evaluation.significance import clustered
from tests.support import inside
from tests.support.small_beir import build, write

GENERATOR = np.random.default_rng(5)
QRELS = {f"q{n}": {f"d{n}": 2, f"d{n + 1}": 1, "d0": 0} for n in range(40)}
DOCUMENTS = [f"d{n}" for n in range(45)]
MEASURES = ["nDCG@10", "RR", "AP", "R(rel=2)@5"]


def drawn(quality: float) -> dict[str, dict[str, float]]:
    """Scores, some tied, that are the higher for what is relevant the better the run is."""
    return {
        query: {name: round(GENERATOR.normal() + quality * judged.get(name, 0), 1) for name in DOCUMENTS}
        for query, judged in QRELS.items()
    }


RUNS = {"base": drawn(0.5), "better": drawn(1.5), "alike": drawn(0.5)}


def test_values_are_those_of_ir_measures_and_a_query_without_an_answer_counts_as_nothing() -> None:
    run = {query: scores for query, scores in RUNS["base"].items() if query != "q3"}
    queries, means = encore.evaluate(run, QRELS, MEASURES)
    expected = {name: dict.fromkeys(QRELS, 0.0) for name in MEASURES}
    for each in ir_measures.pytrec_eval.iter_calc(map(ir_measures.parse_measure, MEASURES), QRELS, run):
        expected[str(each.measure)][each.query_id] = each.value
    for name, own in queries.groupby("measure"):
        assert dict(zip(own["query"], own.value, strict=True)) == pytest.approx(expected[name])
        assert means[name] == pytest.approx(np.mean([*expected[name].values()]))
        assert list(own["query"][~own.answered]) == ["q3"]
    assert (queries.low < queries.high).any()
    assert ((queries.low <= queries.value) & (queries.value <= queries.high)).all()


def test_a_difference_between_the_two_evaluators_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_from_files, "TOLERANCE", -1.0)
    with pytest.raises(encore.EncoreError, match="for trec_eval"):
        encore.evaluate(RUNS["base"], QRELS)


def test_differences_are_tested_by_a_paired_t_test_over_queries_and_corrected_by_holm() -> None:
    table = encore.compare(RUNS, QRELS, MEASURES, baseline="base").set_index(["measure", "run"])
    values = {name: encore.evaluate(run, QRELS, MEASURES).queries for name, run in RUNS.items()}
    for measure in MEASURES:
        by_run = {name: own.value[own.measure == measure].to_numpy() for name, own in values.items()}
        tests = {name: stats.ttest_rel(by_run[name], by_run["base"]) for name in ("better", "alike")}
        first, second = sorted(tests, key=lambda name: tests[name].pvalue)
        holm = {first: min(1, 2 * tests[first].pvalue)}
        holm[second] = max(holm[first], tests[second].pvalue)
        for name, test in tests.items():
            row, (low, high) = table.loc[measure, name], test.confidence_interval()
            assert row.difference == pytest.approx(np.mean(by_run[name] - by_run["base"]))
            assert [row.low, row.high] == pytest.approx([low, high])
            assert [row.p, row.p_holm] == pytest.approx([test.pvalue, holm[name]])
            assert row.rmse == pytest.approx(np.sqrt(np.mean((by_run[name] - by_run["base"]) ** 2)))
            found = "not distinguishable" if holm[name] > 0.05 else "above" if row.difference > 0 else "below"
            assert row.verdict == found
    assert table.loc["nDCG@10"].verdict.to_dict() == {"base": "", "better": "above", "alike": "not distinguishable"}
    assert encore.compare(RUNS, QRELS, "RR@10")["run"].to_list() == ["base", "better", "alike"], "the first is it"


SEEDS = [drawn(quality) for quality in (1.0, 1.3, 0.8, 1.6)]


def by_query(run: Any, measure: str) -> np.ndarray:
    return encore.evaluate(run, QRELS, measure).queries.value.to_numpy()


def test_a_system_under_several_seeds_is_tested_over_queries_and_seeds_as_rows_of_tables_are() -> None:
    """One run of the baseline is paired with every seed, and its seeds with the same seeds of the other."""
    alike = [drawn(0.5) for _ in SEEDS]
    ours = np.stack([by_query(run, "AP") for run in SEEDS], axis=1)
    for base, theirs in (
        (RUNS["base"], by_query(RUNS["base"], "AP")[:, None]),
        (alike, np.stack([by_query(run, "AP") for run in alike], axis=1)),
    ):
        table = encore.compare({"base": base, "ours": SEEDS}, QRELS, "AP").set_index("run")
        apart, row = ours - theirs, table.loc["ours"]
        found = clustered(apart, list(QRELS))
        assert [one.freedom for one in found.components] == [39, 3], "of queries and of seeds"
        assert [row["mean"], row.difference] == pytest.approx([ours.mean(), apart.mean()])
        assert [row.p, row.low, row.high] == pytest.approx([found.p, *found.interval()])
        assert (row.seeds, row.verdict, row.answered) == (4, "above", 40)
        assert row.rmse == pytest.approx(np.sqrt((apart**2).mean()))


def test_seeds_that_all_answer_alike_give_the_paired_t_test_of_one() -> None:
    columns = ["difference", "low", "high", "p", "rmse", "verdict"]
    one, five = (
        encore.compare({"base": RUNS["base"], "ours": own}, QRELS, "AP").iloc[1] for own in (SEEDS[0], [SEEDS[0]] * 5)
    )
    assert five[columns].to_list() == pytest.approx(one[columns].to_list())
    with pytest.raises(encore.EncoreError, match="ours has 4 seeds, and base 2; give both the same"):
        encore.compare({"base": SEEDS[:2], "ours": SEEDS}, QRELS)


class ScoredDoc(NamedTuple):
    query_id: str
    doc_id: str
    score: float


class Qrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


def forms(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """The same run and judgments as other programs have them."""
    run = [(query, name, score) for query, scores in RUNS["base"].items() for name, score in scores.items()]
    judged = [(query, name, grade) for query, grades in QRELS.items() for name, grade in grades.items()]
    yield run, judged
    yield [ScoredDoc(*row) for row in run], [Qrel(*row) for row in judged]
    for columns, graded in (
        (["qid", "docno", "score"], ["qid", "docno", "label"]),
        (["q_id", "doc_id", "score"], ["q_id", "doc_id", "score"]),
        (["query_id", "doc_id", "score"], ["query_id", "doc_id", "relevance"]),
        (["query", "docid", "score"], ["query", "docid", "rel"]),
        (["query", "document", "score"], ["query-id", "corpus-id", "score"]),
    ):
        yield pd.DataFrame(run, columns=columns), pd.DataFrame(judged, columns=graded)
    frame = pd.DataFrame(run, columns=["qid", "docno", "score"])  # as PyTerrier gives it
    yield (
        frame.assign(docid=range(len(frame)), rank=0, query="words"),
        pd.DataFrame(judged, columns=["qid", "docno", "label"]),
    )
    (tmp_path / "run.gz").write_bytes(gzip.compress("".join(f"{q}\tQ0\t{d}\t7\t{s}\tx\n" for q, d, s in run).encode()))
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in judged))
    yield tmp_path / "run.gz", str(tmp_path / "qrels")
    yield encore.read_run(tmp_path / "run.gz"), QRELS


def test_runs_and_judgments_are_taken_in_the_forms_of_other_programs(tmp_path: Path) -> None:
    expected = encore.evaluate(RUNS["base"], QRELS, MEASURES).queries
    given = list(forms(tmp_path))
    for run, judged in given:
        pd.testing.assert_frame_equal(encore.evaluate(run, judged, MEASURES).queries, expected)
    assert len(given) == 10
    table = encore.compare({"seeds": [run for run, _ in given]}, QRELS, "AP")
    assert (table.seeds[0], table["mean"][0]) == (10, pytest.approx(expected.value[expected.measure == "AP"].mean()))
    run = [(int(query[1:]), int(name[1:]), score) for query, own in RUNS["base"].items() for name, score in own.items()]
    numbers = pd.DataFrame(run, columns=["qid", "docno", "score"])
    whole = {query[1:]: {name[1:]: float(grade) for name, grade in own.items()} for query, own in QRELS.items()}
    for given_run in (run, numbers):
        assert list(encore.evaluate(given_run, whole, "AP").queries["query"]) == [query[1:] for query in QRELS]


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ("pyterrier", ["qid", "docno", "rank", "score"]),
        ("ranx", ["q_id", "doc_id", "rank", "score"]),
        ("ir_measures", ["query_id", "doc_id", "rank", "score"]),
        ("trectools", ["query", "docid", "rank", "score"]),
    ],
)
def test_a_run_is_read_with_the_names_of_other_programs(tmp_path: Path, names: str, columns: list[str]) -> None:
    (tmp_path / "run").write_text("q1 Q0 d1 1 0.5 x\nq1 Q0 d2 2 0.75 x\n")
    found = encore.read_run(tmp_path / "run", names=names)
    assert list(found.columns) == columns
    assert [*map(str, found.dtypes)] == ["object", "object", "int64", "float64"]
    assert found["rank"].to_list() == ([0, 1] if names == "pyterrier" else [1, 2])
    assert encore.evaluate(found, {"q1": {"d1": 1}}, "RR").means["RR"] == 0.5
    with pytest.raises(encore.EncoreError, match="names 'pyterier' are unknown; did you mean pyterrier"):
        encore.read_run(tmp_path / "run", names="pyterier")


def test_an_empty_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.warns(UserWarning, match="run has no line: the run answers no query"):
        assert encore.read_run(tmp_path / "run").empty
    with pytest.raises(encore.EncoreError, match="the run answers no judged query: it has none, the judgments q0, q1"):
        encore.evaluate({}, QRELS)


def test_a_collection_gives_judgments_and_clusters(tmp_path: Path) -> None:
    rows = ({"_id": name, "text": f"words {name}", "metadata": {"cluster": "one"}} for name in ("q1", "q2"))
    queries = [json.dumps(row) for row in rows]
    made = build(write(tmp_path / "own", queries=queries), tmp_path / "made")
    run = {"q1": {"d1": 1.0}, "q2": {"d2": 1.0}}
    assert encore.evaluate(run, made, "AP", split="train").means["AP"] == 1
    assert list(encore.evaluate(run, tmp_path / "made", "AP").queries["query"]) == ["q2"]
    table = encore.compare({"a": run, "b": run}, made, "AP")
    assert table.verdict.to_list() == ["", "not testable here"]


@pytest.mark.parametrize(
    ("run", "judged", "options", "words"),
    [
        ({"q": 1.0}, QRELS, {}, "the run: query 'q' has 1.0; give numbers by document"),
        ([("q0", "d1")], QRELS, {}, "the run: ('q0', 'd1') is no query, document, score; give rows of these three"),
        ([("q0", "d1", "high")], QRELS, {}, "the run, row 1: the score 'high' is not a number"),
        ([("q0", "d1", float("nan"))], QRELS, {}, "the run: query q0: the score of document d1 is not a finite number"),
        ([("q0", "d1", 1), ("q0", "d1", 2)], QRELS, {}, "the run: query q0: a document occurs twice in one ranking"),
        ([(1.0, "d1", 1)], QRELS, {}, "the run, row 1: 1.0 is no id; give ids as texts"),
        (
            pd.DataFrame({"qid": ["q0"], "score": [1]}),
            QRELS,
            {},
            "the run has the columns qid, score (an index",
        ),
        (7, QRELS, {}, "the run: 7 is neither a dictionary, rows, a data frame nor a place"),
        (RUNS["base"], {"z": {"d1": 1}}, {}, "the run answers no judged query: it has q0, q1, the judgments z"),
        (RUNS["base"], {}, {}, "the judgments are empty; give some"),
        (RUNS["base"], {"q0": {"d1": 0.5}}, {}, "judgments, row 1: grade '0.5' is not a whole number"),
        (RUNS["base"], [("q0", "d1", 1), ("q0", "d1", 2)], {}, "row 2: 'q0' and 'd1' are judged twice, with other"),
        (RUNS["base"], QRELS, {"measures": "MRR@x"}, "measure 'MRR@x' is unknown"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_one_line(
    run: Any, judged: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(encore.EncoreError) as refused:
        encore.evaluate(run, judged, **options)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_of_runs_are_in_messages() -> None:
    with pytest.raises(encore.EncoreError, match="the baseline 'bm25' is none of the runs: base, better, alike"):
        encore.compare(RUNS, QRELS, baseline="bm25")
    with pytest.raises(encore.EncoreError, match=r"^theirs answers no judged query"):
        encore.compare({"base": RUNS["base"], "theirs": {"z": {"d": 1.0}}}, QRELS)
    with pytest.raises(encore.EncoreError, match="no run to compare"):
        encore.compare({}, QRELS)


def test_the_command_prints_what_python_gives(tmp_path: Path) -> None:
    for name, run in RUNS.items():
        lines = (f"{query} Q0 {of} 0 {score} x\n" for query, scores in run.items() for of, score in scores.items())
        (tmp_path / name).write_text("".join(lines))
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, own in QRELS.items() for d, g in own.items()))
    files = [str(tmp_path / name) for name in ("qrels", *RUNS)]
    done = inside.encore("compare", *files, "--measure", "RR@10", "AP", "--json")
    printed, expected = pd.read_json(io.StringIO(done.stdout)), encore.compare(RUNS, QRELS, ["RR@10", "AP"])
    pd.testing.assert_frame_equal(printed, expected, rtol=0, atol=1e-12)
    shown = inside.encore("compare", *files, "--measure", "RR@10").stdout
    assert [line.split()[:2] for line in shown.splitlines()[1:]] == [["RR@10", name] for name in RUNS]
    refused = inside.encore("compare", *files, files[1])
    assert refused.stderr == "error: a run is named twice; name each once\n"

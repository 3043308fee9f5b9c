"""ir-measures judges from the files: mistakes of Encore's in reading, in ranks and in formulas stop the job."""

import csv
import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.data.answer_matching import answering
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.rankings import Run, RunMatrices, rank
from encore.data.runs import describe, read_run, write_run
from encore.data.trec_runs import write_trec
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol, check_from_files, judging, measures, ranks
from encore.evaluation.check_from_files import check_scores
from encore.evaluation.scores import Scores
from encore.storage.files import write_json

GOLDEN = Path(__file__).parents[1] / "golden/trec_eval_at_1000.tsv"
DEPTH = 1000
NAMES = [f"{'dD'[number % 2]}{number // 2}" for number in range(4000)]  # d7 and D7 are two documents
MEASURES = {  # ours, and trec_eval's names with the grade from which documents count as relevant (-l)
    "RR": ("recip_rank", 1),
    "RR(rel=2)": ("recip_rank", 2),
    "AP": ("map", 1),
    "AP(rel=2)@600": ("map_cut_600", 2),
    "nDCG@10": ("ndcg_cut_10", 1),
    "nDCG@1000": ("ndcg_cut_1000", 1),
    "R@100": ("recall_100", 1),
    "R@1000": ("recall_1000", 1),
    "R(rel=2)@1000": ("recall_1000", 2),
    "P@1000": ("P_1000", 1),
    "Success@600": ("success_600", 1),
}
SPLITS = {"test": {said: said for said in (*MEASURES, "RR@10", "RR@600")}}


def world() -> tuple[Run, dict[str, dict[str, int]]]:
    """Twelve queries: 1,000 results in blocks of ties, graded and unjudged ones, relevant ones at all depths.

    One query has no answer, one nothing relevant, one its only relevant result behind rank 512; q8 and Q8 are two.
    """
    draw = random.Random(36)
    run: dict[str, Any] = {}
    grades: dict[str, dict[str, int]] = {}
    for query in (*(f"q{number}" for number in range(11)), "Q8"):
        names = sorted(NAMES, key=lambda _: draw.random())
        run[query] = rank(names[:DEPTH], [float(np.float32(int(400 * draw.random()) / 3)) for _ in range(DEPTH)])
        judged = sorted(names[: DEPTH + 200], key=lambda _: draw.random())[:80]
        grades[query] = {name: int(4 * draw.random()) for name in judged}
    grades["q3"] = dict.fromkeys(grades["q3"], 0)
    grades["q4"] = {run["q4"].documents[700]: 3, run["q4"].documents[5]: 0}
    del run["q5"]
    return run, grades


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection and a run in folders, with the run's text."""
    root = tmp_path_factory.mktemp("world")
    run, grades = world()
    judgments = [Judgment(query, name, grade) for query, its in grades.items() for name, grade in its.items()]
    corpus = [{"_id": name, "title": "", "text": "text"} for name in NAMES]
    write_collection(
        root / "collection",
        corpus,
        [{"_id": query, "text": query} for query in (*grades, "extra")],
        {"test": judgments},
    )
    last = f"q4\t{run['q4'].documents[700]}\t3".encode()  # ends with CRLF, as programs of other systems write
    path = root / "collection/qrels/test.tsv"
    path.write_bytes(path.read_bytes().replace(last + b"\n", last + b"\r\n"))
    assert path.read_bytes().count(b"\r\n") == 1
    header = describe("x", collection="collection", split="test", retrieval=[])
    (root / "run").mkdir()
    write_run(root / "run", run, header)
    write_trec(root / "run/run.trec.gz", run, header)
    write_json(root / "run/manifest.json", {"outputs": {}})
    return root


def judged(place: Path) -> Scores:
    return judging.judge(read_run(place / "run"), Collection(place / "collection"), EvaluationProtocol(splits=SPLITS))


def check(place: Path, scores: Scores, **options: Any) -> int:
    return check_scores(place / "run", place / "collection", EvaluationProtocol(splits=SPLITS), scores, **options)


def test_numbers_are_those_of_nists_trec_eval(place: Path) -> None:
    """``trec_eval`` 10.0 (usnistgov/trec_eval f425365), run on these files: ``-q -c -l LEVEL -m ... qrels run``."""
    with GOLDEN.open() as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    scores = judged(place)
    names = {theirs: ours for ours, theirs in MEASURES.items()}
    assert len(lines) == 12 * len(MEASURES)
    for line in lines:
        scored = scores["test", names[line["measure"], int(line["level"])]]
        value = scored.values[scored.queries.index(line["query"])]
        assert value == pytest.approx(float(line["value"]), abs=5.1e-5), line
    assert sum(0 < float(line["value"]) < 1 for line in lines) > 80
    assert check(place, scores) == 12


def test_a_run_without_text_is_read_from_its_matrices(place: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for name in ("run.npz", "manifest.json"):
        (tmp_path / "run" / name).write_bytes((place / "run" / name).read_bytes())
    (tmp_path / "collection").symlink_to(place / "collection")
    assert check(tmp_path, judged(place)) == 12


Plant = Callable[[pytest.MonkeyPatch], None]
COUNT, QRELS, VALUES, PLACES = ranks._counted, Collection.qrels, measures.values, RunMatrices.places


def counts(change: Callable[[Any, Any], Any]) -> Plant:
    """A mistake in what was found, and in how many documents are above each."""
    return lambda patch: patch.setattr(ranks, "_counted", lambda *given: change(*COUNT(*given)))


def judgments(change: Callable[[dict[str, dict[str, int]]], dict[str, dict[str, int]]]) -> Plant:
    """A mistake in reading judgments."""
    return lambda patch: patch.setattr(Collection, "qrels", lambda self, split: change(QRELS(self, split)))


def grades(change: Callable[[dict[str, int]], dict[str, int]]) -> Plant:
    """A mistake in reading the judgments of each query."""
    return judgments(lambda found: {query: change(its) for query, its in found.items()})


def without_crlf(collection: Collection, split: str) -> dict[str, dict[str, int]]:
    lines = (collection.folder / f"qrels/{split}.tsv").read_bytes().decode().split("\n")[1:-1]
    found: dict[str, dict[str, int]] = {}
    for query, document, grade in (line.split("\t") for line in lines):
        found.setdefault(query, {}).update({} if grade.endswith("\r") else {document: int(grade)})
    return found


MISTAKES: dict[str, Plant] = {
    "ranks begin with 2": counts(lambda found, above: (found, above + np.array([[1], [0], [0]]))),
    "ranks from 512 on are dropped": counts(lambda found, above: (found & (above[0] + above[2] < 512), above)),
    "ties are by ascending id": counts(lambda found, above: (found, np.stack([*above[:2], above[1] - above[2] - 1]))),
    "values are slightly off": lambda patch: patch.setattr(
        measures, "values", lambda measure, place: VALUES(measure, place) * (1 + 2e-9)
    ),
    "lines with CRLF are skipped": lambda patch: patch.setattr(Collection, "qrels", without_crlf),
    "grade 0 is relevant": grades(lambda its: {name: grade or 1 for name, grade in its.items()}),
    "ids are compared without case": grades(lambda its: {name.lower(): grade for name, grade in its.items()}),
    "queries are compared without case": lambda patch: patch.setattr(
        RunMatrices, "places", lambda self, queries: PLACES(self, [query.lower() for query in queries])
    ),
    "grades are cut to 1": grades(lambda its: {name: min(grade, 1) for name, grade in its.items()}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_ours_stops_the_job(place: Path, mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(place, judged(place))
    MISTAKES[mistake](monkeypatch)
    scores = judged(place)
    with pytest.raises(EncoreError, match=r"of query [qQ]\d+ of split 'test' is .* for Encore and .* for trec_eval"):
        check(place, scores)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found | {"extra": {NAMES[0]: 1}}, "query extra has a score and no judgment"),
        (
            lambda found: {query: found[query] for query in found if query != "q7"},
            "query q7 was judged and has no score",
        ),
        (lambda found: {query.lower(): found[query] for query in found}, "query Q8 was judged and has no score"),
    ],
    ids=["unjudged counted", "judged left out", "ids in lower case"],
)
def test_scored_queries_are_those_that_were_judged(
    place: Path, change: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Collection, "qrels", lambda self, split: change(QRELS(self, split)))
    monkeypatch.setattr(judging, "topics", lambda collection, split, *_: list(collection.qrels(split)))
    scores = judged(place)
    with pytest.raises(EncoreError, match=said):
        check(place, scores)


@pytest.fixture
def copied(place: Path, tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    for path in (place / "run").iterdir():
        (tmp_path / "run" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "collection").symlink_to(place / "collection")
    return tmp_path


def test_a_text_that_differs_from_the_matrices_is_found(copied: Path) -> None:
    scores, text = judged(copied), gzip.decompress((copied / "run/run.trec.gz").read_bytes()).decode().splitlines()
    for lines, said in (
        ([*text[:400], text[0], *text[400:]], "has document .* twice"),
        ([line for place, line in enumerate(text) if place % 1000 < 512], "for trec_eval"),
    ):
        (copied / "run/run.trec.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
        with pytest.raises(EncoreError, match=said):
            check(copied, scores)
    (copied / "run/run.trec.gz").write_bytes(gzip.compress("\n".join(text).encode()))
    with pytest.raises(EncoreError, match="ends within a line"):
        check(copied, scores)


@pytest.mark.parametrize("query", ["q5", "Q8"])  # one without a result, and the last of the last batch
def test_one_wrong_query_of_a_large_run_is_found(place: Path, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_from_files, "SMALL", 1000)
    monkeypatch.setattr(check_from_files, "AT_ONCE", 5)
    monkeypatch.setattr(check_from_files, "BLOCK", 5000)  # a query's results come in parts
    scores = judged(place)
    assert check(place, scores) == 12
    scored = scores["test", "AP"]
    scored.values[scored.queries.index(query)] += 1e-6
    with pytest.raises(EncoreError, match=f"AP of query {query} "):
        check(place, scores)


def test_a_query_that_the_judgments_lack_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = judging.topics
    monkeypatch.setattr(judging, "topics", lambda *given: [query.upper() for query in topics(*given)])
    with pytest.raises(EncoreError, match="query Q0 is asked and not judged"):
        judged(place)


def test_results_of_a_query_in_two_places_are_refused(copied: Path) -> None:
    scores, text = judged(copied), gzip.decompress((copied / "run/run.trec.gz").read_bytes()).splitlines(keepends=True)
    (copied / "run/run.trec.gz").write_bytes(gzip.compress(b"".join([*text[1:], text[0]])))
    with pytest.raises(EncoreError, match="results of query q0 are in two places"):
        check(copied, scores)


def test_a_querys_own_document_counts_as_not_retrieved(tmp_path: Path) -> None:
    corpus = [{"_id": name, "title": "", "text": "text"} for name in ("a", "b")]
    write_collection(tmp_path / "c", corpus, [{"_id": "a", "text": "a"}], {"test": [Judgment("a", "b", 1)]})
    (tmp_path / "r").mkdir()
    write_run(
        tmp_path / "r", {"a": rank(["a", "b"], [2, 1])}, describe("x", collection="c", split="test", retrieval=[])
    )
    write_json(tmp_path / "r/manifest.json", {})
    protocol = EvaluationProtocol(splits={"test": {"RR": "RR"}}, ignore_identical_ids=True)
    scores = judging.judge(read_run(tmp_path / "r"), Collection(tmp_path / "c"), protocol)
    assert scores["test", "RR"].values.tolist() == [1.0]
    assert check_scores(tmp_path / "r", tmp_path / "c", protocol, scores) == 1
    with pytest.raises(EncoreError, match=r"is 1\.0 for Encore and 0\.5"):
        check_scores(tmp_path / "r", tmp_path / "c", EvaluationProtocol(splits=protocol.splits), scores)


@pytest.fixture
def by_answers(tmp_path: Path) -> tuple[EvaluationProtocol, Scores]:
    """The second question's first passage has the answer only in its title, its second one in its text."""
    corpus = [{"_id": name, "title": "seven", "text": text} for name, text in (("a", "eight"), ("b", "it is seven"))]
    questions = [{"_id": name, "text": "?"} for name in ("q0", "q1", "q2")]
    answers = [{"_id": row["_id"], "answers": ["seven"]} for row in questions]
    asked = {"test": ["q0", "q1", "q2"]}
    write_collection(tmp_path / "c", corpus, questions, {}, answers=answers, questions=asked)
    (tmp_path / "r").mkdir()
    run = {"q0": rank(["b", "a"], [2, 1]), "q1": rank(["a", "b"], [2, 1])}  # q2 has no result
    write_run(tmp_path / "r", run, describe("x", collection="c", split="test", retrieval=[]))
    write_json(tmp_path / "r/manifest.json", {})
    splits = {"test": {"R@1": "Success@1", "RR@10": "RR@10"}}
    protocol = EvaluationProtocol(splits=splits, judged_by_answers=["test"])
    scores = judging.judge(read_run(tmp_path / "r"), Collection(tmp_path / "c"), protocol)
    return protocol, scores


def test_a_split_judged_by_answers_is_checked_too(
    by_answers: tuple[EvaluationProtocol, Scores], tmp_path: Path
) -> None:
    protocol, scores = by_answers
    assert scores["test", "RR@10"].values.tolist() == [1.0, 0.5, 0.0]
    assert check_scores(tmp_path / "r", tmp_path / "c", protocol, scores) == 3
    scores["test", "R@1"].values[1] = 1.0
    with pytest.raises(EncoreError, match=r"Success@1 of query q1 .* is 1\.0 for Encore and 0\.0 for trec_eval"):
        check_scores(tmp_path / "r", tmp_path / "c", protocol, scores)


def test_of_a_large_run_judged_by_answers_a_sample_is_checked_that_follows_from_its_digests(
    by_answers: tuple[EvaluationProtocol, Scores], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_from_files, "SMALL", 3)
    monkeypatch.setattr(check_from_files, "SAMPLE", 1)
    seen: list[str] = []
    monkeypatch.setattr(
        check_from_files, "answering", lambda found, collection: seen.extend(found) or answering(found, collection)
    )
    for salt in (0, 0, *range(1, 6)):
        write_json(tmp_path / "r/manifest.json", {"outputs": {"salt": salt}})
        assert check_scores(tmp_path / "r", tmp_path / "c", *by_answers) == 1
    assert seen[0] == seen[1]
    assert len(seen) == 7 > len(set(seen)) > 1
    assert check_scores(tmp_path / "r", tmp_path / "c", *by_answers, whole=True) == 3

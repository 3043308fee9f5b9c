"""The second evaluator: ir-measures judges queries from the files, with nothing of Encore between.

The evaluator of ``measures.py`` starts from a run and judgments in memory, so it shows no mistake in reading them, in
ranks or in ties. Here both files are read again line by line, and ir-measures' trec_eval sorts and counts.
A difference stops the job.
"""

import hashlib
import random
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from isal import igzip

from encore.config.datasets import Measure, parse_measure
from encore.data.answer_matching import answering
from encore.data.collection import Collection
from encore.data.rankings import RunMatrices
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol
from encore.evaluation.ranks import Grades
from encore.evaluation.scores import Scored, Scores

SAMPLE = 200  # queries of each split of a large run
SMALL = 250_000  # results; a run with no more is checked whole
TOLERANCE = 1e-9
BLOCK = 2**24  # bytes of a run's text that are read at once
PLEASE = "nothing was written, please report it as a bug"
N = TypeVar("N", int, float)
Results = dict[str, dict[str, float]]  # query -> document -> score
Judgments = dict[str, dict[str, int]]  # query -> document -> grade


def check_scores(run: Path, collection: Path, protocol: EvaluationProtocol, scores: Scores, whole: bool = False) -> int:
    """Compare scores with ir-measures', for all queries of a small run and for a sample of a large one.

    A split that is judged by answers has no judgments to read: the results that were read are matched with answers.

    Args:
        run, collection: folders.
        scores: what Encore computed by that protocol.
        whole: check all queries of a large run, too.

    Returns:
        The number of queries that ir-measures judged, summed over splits.
    """
    whole = whole or _size(run) <= SMALL
    chosen, judged = dict[str, list[str]](), dict[str, Judgments]()
    for split in sorted(protocol.splits):
        scored = next(each.queries for (of, _), each in scores.items() if of == split)
        chosen[split] = scored if whole else _drawn(run, scored)
        if split not in protocol.judged_by_answers:
            judgments = _read_judgments(collection / "qrels" / f"{split}.tsv")
            _same_queries(split, judgments, scored, is_sampled=protocol.queries is not None)
            judged[split] = {query: judgments[query] for query in chosen[split]}
    found = _read_results(run, {query for queries in chosen.values() for query in queries})
    for split in chosen.keys() - judged.keys():
        right = answering({query: found.get(query, {}) for query in chosen[split]}, Collection(collection))
        judged[split] = {query: dict.fromkeys(documents, 1) for query, documents in right.items()}
    if protocol.scored_by_passages:
        judged = {split: {query: _of_documents(its) for query, its in own.items()} for split, own in judged.items()}
        found = {query: _of_documents(its) for query, its in found.items()}
    if protocol.ignore_identical_ids:
        for query, its in found.items():
            its.pop(query, None)
    for split, judgments in judged.items():
        named = {name: parse_measure(said) for name, said in protocol.splits[split].items()}
        expected = _by_ir_measures(named.values(), judgments, found)
        for name, measure in named.items():
            _compare(run, split, measure, expected[measure], _values(scores, split, name))
    return sum(map(len, judged.values()))


def check_in_memory(
    judged: Grades, run: RunMatrices, named: Mapping[str, Measure], scores: Mapping[str, Scored]
) -> None:
    """Compare scores of a run in memory with ir-measures', for all queries of a small run and for some of a large one.

    Args:
        named, scores: the measures, and what Encore computed, by their names.
    """
    chosen = list(judged) if run.rows.size <= SMALL else random.Random(0).sample(list(judged), min(SAMPLE, len(judged)))
    some = {query: dict(judged[query]) for query in chosen}
    rankings = {query: run[query] for query in chosen if query in run}
    found = {query: dict(zip(its.documents, its.scores.tolist(), strict=True)) for query, its in rankings.items()}
    expected = _by_ir_measures(named.values(), some, found)
    for name, measure in named.items():
        values = dict(zip(scores[name].queries, scores[name].values.tolist(), strict=True))
        _compare("the run", "", measure, expected[measure], values)


def _of_documents(passages: Mapping[str, N]) -> dict[str, N]:
    """The highest number of each document's passages."""
    ascending = sorted(passages, key=passages.__getitem__)
    return {name[: name.rindex("#")]: passages[name] for name in ascending}


def _compare(
    run: object, split: str, measure: Measure, expected: Mapping[str, float], values: Mapping[str, float]
) -> None:
    for query, value in expected.items():
        if not abs(values[query] - value) <= TOLERANCE:
            raise EncoreError(
                f"{run}: {measure} of query {query} of split {split!r} is {values[query]} for Encore and {value} "
                f"for trec_eval, which read the files; {PLEASE}"
            )


def _values(scores: Scores, split: str, name: str) -> dict[str, float]:
    scored = scores[split, name]
    return dict(zip(scored.queries, scored.values.tolist(), strict=True))


def _same_queries(split: str, judgments: Names[str], scored: Names[str], is_sampled: bool) -> None:
    """Refuse scores of queries that nobody judged, and judged queries without a score."""
    if extra := sorted(set(scored) - set(judgments)):
        raise EncoreError(f"split {split!r}: query {extra[0]} has a score and no judgment; {PLEASE}")
    if not is_sampled and (missing := sorted(set(judgments) - set(scored))):
        raise EncoreError(f"split {split!r}: query {missing[0]} was judged and has no score; {PLEASE}")


def _drawn(run: Path, queries: Names[str]) -> list[str]:
    """A sample that follows from the digests in the run's manifest, so that nobody chooses it."""
    salt = (run / "manifest.json").read_bytes()
    return sorted(queries, key=lambda query: hashlib.sha256(salt + query.encode()).digest())[:SAMPLE]


def _by_ir_measures(measures: Iterable[Measure], judged: Judgments, found: Results) -> dict[Measure, dict[str, float]]:
    """Each measure of each judged query. trec_eval has no cutoff for reciprocal rank, whose value tells the rank."""
    import ir_measures

    values = {measure: dict.fromkeys(judged, 0.0) for measure in measures}
    asked: dict[Any, list[Measure]] = {}
    for measure in values:
        parameters = {"rel": measure.rel} if measure.rel != 1 else {}
        if measure.cutoff is not None and measure.name != "RR":
            parameters["cutoff"] = measure.cutoff
        asked.setdefault(getattr(ir_measures, measure.name)(**parameters), []).append(measure)
    answered = {query: found[query] for query in judged if found.get(query)}
    for each in ir_measures.pytrec_eval.iter_calc(list(asked), judged, answered):
        for measure in asked[each.measure]:
            beyond = measure.name == "RR" and measure.cutoff is not None and each.value * measure.cutoff < 1 - TOLERANCE
            values[measure][each.query_id] = 0.0 if beyond else float(each.value)
    return values


def _read_judgments(path: Path) -> Judgments:
    judged: Judgments = {}
    for line in path.read_text(encoding="utf-8").split("\n")[1:]:
        if line.strip():
            query, document, grade = line.strip("\r").split("\t")
            judged.setdefault(query, {})[document] = int(grade)
    return judged


def _size(run: Path) -> int:
    """How many results a run has room for."""
    with np.load(run / "run.npz", allow_pickle=False) as arrays:
        return int(arrays["rows"].size)


def _read_results(run: Path, chosen: set[str]) -> Results:
    """The results of some queries: from TREC's text or, for a run without, from its matrices."""
    text = run / "run.trec.gz"
    found: Results = {}
    for query, document, score in _of_text(text, chosen) if text.is_file() else _of_matrices(run / "run.npz", chosen):
        its = found.setdefault(query, {})
        if document in its:
            raise EncoreError(f"{run}: query {query} has document {document} twice; {PLEASE}")
        its[document] = score
    return found


def _of_text(path: Path, chosen: set[str]) -> Iterator[tuple[str, str, float]]:
    wanted = {query.encode() for query in chosen}
    with igzip.open(path) as file:
        rest = b""
        while block := file.read(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                if line.partition(b" ")[0] in wanted:
                    query, _, document, _, score, _ = line.decode().split()
                    yield query, document, float(score)
    if rest:
        raise EncoreError(f"{path} ends within a line; delete its folder and run snakemake again")


def _of_matrices(path: Path, chosen: set[str]) -> Iterator[tuple[str, str, float]]:
    with np.load(path, allow_pickle=False) as arrays:
        queries, documents = (arrays[name].tobytes().decode().split("\n") for name in ("queries", "documents"))
        rows, scores = arrays["rows"], arrays["scores"]
    for place, query in enumerate(queries):
        if query in chosen:
            for row, score in zip(rows[place].tolist(), scores[place].tolist(), strict=True):
                if row >= 0:
                    yield query, documents[row], score

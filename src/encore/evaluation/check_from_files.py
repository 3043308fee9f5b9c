"""The second evaluator: ir-measures judges all queries from the files, with nothing of Encore between.

The evaluator of ``measures.py`` starts from a run and judgments in memory, so it shows no mistake in reading them, in
ranks or in ties. Here both files are read again, a run's text by Arrow, and ir-measures' trec_eval sorts and counts.
A difference stops the job.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from isal import igzip

from encore.config.datasets import Measure, parse_measure
from encore.data.answer_matching import answering
from encore.data.collection import Collection
from encore.data.rankings import RunMatrices
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol
from encore.evaluation.ranks import Grades
from encore.evaluation.scores import Scored, Scores

# Where texts are searched for answers, or a run is in memory in a notebook, a large run is checked by a sample.
SAMPLE = 200  # queries
SMALL = 250_000  # results; a run with no more is checked whole
TOLERANCE = 1e-9
AT_ONCE = 500  # queries that trec_eval judges together
BLOCK = 2**24  # bytes of a run's text that are read at once
PLEASE = "nothing was written, please report it as a bug"
N = TypeVar("N", int, float)
Results = dict[str, dict[str, float]]  # query -> document -> score
Judgments = dict[str, dict[str, int]]  # query -> document -> grade
Values = dict[Measure, dict[str, float]]  # measure -> query -> value
Pieces = Iterator[tuple[str, list[str], list[float]]]  # a query, and documents and scores of some of its results


def check_scores(run: Path, collection: Path, protocol: EvaluationProtocol, scores: Scores, whole: bool = False) -> int:
    """Compare scores with ir-measures', for all queries but those of a large run that answers judge.

    A split that is judged by answers has no judgments to read: the results that were read are matched with answers, of
    a sample of its queries if the run is large.

    Args:
        run, collection: folders.
        scores: what Encore computed by that protocol.
        whole: check all queries of a large run that is judged by answers, too.

    Returns:
        The number of queries that ir-measures judged, summed over splits.
    """
    judged, asked, told = dict[str, Judgments](), dict[str, list[str]](), _values(scores, protocol)
    for split, values in told.items():
        scored = list(next(iter(values.values())))
        if split in protocol.judged_by_answers:
            asked[split] = scored if whole or _size(run) <= SMALL else _drawn(run, scored)
            continue
        judgments = _read_judgments(collection / "qrels" / f"{split}.tsv")
        _same_queries(split, judgments, scored, is_sampled=protocol.queries is not None)
        judged[split] = {query: _as_judged(judgments[query], protocol) for query in scored}
    checked = sum(map(len, (*judged.values(), *asked.values())))
    kept: Results = {}
    wanted = {query for queries in (*judged.values(), *asked.values()) for query in queries}
    for found in _read_results(run, wanted):
        kept |= {query: found[query] for queries in asked.values() for query in queries if query in found}
        results = {query: _as_found(query, its, protocol) for query, its in found.items()}
        for split, left in judged.items():
            _compare(run, split, {query: left.pop(query) for query in results if query in left}, results, told[split])
    for split, unanswered in judged.items():
        _compare(run, split, unanswered, {}, told[split])
    for split, queries in asked.items():
        right = answering({query: kept.get(query, {}) for query in queries}, Collection(collection))
        grades = {query: _as_judged(dict.fromkeys(its, 1), protocol) for query, its in right.items()}
        results = {query: _as_found(query, kept[query], protocol) for query in queries if query in kept}
        _compare(run, split, grades, results, told[split])
    return checked


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
    _compare("the run", "", some, found, {measure: _by_query(scores[name]) for name, measure in named.items()})


def _as_judged(judgments: dict[str, int], protocol: EvaluationProtocol) -> dict[str, int]:
    return _of_documents(judgments) if protocol.scored_by_passages else judgments


def _as_found(query: str, results: dict[str, float], protocol: EvaluationProtocol) -> dict[str, float]:
    """A query's results as the protocol counts them."""
    own = {query} if protocol.ignore_identical_ids else set[str]()
    found = _of_documents(results) if protocol.scored_by_passages else results
    return {document: score for document, score in found.items() if document not in own} if own else found


def _of_documents(passages: Mapping[str, N]) -> dict[str, N]:
    """The highest number of each document's passages."""
    ascending = sorted(passages, key=passages.__getitem__)
    return {name[: name.rindex("#")]: passages[name] for name in ascending}


def _values(scores: Scores, protocol: EvaluationProtocol) -> dict[str, Values]:
    """Encore's values, by split."""
    found: dict[str, Values] = {split: {} for split in sorted(protocol.splits)}
    for split, values in found.items():
        for name, said in protocol.splits[split].items():
            values[parse_measure(said)] = _by_query(scores[split, name])
    return found


def _by_query(scored: Scored) -> dict[str, float]:
    return dict(zip(scored.queries, scored.values.tolist(), strict=True))


def _compare(run: object, split: str, judged: Judgments, found: Results, told: Values) -> None:
    for measure, expected in _by_ir_measures(told, judged, found).items():
        for query, value in expected.items():
            if not abs(told[measure][query] - value) <= TOLERANCE:
                raise EncoreError(
                    f"{run}: {measure} of query {query} of split {split!r} is {told[measure][query]} for Encore and "
                    f"{value} for trec_eval, which read the files; {PLEASE}"
                )


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


def _by_ir_measures(measures: Iterable[Measure], judged: Judgments, found: Results) -> Values:
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


def _read_results(run: Path, wanted: set[str]) -> Iterator[Results]:
    """The results of some queries at a time: from TREC's text or, for a run without, from its matrices."""
    text, found, seen = run / "run.trec.gz", Results(), set[str]()
    pieces = _of_text(text) if text.is_file() else _of_matrices(run / "run.npz")
    for query, own in groupby(pieces, key=itemgetter(0)):
        documents, scores = list[str](), list[float]()
        for _, names, numbers in own:
            documents += names
            scores += numbers
        if query in seen:
            raise EncoreError(f"{run}: results of query {query} are in two places; {PLEASE}")
        seen.add(query)
        results = dict(zip(documents, scores, strict=True))
        if len(results) < len(documents):
            repeated = Counter(documents).most_common(1)[0][0]
            raise EncoreError(f"{run}: query {query} has document {repeated} twice; {PLEASE}")
        if query in wanted:
            found[query] = results
        if len(found) == AT_ONCE:
            yield found
            found = {}
    yield found


def _of_text(path: Path) -> Pieces:
    kept = {"query": pa.dictionary(pa.int32(), pa.string()), "document": pa.string(), "score": pa.float64()}
    columns = csv.ReadOptions(column_names=["query", "Q0", "document", "rank", "score", "tag"], use_threads=False)
    blanks = csv.ParseOptions(delimiter=" ", quote_char=False)
    types = csv.ConvertOptions(include_columns=list(kept), column_types=kept, null_values=[])
    with igzip.open(path) as file:
        rest = b""
        while block := file.read(BLOCK):
            lines, _, rest = (rest + block).rpartition(b"\n")
            for batch in csv.read_csv(pa.BufferReader(lines), columns, blanks, types).to_batches() if lines else ():
                codes, names = batch["query"].indices.to_numpy(), batch["query"].dictionary.to_pylist()
                documents, scores = batch["document"].to_pylist(), batch["score"].to_numpy().tolist()
                starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
                for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
                    yield names[codes[start]], documents[start:end], scores[start:end]
    if rest:
        raise EncoreError(f"{path} ends within a line; delete its folder and run snakemake again")


def _of_matrices(path: Path) -> Pieces:
    with np.load(path, allow_pickle=False) as arrays:
        queries, documents = (arrays[name].tobytes().decode().split("\n") for name in ("queries", "documents"))
        rows, scores = arrays["rows"], arrays["scores"]
    for place, query in enumerate(queries[: len(rows)]):
        found = rows[place] >= 0
        yield query, [documents[row] for row in rows[place, found].tolist()], scores[place, found].tolist()

"""Runs and judgments as other programs have them: dictionaries, rows, data frames, or files.

Columns are known by their names in PyTerrier, ranx, ir_measures, trectools, ir_datasets, BEIR and Encore.
"""

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from encore.data import qrels, runs, trec_runs
from encore.data.collection import Collection
from encore.data.columns import NEEDED, PASSAGE, QUERY, Names, chosen, in_words, refuse_twice
from encore.data.judgments import Grades, Judgment, is_entered, whole_grade
from encore.data.rankings import RunMatrices
from encore.errors import EncoreError, quoted

IDS: Names = {"query": (*QUERY, "query"), "document": (*PASSAGE, "document")}
RUN: Names = {**IDS, "score": ("score", "sim")}
JUDGED: Names = {**NEEDED["judgments"], **IDS}
Clusters = dict[str, str]


def run_of(given: Any, called: str = "the run") -> RunMatrices:
    """A run from a dictionary of scores by query and document, rows of these three, a frame, or a place.

    A place is a folder below ``results/runs``, or a file in TREC's form. Scores decide the order, as for trec_eval.

    Args:
        called: what messages call it.
    """
    if isinstance(given, RunMatrices):
        return given
    if isinstance(given, str | Path):
        place = Path(given)
        return runs.read_run(place) if place.is_dir() else trec_runs.read_trec(place)
    queries, documents = dict[str, int](), dict[str, int]()
    of_query, of_document, scores = list[int](), list[int](), list[float]()
    for number, query, document, score in _lines(given, RUN, called):
        of_query.append(queries.setdefault(query, len(queries)))
        of_document.append(documents.setdefault(document, len(documents)))
        try:
            scores.append(float(score))
        except (TypeError, ValueError) as error:
            raise EncoreError(f"{called}, row {number}: the score {quoted(score)} is not a number") from error
    places = np.array(of_query, np.int64), np.array(of_document, np.int64)
    try:
        return RunMatrices.arranged(list(queries), list(documents), *places, scores)
    except EncoreError as error:
        raise EncoreError(f"{called}: {error}") from error


def runs_of(given: Any, called: str = "the run") -> list[RunMatrices]:
    """The runs of a system: one, or a list of one for each seed, each in any form that ``run_of`` takes."""
    if isinstance(given, list | tuple) and given and all(map(_is_run, given)):
        return [run_of(each, f"{called}, seed {seed}") for seed, each in enumerate(given)]
    return [run_of(given, called)]


def _is_run(given: Any) -> bool:
    """True for what is no row of a run."""
    if isinstance(given, str | Path | RunMatrices) or hasattr(given, "itertuples"):
        return True
    parts = given.values() if isinstance(given, Mapping) else given if isinstance(given, list | tuple) else ()
    return isinstance(next(iter(parts), None), Mapping | list | tuple)


def judgments_of(given: Any, split: str = "test") -> tuple[Grades, Clusters]:
    """Grades by query and document, and the clusters of queries, where a collection has them.

    Args:
        given: a collection or its folder, a file in TREC's or BEIR's form, a dictionary, rows or a frame.
        split: of a collection.
    """
    place = Path(given) if isinstance(given, str | Path) else None
    if place is not None and place.is_dir():
        given = Collection(place)
    if isinstance(given, Collection):
        if split in given.splits() and not given.is_judged(split):
            raise EncoreError(f"split {split!r} of {given.folder} is judged by answers; name one with judgments")
        return given.qrels(split), given.clusters()
    grades: Grades = {}
    read = judgments_in(given) if place is None else qrels.read_qrels(place, {}, Counter(), str(place))
    for each in read:
        is_entered(each, grades)
    return grades, {}


def judgments_in(given: Any, called: str = "judgments") -> Iterator[Judgment]:
    """The judgments in a dictionary, rows or a frame, each with its place."""
    for number, query, document, grade in _lines(given, JUDGED, called):
        place = f"{called}, row {number}"
        yield Judgment(query, document, whole_grade(str(grade), f"{place}: "), place)


def is_by_query(given: Any) -> bool:
    """True for a dictionary of grades or scores by query and document, and not of several such by name."""
    inner = next(iter(given.values()), None) if isinstance(given, Mapping) else None
    return isinstance(inner, Mapping) and not any(isinstance(each, Mapping) for each in inner.values())


def _lines(given: Any, wanted: Names, called: str) -> Iterator[tuple[int, str, str, Any]]:
    """Number, query, document and score or grade of each row."""
    for number, (query, document, value) in enumerate(_raw(given, wanted, called), 1):
        yield number, _id(query, called, number), _id(document, called, number), value


def _raw(given: Any, wanted: Names, called: str) -> Iterator[tuple[Any, Any, Any]]:
    if isinstance(given, Mapping):
        for query, of in given.items():
            if not isinstance(of, Mapping):
                raise EncoreError(f"{called}: query {quoted(query)} has {quoted(of)}; give numbers by document")
            for document, value in of.items():
                yield query, document, value
    elif hasattr(given, "itertuples"):
        refuse_twice(map(str, given.columns), called)
        frame = given.rename(columns=str)
        names = _named(tuple(frame.columns), wanted, called)
        yield from zip(*(frame[name].astype(object).tolist() for name in names), strict=True)
    elif isinstance(given, Iterable):
        for row in given:
            fields = row._asdict() if hasattr(row, "_asdict") else row
            if isinstance(fields, Mapping):
                query, document, value = (fields[name] for name in _named(tuple(fields), wanted, called))
            elif isinstance(row, list | tuple) and len(row) == len(wanted):
                query, document, value = row
            else:
                raise EncoreError(f"{called}: {quoted(row)} is no {', '.join(wanted)}; give rows of these three")
            yield query, document, value
    else:
        raise EncoreError(f"{called}: {quoted(given)} is neither a dictionary, rows, a data frame nor a place")


def _named(columns: tuple[str, ...], wanted: Mapping[str, Any], called: str) -> list[str]:
    """Their columns in our order."""
    found = _chosen(columns, tuple(wanted.items()))
    if len(found) < len(wanted):
        there = f"{', '.join(columns) or 'none'} (an index is none, see `reset_index`)"
        raise EncoreError(f"{called} has the columns {there}; give it {in_words(wanted)}")
    return [found[name] for name in wanted]


@lru_cache
def _chosen(columns: tuple[str, ...], wanted: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, str]:
    return chosen(dict(wanted), {name.lower(): name for name in columns})


def _id(given: Any, called: str, number: int) -> str:
    """An id as text: a text or a whole number."""
    if type(given) is str:
        return given
    if not isinstance(given, bool | np.bool_):
        try:
            return str(given) if isinstance(given, str) else str(operator.index(given))
        except TypeError:
            pass
    raise EncoreError(f"{called}, row {number}: {quoted(given)} is no id; give ids as texts (pandas: `dtype=str`)")

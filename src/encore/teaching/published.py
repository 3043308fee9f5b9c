"""Published scores of training triples, as neural-ranking-kd has them, brought to the form of our own teachers'.

A line is ``pos_score neg_score query_id pos_id neg_id``, separated by tabs. Of several files, which then have the same
triples in the same order, the scores are averaged: so is T2 made of three models' (Hofstaetter et al. 2020, section 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from encore.errors import EncoreError
from encore.finetuning.taught import TRIPLES, write_scores
from encore.storage import contents, open_text, write_array
from encore.teaching.sources import files
from encore.tokens import TokenStore

COLUMNS = 5


class Triple(NamedTuple):
    """A line of a file: scores of the positive and the negative, and the texts as rows of the token store."""

    scores: tuple[float, float]
    texts: tuple[int, int, int]


def bring(spec: dict[str, Any], source: str, tokens: Path, output: Path) -> dict[str, int]:
    """Write the triples of published files and the score of each of their pairs; returns counts.

    Raises:
        EncoreError: the files are not the planned ones; or, with file and line, a line is no triple, a text is not in
            the token store, a file has other triples than the first, or gives a pair another score than before.
    """
    paths = files(source)
    if "content" in spec and contents(paths) != spec["content"]:  # what was fetched has a manifest
        raise EncoreError(f"{source} is not what was planned with: its files have changed since; run snakemake again")
    store = TokenStore.open(tokens)
    rows = [{name: row for row, name in enumerate(sequences.names)} for sequences in (store.queries, store.passages)]
    triples, scores = _read(next(iter(paths.values())), *rows)
    for path in list(paths.values())[1:]:
        others, added = _read(path, *rows)
        _refuse_others(path, triples, others)
        scores += added
    write_array(output / TRIPLES, triples)
    kept = _write_pairs(output, triples, scores / len(paths), next(iter(paths.values())))
    return {"files": len(paths), "triples": len(triples), "pairs": kept}


def _read(path: Path, queries: Mapping[str, int], passages: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """int32 [N, 3], the texts of each line, and float64 [N, 2], their scores."""
    found = list(_triples(path, queries, passages))
    if not found:
        raise EncoreError(f"{path} has no line; put the published scores there")
    return (
        np.array([triple.texts for triple in found], dtype=np.int32),
        np.array([triple.scores for triple in found], dtype=np.float64),
    )


def _triples(path: Path, queries: Mapping[str, int], passages: Mapping[str, int]) -> Iterator[Triple]:
    number = 1
    try:
        with open_text(path) as file:
            for line in file:
                yield _triple(line, queries, passages)
                number += 1
    except (ValueError, EOFError, OSError) as error:
        raise EncoreError(f"{path}, line {number}: {error}; mend the file or the collection") from error


def _triple(line: str, queries: Mapping[str, int], passages: Mapping[str, int]) -> Triple:
    """Raises ``ValueError`` with what is wrong."""
    columns = line.rstrip("\r\n").split("\t")
    if len(columns) != COLUMNS:
        raise ValueError(f"{len(columns)} columns instead of pos_score, neg_score, query_id, pos_id, neg_id")
    scores = float(columns[0]), float(columns[1])
    if not np.isfinite(scores).all():
        raise ValueError(f"a score is not finite: {columns[0]} and {columns[1]}")
    places = [("query", columns[2], queries), ("document", columns[3], passages), ("document", columns[4], passages)]
    for kind, name, known in places:
        if name not in known:
            raise ValueError(f"{kind} {name!r} is not in the collection")
    query, positive, negative = (known[name] for _, name, known in places)
    return Triple(scores, (query, positive, negative))


def _refuse_others(path: Path, triples: np.ndarray, others: np.ndarray) -> None:
    if len(others) != len(triples):
        raise EncoreError(
            f"{path} has {len(others)} lines, the first file {len(triples)}; average scores of the same triples"
        )
    other = np.flatnonzero((triples != others).any(axis=1))
    if len(other):
        raise EncoreError(
            f"{path}, line {int(other[0]) + 1}: other texts than in the first file; average scores of the same triples"
        )


def _write_pairs(folder: Path, triples: np.ndarray, scores: np.ndarray, path: Path) -> int:
    """Write each pair once, with the score that all its lines give it; returns how many they are."""
    queries = np.repeat(triples[:, 0], 2).astype(np.int64)
    passages, flat = triples[:, 1:].ravel().astype(np.int64), scores.ravel()
    keys = queries * (int(passages.max()) + 1) + passages
    _, first, back = np.unique(keys, return_index=True, return_inverse=True)
    other = np.flatnonzero(~np.isclose(flat, flat[first][back], rtol=1e-4, atol=1e-4))
    if len(other):
        raise EncoreError(
            f"{path}, line {int(other[0]) // 2 + 1}: a pair has another score than on line "
            f"{int(first[back[other[0]]]) // 2 + 1}; keep one of them"
        )
    write_scores(folder, queries[first], passages[first], flat[first])
    return len(first)

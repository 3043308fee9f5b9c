"""Published scores of training triples, as neural-ranking-kd has them, brought to the form of our own teachers'.

A line is ``pos_score neg_score query_id pos_id neg_id``, tab-separated. Of several files, which then have the same
triples in the same order, the scores are averaged: so is T2 made of three models' (Hofstaetter et al. 2020, section 4).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from encore.config.sources import score_files
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.teachers.outputs import TRIPLES, write_scores
from encore.storage.document_ids import DocIds
from encore.storage.files import contents, write_array
from encore.storage.tsv import TsvBlock, read_tsv

COLUMNS = ("pos_score", "neg_score", "query_id", "pos_id", "neg_id")


def write_published_scores(
    source: str, tokens: Path, output: Path, planned: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Write the triples of published files and the score of each of their pairs; returns counts.

    Args:
        planned: the digests of the files that were planned with; None for fetched ones, whose manifest has them.
    """
    paths = score_files(source)
    if planned is not None and contents(paths) != planned:
        raise EncoreError(f"{source} is not what was planned with: its files have changed since; run snakemake again")
    store = TokenStore(tokens)
    queries, passages = store.queries.names, store.passages.names
    triples, scores = _read(next(iter(paths.values())), queries, passages)
    for path in list(paths.values())[1:]:
        others, added = _read(path, queries, passages)
        _refuse_others(path, triples, others)
        scores += added
    write_array(output / TRIPLES, triples)
    kept = _write_pairs(output, triples, scores / len(paths), next(iter(paths.values())))
    return {"files": len(paths), "triples": len(triples), "pairs": kept}


def _read(path: Path, queries: DocIds, passages: DocIds) -> tuple[np.ndarray, np.ndarray]:
    """int32 [N, 3], the texts of each line as rows of the token store, and float64 [N, 2], their scores."""
    found = list(_blocks(path, queries, passages))
    if not found:
        raise EncoreError(f"{path} has no line; put the published scores there")
    triples, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return triples, scores


def _blocks(path: Path, queries: DocIds, passages: DocIds) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for block in read_tsv(path, COLUMNS):
        scores = [_scores(path, block, place) for place in (0, 1)]
        known = [("query", queries), ("document", passages), ("document", passages)]
        texts = [_texts(path, block, place, what, rows) for place, (what, rows) in enumerate(known, 2)]
        yield np.stack(texts, axis=1).astype(np.int32), np.stack(scores, axis=1)


def _scores(path: Path, block: TsvBlock, place: int) -> np.ndarray:
    """float64 [n]."""
    try:
        found = np.asarray(block.columns[place].cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        for number, written in enumerate(block.columns[place].to_pylist(), block.first):
            try:
                float(written)
            except ValueError as error:
                raise EncoreError(f"{path}, line {number}: {error}; fix the file") from error
        raise
    if not np.isfinite(found).all():
        first = int(np.flatnonzero(~np.isfinite(found))[0])
        raise EncoreError(
            f"{path}, line {block.first + first}: a score is not finite: {block.columns[place][first].as_py()}; fix "
            "the file"
        )
    return found


def _texts(path: Path, block: TsvBlock, place: int, what: str, rows: DocIds) -> np.ndarray:
    """int64 [n], rows of the token store."""
    found = rows.rows_of(block.columns[place])
    if len(strange := np.flatnonzero(found < 0)):
        first = int(strange[0])
        raise EncoreError(
            f"{path}, line {block.first + first}: {what} {block.columns[place][first].as_py()!r} is not in the "
            "collection; fix the file or the collection"
        )
    return found


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
    count = int(triples[:, 1:].max()) + 1
    keys = (triples[:, :1].astype(np.int64) * count + triples[:, 1:]).ravel()
    order = np.argsort(keys, kind="stable")
    keys, scores = keys[order], scores.ravel()[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    pair = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(keys)))
    other = np.flatnonzero(~np.isclose(scores, scores[starts][pair], rtol=1e-4, atol=1e-4))
    if len(other):
        place = other[np.argmin(order[other])]  # the first in the file
        raise EncoreError(
            f"{path}, line {int(order[place]) // 2 + 1}: a pair has another score than on line "
            f"{int(order[starts[pair[place]]]) // 2 + 1}; keep one of them"
        )
    queries, passages = np.divmod(keys[starts], count)
    write_scores(folder, queries, passages, scores[starts])
    return len(starts)

"""Teachers of the small queries: what they say, and the task of a student that learns from it."""

from pathlib import Path
from typing import Any

import numpy as np

from encore.finetuning.distillation import distillation
from encore.finetuning.queries import Query
from encore.finetuning.teachers.outputs import write_scores, write_vectors
from tests.support.small_finetuning import PASSAGES, small_store, step

FIELDS = {"per_query": 2, "temperature": 0.5, "teachers": ["parent"], "teacher_temperature": 0.25}


def query(row: int, negatives: tuple[int, ...]) -> Query:
    return Query(row, (row,), frozenset({row}), frozenset({row}), negatives)


ASKED = [query(row, (row + 10, row + 12, row + 14)) for row in range(8)]


def all_pairs() -> tuple[np.ndarray, np.ndarray]:
    pairs = [(one.row, passage) for one in ASKED for passage in (*one.positives, *one.negatives)]
    queries, passages = np.array(pairs).T
    return queries, passages


def scores_in(folder: Path, seed: int) -> Path:
    queries, passages = all_pairs()
    order = np.random.default_rng(seed).permutation(len(queries))
    write_scores(folder, queries[order], passages[order], score(queries, passages, seed)[order])
    return folder


def score(queries: np.ndarray, passages: np.ndarray, seed: int) -> np.ndarray:
    return np.cos(queries * 7.0 + passages * (3.0 + seed)) * 4


def vectors_in(folder: Path, seed: int, kind: str) -> dict[str, dict[int, np.ndarray]]:
    """Vectors of all texts, of tokens as many as the text has; what was written, by row."""
    rng, found = np.random.default_rng(seed), {}
    for name, rows in (("queries", np.arange(8)), ("passages", np.arange(PASSAGES))):
        counts = rng.integers(1, 6, len(rows)) if kind == "token" else np.ones(len(rows), dtype=int)
        own = {int(row): rng.normal(size=(count, 5)) for row, count in zip(rows, counts, strict=True)}
        write_vectors(folder, name, rows, own.values(), kind)
        found[name] = own
    return found


def task_of(store: Any, loss: str, teacher_outputs: list[Path], **changes: Any) -> Any:
    return distillation(step(loss=loss, **FIELDS | changes), ASKED, store, teacher_outputs)


def dual_task(folder: Path, **changes: Any) -> Any:
    """A task with a teacher of pairs and one of batches."""
    vectors_in(folder / "batch", 2, "token")
    return task_of(small_store(), "margin-mse", [scores_in(folder / "pairs", 1), folder / "batch"], **changes)


def small_task(loss: str, folder: Path) -> Any:
    """A task with one teacher, for the trainings of ``two_processes.py``; ``dual`` is of two."""
    if loss == "dual":
        return dual_task(folder)
    scores_in(folder, 1)
    vectors_in(folder, 1, "token")
    return task_of(small_store(), loss, [folder])

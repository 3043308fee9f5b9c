"""A made-up run with its judgments, as matrices and as text, gzipped and plain."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from encore.data.rankings import rank
from encore.data.runs import TEXT, describe, write_run
from encore.evaluation.ranks import Grades

PLAIN = "plain.txt"
HEADER: dict[str, Any] = describe("made-up", collection="made-up", split="test", retrieval=[])


def made_up_run(folder: Path, queries: int, depth: int, documents: int, judged: int) -> Grades:
    """Write a run into ``folder``; half of what is relevant is among the results.

    Args:
        documents: of the collection.
        judged: documents of each query that are relevant.
    """
    generator = np.random.default_rng(0)
    names = [f"passage-{number}" for number in generator.permutation(documents)]
    found, grades = {}, {}
    for query in map(str, range(queries)):
        chosen = generator.permutation(documents)
        results = [names[number] for number in chosen[:depth]]
        found[query] = rank(results, np.round(generator.normal(20, 4, len(results)), 4))
        half = [*chosen[: judged // 2], *chosen[depth:][: judged - judged // 2]]
        grades[query] = {names[number]: int(generator.integers(1, 4)) for number in half}
    write_run(folder, found, HEADER)
    (folder / PLAIN).write_bytes(gzip.decompress((folder / TEXT).read_bytes()))
    return grades

"""Claims on made-up cells: how one is written, and what a cell of a few queries holds."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from encore.evaluation.scores import Scored, write_scores
from encore.products.claims.entries import Claim
from encore.products.tables.cell_scores import CellScores
from encore.products.tables.entries import Table
from encore.products.tables.sources.base import CellValues

QUERIES = [f"q{number}" for number in range(40)]
OF_POINTS = [str(number) for number in range(60)]
SEEDS = (0, 1, 2, 3, 4)
TABLE = Table.model_validate(
    {
        "title": "Small",
        "rows": [
            {"id": name, "label": name, "setting": setting, "system": name}
            for setting in ("one", "two")
            for name in ("a", "b", "c")
        ],
        "columns": [
            {"id": name, "label": name, "dataset": "d", "split": split, "measure": name}
            for name, split in (("x", "test"), ("y", "test"), ("z", "graded"))
        ],
    }
)
TABLES = {"p/t": TABLE}
GAINS = {"kind": "gains", "row": "a", "than": "b"}


def claim(*tests: dict[str, Any], **more: Any) -> Claim:
    """A claim with these tests, on the table p/t where they name nothing else."""
    about = [test if {"table", "figure"} & test.keys() or test["kind"] == "stated" else {"table": "p/t", **test}
             for test in tests]  # fmt: skip
    return Claim.model_validate({"says": "s", "place": "p", "tests": about, **more})


def scored(queries: list[str], values: np.ndarray) -> Scored:
    """Values of queries that are their own clusters, without ties; all are answered, and training met none of them."""
    size = len(queries)
    return Scored(queries, queries, values, values, values, np.ones(size, bool), np.zeros(size, np.int8))


def cell_values(
    truth: float,
    seeds: Any = SEEDS,
    queries: list[str] = QUERIES,
    salt: int = 0,
    spread: float = 0.05,
    drift: float = 0.0,
) -> CellValues:
    """A cell's values around a truth, the same for the same salt; ``drift`` moves a seed as a whole."""
    generator = np.random.default_rng(salt)
    found = [
        scored(queries, truth + drift * (place - 2) + generator.normal(0, spread, len(queries)))
        for place, _ in enumerate(seeds)
    ]
    measured = CellScores(list(seeds), found)
    return CellValues(list(seeds), measured.means(), measured.tie_interval(), measured)


def measured(
    folder: Path, truths: Mapping[tuple[str, str], float], seeds: Iterable[int] = SEEDS, samples: int = 2
) -> list[dict[str, Any]]:
    """Points of a figure by line and place, whose folders of scores are written: 60 queries around a truth."""
    points = []
    for number, ((line, place), truth) in enumerate(truths.items()):
        parts = []
        for sample in range(samples):
            reads = []
            for seed in seeds:
                generator = np.random.default_rng(1000 * number + 10 * sample + seed)
                values = np.clip(generator.normal(truth, 0.1, len(OF_POINTS)), 0, 1)
                made = folder / f"{line}{place}{sample}{seed}"
                made.mkdir(parents=True)
                write_scores(made, {("test", "RR@10"): scored(OF_POINTS, values)})
                reads.append({"seed": seed, "folder": str(made)})
            parts.append({"value": "RR@10", "split": "test", "dataset": "d", "reads": reads})
        points.append({"panel": "p", "line": line, "place": place, "parts": parts})
    return points

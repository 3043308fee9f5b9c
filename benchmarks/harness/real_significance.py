"""Our tests next to published p-values of others' programs on the same scores."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from encore.config.datasets import parse_measure
from encore.data.trec_runs import read_trec
from encore.evaluation.measures import measure_values
from encore.evaluation.significance import Floats, clustered, paired_t, randomised
from encore.storage.files import open_text
from harness.trec_eval import judgments

SAMPLES = 200_000
ERRORS = 4  # standard errors that a randomisation test may be off


def compare(folder: Path, printed: dict[str, float]) -> list[dict[str, Any]]:
    """The paired t-test, our test with every query a cluster of its own (the same test then), and randomisation."""
    trec8 = _columns(folder / "significance/adhoc8_ap.csv", "run125", "run126")
    robust = _precision(folder / "trec-robust03", "aplrob03a", "UIUC03Rd1")
    each = [str(place) for place in range(len(trec8))]
    p = printed["permutation, TREC-8"]
    chance = ERRORS * (p * (1 - p) / SAMPLES) ** 0.5
    return [
        _row("paired t, TREC-8", paired_t(trec8), printed["paired t, TREC-8"], 5e-11),
        _row("ours, a query a cluster, TREC-8", clustered(trec8[:, None], each).p, printed["paired t, TREC-8"], 5e-11),
        _row("permutation, TREC-8", randomised([trec8[:, None]], each, SAMPLES)[0], p, chance),
        _row("paired t, Robust 2003", paired_t(robust), printed["paired t, Robust 2003"], 5e-5),
    ]


def _row(test: str, found: float, published: float, tolerance: float) -> dict[str, Any]:
    agrees = abs(found - published) <= tolerance * (1 + 1e-6)
    return {"test": test, "found": found, "published": published, "tolerance": tolerance, "agrees": agrees}


def _columns(path: Path, baseline: str, other: str) -> Floats:
    with open_text(path) as file:
        rows = list(csv.DictReader(file))
    return np.array([float(row[other]) - float(row[baseline]) for row in rows])


def _precision(folder: Path, one: str, other: str) -> Floats:
    """Differences of P@10, query by query."""
    grades = judgments(folder / "qrels.robust03.txt.gz")
    measure = parse_measure("P@10")
    first, second = (
        measure_values([measure], grades, read_trec(folder / f"runs/input.{name}.gz"))[measure] for name in (one, other)
    )
    return np.array([first[query] - second[query] for query in first])

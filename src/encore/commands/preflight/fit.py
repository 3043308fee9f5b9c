"""Coefficients from finished jobs: non-negative least squares on relative errors.

For jobs ``j`` with amounts ``a_j`` that took ``y_j``, the coefficients ``c >= 0`` minimise

    sum_j ((p_j - y_j) / p_j)^2 + sum_k (w * (c_k / c0_k - 1))^2      where p_j = a_j . c + s_j

``s_j`` is what is stated, ``c0`` the coefficients of the table that is refined and ``w`` a small weight: what the jobs
do not tell (two amounts that always grow together, one size only) stays as it was. Relative errors, since a job of a
second should be as right as one of an hour; over ``p`` and not ``y``, or jobs whose time was noted too short would
count most. It is solved in a few rounds, each with the ``p`` of the one before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from encore.commands.preflight.amounts import Amounts
from encore.commands.preflight.rates import Formula

KEPT = 0.05  # w: how much the earlier table counts; one job counts 1
ROUNDS = 5


def refined(formula: Formula, jobs: Sequence[Amounts], taken: Sequence[float]) -> Formula:
    """The formula with its fitted coefficients from these jobs; as it is without any."""
    from scipy.optimize import nnls

    names, real = list(formula.fitted), np.maximum(np.array(taken, dtype=float), 1e-9)
    if not names or not len(real):
        return formula
    before = np.array([formula.fitted[name] for name in names])
    stated = np.array([Formula(stated=formula.stated).of(job) for job in jobs])
    counts = np.array([[job.get(name, 0.0) for name in names] for job in jobs])
    unit = np.where(before > 0, before, 1 / np.maximum(counts.max(axis=0), 1e-30))
    expected = real
    for _ in range(ROUNDS):
        rows = np.concatenate([counts * unit / expected[:, None], KEPT * np.eye(len(names))])
        found, _ = nnls(rows, np.concatenate([(real - stated) / expected, KEPT * (before > 0)]))
        expected = np.maximum(counts @ (found * unit) + stated, real / 10)
    rounded = {name: float(f"{value:.3g}") for name, value in zip(names, found * unit, strict=True)}
    return Formula(fitted=rounded, stated=formula.stated)


def errors_left_out(formula: Formula, jobs: Sequence[Amounts], taken: Sequence[float]) -> list[float]:
    """For each job, how far the formula that is fitted without it is off, as a share of what it took."""
    found = []
    for left in range(len(jobs)):
        others = [place for place in range(len(jobs)) if place != left]
        own = refined(formula, [jobs[place] for place in others], [taken[place] for place in others])
        found.append(abs(own.of(jobs[left]) / max(taken[left], 1e-9) - 1))
    return found

"""The tests of docs/protocol.md, from their formulas: SciPy integrates, pandas groups."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import integrate, special

LEVEL, ENOUGH_SEEDS = 0.05, 5
SAMPLES = 10_000  # of a randomisation test
Parts = Sequence[tuple[np.ndarray, np.ndarray]]  # differences [queries, seeds] and the clusters of the queries


class Part(NamedTuple):
    """A variance of a mean, and its degrees of freedom."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Tested:
    """A mean difference, the variances of the mean, and p where nothing varies."""

    mean: float
    parts: tuple[Part, ...]
    least_p: float = 0.0

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return math.sqrt(sum(part.variance for part in self.parts))

    def p_of(self, distance: float) -> float:
        """The two-sided p value of a mean that is ``distance`` from 0."""
        if math.isinf(self.error):
            return 1.0
        if self.error <= 1e-12 * abs(distance):
            return 1.0 if distance == 0 else self.least_p
        return min(1.0, 2 * below(-abs(distance), [part for part in self.parts if part.variance > 0]))

    @property
    def p(self) -> float:
        """The two-sided p value of no difference."""
        return self.p_of(self.mean)

    def within(self, margin: float) -> float:
        """p of two one-sided tests that the difference is smaller than a margin: that of the nearer end."""
        inside = margin - abs(self.mean)
        half = self.p_of(inside) / 2
        return half if inside > 0 else 1 - half

    def precise(self, p: float) -> float:
        """The relative error of the quadrature of records, of too few nodes where tails are heavy or far away."""
        return 1e-5 if p > 1e-6 and all(part.freedom >= 3 for part in self.parts) else 1e-2


def below(distance: float, parts: Sequence[Part]) -> float:
    """P(sqrt(V_1) t(f_1) + sqrt(V_2) t(f_2) < distance), Behrens's and Fisher's, for a negative distance."""
    if len(parts) == 1:
        return float(special.stdtr(parts[0].freedom, distance / math.sqrt(parts[0].variance)))
    (first, f_1), (second, f_2) = ((math.sqrt(part.variance), part.freedom) for part in parts)
    log_constant = special.gammaln((f_2 + 1) / 2) - special.gammaln(f_2 / 2) - math.log(f_2 * math.pi) / 2

    def both(x: float) -> float:
        density = math.exp(log_constant - (f_2 + 1) / 2 * math.log1p(x * x / f_2))
        return density * float(special.stdtr(f_1, (distance - second * x) / first))

    turn = distance / second  # from here on down the second alone goes beyond the distance
    ends = sorted({-math.inf, 2 * turn, turn, turn / 2, min(-1.0, turn / 4), 0.0, 1.0, math.inf})
    return sum(
        integrate.quad(both, low, high, epsabs=0, epsrel=1e-9, limit=200)[0] for low, high in itertools.pairwise(ends)
    )


def clustered(parts: Parts) -> Tested:
    """The sum of mean differences, each over its own queries: leaving out clusters one by one, and seeds one by one."""
    seeds = parts[0][0].shape[1]
    mean = variance = 0.0
    of_seeds, effective, groups = np.zeros(seeds), math.inf, 0
    for values, clusters in parts:
        own, total = float(values.mean()), values.size
        by_cluster = pd.DataFrame(values).groupby(clusters)
        sums, sizes = by_cluster.sum().sum(axis=1).to_numpy(), seeds * by_cluster.size().to_numpy()
        without = (own * total - sums) / (total - sizes)
        variance += (len(sums) - 1) / len(sums) * float(((without - own) ** 2).sum())
        effective = min(effective, float(sizes.sum() ** 2 / (sizes**2).sum()))
        mean, groups = mean + own, groups + len(sums)
        of_seeds += values.mean(axis=0)
    found = [Part(variance, effective - 1)]
    if seeds > 1:
        without = (of_seeds.sum() - of_seeds) / (seeds - 1)
        found.append(Part((seeds - 1) / seeds * float(((without - mean) ** 2).sum()), seeds - 1))
    return Tested(mean, tuple(found), 2.0 ** (1 - groups))


def testable(clusters: np.ndarray) -> bool:
    """True unless one cluster has nearly all queries."""
    sizes = pd.Series(clusters).value_counts()
    return len(sizes) > 1 and sizes.sum() ** 2 >= 1.1 * (sizes**2).sum()


def randomised(tests: Sequence[np.ndarray], clusters: np.ndarray) -> list[float]:
    """p of randomisation tests [queries, seeds]: 10,000 times signs of whole clusters, in their names' order, flip."""
    sums = np.stack([pd.DataFrame(each).groupby(clusters).sum().mean(axis=1).to_numpy() for each in tests], axis=1)
    generator, larger = np.random.default_rng(0), np.zeros(len(tests))
    least = np.abs(sums.sum(axis=0)) - 1e-10 * np.abs(sums).sum(axis=0)
    for _ in range(SAMPLES // 1000):
        signs = np.where(generator.integers(0, 2, (1000, len(sums))) == 1, 1.0, -1.0)
        larger += (np.abs(signs @ sums) >= least).sum(axis=0)
    return [float(p) for p in (larger + 1) / (SAMPLES + 1)]


def holm(p_values: Sequence[float]) -> list[float]:
    """p values of a family, each times how many are not smaller, and never below that of a smaller one."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.minimum(1, np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1))
    found = np.empty(len(p_values))
    found[order] = np.maximum.accumulate(adjusted)
    return list(map(float, found))


def student(values: np.ndarray) -> float:
    """p of the paired t-test over queries."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    if error <= 1e-12 * abs(mean := float(np.mean(values))):
        return 1.0 if mean == 0 else 0.0
    return float(2 * special.stdtr(len(values) - 1, -abs(mean) / error))

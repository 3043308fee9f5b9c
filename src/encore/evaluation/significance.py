"""Whether two systems differ: one test that joins queries and seeds, the papers' t-test, and a randomisation test.

The data is D [queries, seeds], the difference of two systems on each query with each paired seed. Its errors repeat
in two ways: queries of one cluster (a module's docstrings) err together, and so do all queries of one seed. With u =
D - mean(D) and N = queries * seeds, the variance of the mean has two components,

    V_x = (G - 1)/G * sum over the G groups g of x of (u_g / (1 - n_g/N))^2 / N^2,    x: clusters, seeds,

where n_g and u_g are a group's size and sum of u: the jackknife over groups (MacKinnon, Nielsen & Webb, Journal of
Econometrics 232, 2023). The two are estimated from G_eff - 1 and S - 1 degrees of freedom, where clusters of unequal
size count as G_eff = N^2 / sum n_g^2 (the spirit of Carter, Schnepel & Steigerwald, Review of Economics and Statistics
99(4), 2017), and S is the number of seeds. Noise of a query with a seed is in both, so that V errs upwards.

The reference distribution is Behrens's and Fisher's: the generalised p value (Tsui & Weerahandi, JASA 84, 1989;
Barnard, Biometrika 71, 1984)

    p = E of 2 Phi(-|mean| / sqrt(V_clusters f_1 / W_1 + V_seeds f_2 / W_2)),    W_i ~ chi-square with f_i freedoms,

that is the probability that a sqrt(V_clusters) t(f_1) + sqrt(V_seeds) t(f_2) of independent Student variables is beyond
the mean. It is computed by quadrature, without sampling. Its rate of false findings is at most the
level whatever the seeds' share; Satterthwaite's approximation exceeds a small level up to three times with five seeds
(docs/protocol.md has both rates). With one seed only clusters are joined, by Student's t: the test then speaks of these
two checkpoints, not of two ways to train.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtri, ndtr, stdtr, stdtrit

from encore.errors import EncoreError

Floats = NDArray[np.float64]
LEAST_CLUSTERS = 1.1  # in effect: below, one cluster has more than 95 % of the queries
ROUNDING = 1e-12  # a smaller error, as a share of the mean, is none
SIGNIFICANT = 0.05
POWER = 0.8
SAMPLES = 10_000
# Double-exponential rules (Takahasi & Mori, Publications of RIMS 9, 1974): the distances of nodes from an end.
_GRID = np.linspace(-4, 5, 325)
_DISTANCES = np.exp(np.pi / 2 * np.sinh(_GRID))
_ANGLES = np.linspace(0, np.pi / 2, 33)  # atan(sqrt(V_seeds / V_clusters)), where critical values are computed
_SHARES, _SHARE_WEIGHTS = np.polynomial.legendre.leggauss(40)


class Component(NamedTuple):
    """A variance of the mean, in the measure's unit squared, and the degrees of freedom it is estimated from."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Difference:
    """The mean difference of two systems, in the measure's unit, with one or two components of its variance."""

    mean: float
    components: tuple[Component, ...]
    seeds: int
    least_p: float = 0.0  # where nothing varies: that of a sign-flip test over clusters

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return float(np.sqrt(math.fsum(one.variance for one in self.components)))

    @cached_property
    def p(self) -> float:
        """The two-tailed generalised p value."""
        if not np.isfinite(self.error):
            return 1.0
        if self.error <= ROUNDING * abs(self.mean):
            return 1.0 if self.mean == 0 else self.least_p
        return 2 * _tail(abs(self.mean), self.components)

    @property
    def p_above(self) -> float:
        """The one-tailed p value of a mean that is not above 0."""
        return self.p / 2 if self.mean > 0 else 1 - self.p / 2

    def p_within(self, margin: float) -> float:
        """p of an equivalence: of a mean that is as far from 0 as ``margin``, in the measure's unit, or farther.

        It is the larger p of two one-sided tests, that of the nearer end (TOST: Schuirmann, Journal of Pharmacokinetics
        and Biopharmaceutics 15, 1987).
        """
        return replace(self, mean=margin - abs(self.mean)).p_above

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The two-sided interval of the mean difference, (lower, upper): the values that the test does not reject."""
        reach = critical_distance(1 - confidence, self.components) if np.isfinite(self.error) else np.inf
        return self.mean - reach, self.mean + reach

    def shifted(self, amount: float) -> "Difference":
        """The same with an amount added to the mean."""
        return replace(self, mean=self.mean + amount)

    def power(self, effect: float, level: float = SIGNIFICANT) -> float:
        """The probability that a two-tailed test at ``level`` finds a true difference ``effect``, in either direction.

        The estimated variances are taken as the true ones; the test sees its own estimates of them, so that one
        component gives the noncentral t distribution.
        """
        if not np.isfinite(self.error):
            return 0.0
        if self.error == 0:
            return float(effect != 0)
        seen = [one.variance * chdtri(one.freedom, (1 - _SHARES) / 2) / one.freedom for one in self.components]
        first, second = seen[0][:, None], (seen[1] if len(seen) > 1 else np.zeros(1))[None, :]
        last = self.components[-1].freedom
        angles = np.arctan2(np.sqrt(second), np.sqrt(first))
        reach = critical(level, self.components[0].freedom, last, angles) * np.sqrt(first + second)
        found = ndtr((effect - reach) / self.error) + ndtr((-effect - reach) / self.error)
        weights = _SHARE_WEIGHTS / 2
        return float(weights @ found @ (weights if len(seen) > 1 else np.ones(1)))

    def detectable(self, level: float = SIGNIFICANT) -> float:
        """The smallest true difference that a two-tailed test at ``level`` finds with probability ``POWER``.

        It is the minimum detectable effect (Bloom, Evaluation Review 19(5), 1995), by the test's own power.
        """
        if self.error in (0, np.inf):
            return self.error
        most = self.error
        while self.power(most, level) < POWER:
            most *= 2
        return float(brentq(lambda effect: self.power(effect, level) - POWER, 0, most, rtol=1e-6))


def can_be_tested(clusters: Sequence[str]) -> bool:
    """True if a spread can be estimated: from two clusters at least, and not nearly all queries in one."""
    sizes = Counter(clusters).values()
    return len(sizes) > 1 and sum(sizes) ** 2 >= LEAST_CLUSTERS * sum(size**2 for size in sizes)


def clustered(differences: Floats, clusters: Sequence[str]) -> Difference:
    """The two-way cluster-robust test of a mean difference that the module's docstring derives.

    Args:
        differences: [queries, seeds], of paired seeds.
        clusters: [queries], the cluster that each query belongs to.
    """
    return summed([(differences, clusters)])


def summed(parts: Sequence[tuple[Floats, Sequence[str]]]) -> Difference:
    """The cluster-robust test of a sum of mean differences, each over its own queries, such as several collections.

    Clusters of different parts err independently, and their variances add up; the seeds are the same models in every
    part, so a seed's errors are added before they are squared.

    Args:
        parts: of each the differences [queries, seeds], of the same seeds, and its queries' clusters [queries].
    """
    mean, of_clusters, effective = 0.0, 0.0, np.inf
    of_seeds: Floats = np.zeros(parts[0][0].shape[1])
    seeds = len(of_seeds)
    for differences, clusters in parts:
        sums, sizes = _by_cluster(differences, clusters)
        if len(sums) < 2:
            raise EncoreError("a significance test needs queries of at least 2 clusters; use more queries")
        own = float(sums.sum() / (sizes.sum() * seeds))
        deviations = (sums - own * sizes[:, None]) / (sizes.sum() * seeds)
        mean += own
        of_clusters += _jackknife(deviations.sum(axis=1), sizes / sizes.sum())
        of_seeds = of_seeds + deviations.sum(axis=0)
        own_effective = float(sizes.sum() ** 2 / (sizes**2).sum())
        if own_effective < LEAST_CLUSTERS:
            raise EncoreError(
                "a significance test needs several clusters, and one has nearly all queries; use more queries"
            )
        effective = min(effective, own_effective)
    components = [Component(of_clusters, effective - 1)]
    if seeds > 1:
        components.append(Component(_jackknife(of_seeds, np.full(seeds, 1 / seeds)), seeds - 1))
    return Difference(mean, tuple(components), seeds, 2.0 ** (1 - sum(len(set(each)) for _, each in parts)))


def paired_t(differences: Floats) -> float:
    """p of the papers' own test: two-tailed paired t over queries, as if they were independent (Student 1908).

    Args:
        differences: [queries], the mean over seeds or one seed's.
    """
    count = len(differences)
    if count < 2:
        raise EncoreError("a paired t-test needs at least 2 queries; use more queries")
    variance = float(differences.var(ddof=1)) / count
    return Difference(float(differences.mean()), (Component(variance, count - 1),), 1).p


def randomised(tests: Sequence[Floats], clusters: Sequence[str], samples: int = SAMPLES) -> list[float]:
    """p of two-tailed randomisation tests: signs flip for whole clusters, after averaging over seeds.

    Without clusters this is Fisher's test as in Smucker, Allan & Carterette (CIKM 2007). The observed order is counted
    among the samples, so p is never 0 (Phipson & Smyth 2010). It knows nothing of the variance between seeds.

    Args:
        tests: of each its differences [queries, seeds]. All tests see the same samples.
        clusters: [queries], the cluster that each query belongs to.
    """
    sums = np.stack([_by_cluster(differences, clusters)[0].mean(axis=1) for differences in tests], axis=1)
    generator = np.random.default_rng(0)
    rounding = 1e-10 * np.abs(sums).sum(axis=0)  # of a sum that is equal, also where what is added nearly cancels out
    observed = np.abs(sums.sum(axis=0)) - rounding
    larger = np.zeros(len(tests), dtype=np.int64)
    for start in range(0, samples, 1000):
        signs = 2.0 * generator.integers(0, 2, (min(1000, samples - start), len(sums))) - 1
        larger += (np.abs(signs @ sums) >= observed).sum(axis=0)
    return [float(p) for p in (larger + 1) / (samples + 1)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of one family (Holm, Scandinavian Journal of Statistics 1979), in the order given."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _by_cluster(differences: Floats, clusters: Sequence[str]) -> tuple[Floats, NDArray[np.int64]]:
    """Sums [clusters, seeds] of the differences, and how many queries each cluster has [clusters]."""
    if len(clusters) != len(differences):
        raise EncoreError(f"{len(differences)} differences with {len(clusters)} clusters; evaluate both runs again")
    member = _members(tuple(clusters))
    sizes = np.bincount(member)
    sums = np.zeros((len(sizes), differences.shape[1]))
    np.add.at(sums, member, differences)
    return sums, sizes


@lru_cache(maxsize=32)
def _members(clusters: tuple[str, ...]) -> NDArray[np.int64]:
    """For each query the place of its cluster among their sorted names."""
    return np.unique(np.asarray(clusters), return_inverse=True)[1]


def _jackknife(sums: Floats, shares: Floats) -> float:
    """V_x, from the sum of deviations over N and the share of the data of each group [groups]."""
    return float((len(sums) - 1) / len(sums) * ((sums / (1 - shares)) ** 2).sum())


def _tail(beyond: float, components: Sequence[Component]) -> float:
    """P(sqrt(V_1) t(f_1) + sqrt(V_2) t(f_2) < -beyond): the expectation of one's distribution function over the other.

    The expectation is over the smaller one, in three parts: below and above the value that is beyond by itself, and
    above 0. Nodes are the denser the nearer to these two ends, whatever the ratio of the scales there.
    """
    inner, *outer = sorted((one for one in components if one.variance > 0), reverse=True)
    scale = np.sqrt(inner.variance)
    if not outer:
        return float(stdtr(inner.freedom, -beyond / scale))
    (variance, freedom), slopes = outer[0], _DISTANCES * np.cosh(_GRID)
    end, share = beyond / np.sqrt(variance), 1 / (1 + _DISTANCES**2)
    nodes = np.concatenate([-end - _DISTANCES, -end * share, _DISTANCES])
    widths = np.concatenate([slopes, 2 * end * slopes * _DISTANCES * share**2, slopes])
    weights = widths * (1 + nodes**2 / freedom) ** (-(freedom + 1) / 2)
    return float(weights @ stdtr(inner.freedom, (-beyond - np.sqrt(variance) * nodes) / scale) / weights.sum())


def critical_distance(level: float, components: Sequence[Component]) -> float:
    """How far from 0 a mean is when its two-tailed p value is ``level``."""
    known = [one for one in components if one.variance > 0]
    if not known:
        return 0.0
    most = 2 * math.fsum(np.sqrt(one.variance) * stdtrit(one.freedom, 1 - level / 2) for one in known)
    return float(brentq(lambda beyond: 2 * _tail(beyond, known) - level, 0, most, rtol=1e-10))


@lru_cache(maxsize=256)
def _critical_values(level: float, first: float, second: float) -> Floats:
    """Critical values, in standard errors, at ``_ANGLES`` of two components with these degrees of freedom."""
    return np.array(
        [
            critical_distance(level, (Component(np.cos(angle) ** 2, first), Component(np.sin(angle) ** 2, second)))
            for angle in _ANGLES
        ]
    )


def critical(level: float, first: float, second: float, angles: Floats) -> Floats:
    """The critical values of the two-tailed test, in standard errors, interpolated to four digits.

    Args:
        first, second: the degrees of freedom of the two components.
        angles: any shape, the arc tangent of the root of the second variance over the first; 0 without a second.
    """
    if not angles.any():
        return np.full(angles.shape, stdtrit(first, 1 - level / 2))
    return np.interp(angles, _ANGLES, _critical_values(level, first, second))

"""Whether two systems differ: one test that joins queries and seeds, the papers' t-test, and a randomisation test.

The data is D [queries, seeds], the difference of two systems on each query with each paired seed. Its errors repeat
in two ways: queries of one cluster (a module's docstrings) err together, and so do all queries of one seed. With u =
D - mean(D) and N = queries * seeds, the two-way cluster-robust variance of the mean is

    V = V_clusters + V_seeds - V_both,    V_x = (G - 1)/G * sum over the G groups g of x of (u_g / (1 - n_g/N))^2 / N^2,

where n_g and u_g are a group's size and sum of u, and the groups of "both" are pairs of a cluster and a seed
(Cameron, Gelbach & Miller, Journal of Business & Economic Statistics 29(2), 2011). V is floored at the larger one-way
term, since the difference can come out too small with few groups. V_x is the jackknife over groups. With equal groups
it is the usual G/(G - 1) * sum u_g^2 / N^2; that form is too small where some modules are large, as ours are
(MacKinnon, Nielsen & Webb, Journal of Econometrics 232, 2023). The mean over its root is compared with a t
distribution of min(clusters, seeds) - 1 degrees of freedom, where clusters of unequal size count as N^2 / sum n_g^2
(the spirit of Carter, Schnepel & Steigerwald, Review of Economics and Statistics 99(4), 2017). With one seed only
clusters are joined: the test then speaks of these two checkpoints, not of two ways to train.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from encore.errors import EncoreError

Floats = NDArray[np.float64]
SIGNIFICANT = 0.05
POWER = 0.8
SAMPLES = 10_000


@dataclass(frozen=True)
class Difference:
    """The mean difference of two systems, in the measure's unit, with its standard error; ``p`` is two-tailed."""

    mean: float
    error: float
    freedom: float
    p: float
    seeds: int

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The two-sided confidence interval of the mean difference: (lower, upper), by the t distribution."""
        reach = _quantile(0.5 + confidence / 2, self.freedom) * self.error
        return self.mean - reach, self.mean + reach

    def shifted(self, amount: float) -> "Difference":
        """The same with an amount added to the mean, and the p value of that."""
        mean = self.mean + amount
        return replace(self, mean=mean, p=_two_tailed(mean, self.error, self.freedom))

    def detectable(self, level: float = SIGNIFICANT, power: float = POWER) -> float:
        """The smallest true difference that a two-tailed test at ``level`` would show with probability ``power``.

        (t[1 - level/2] + t[power]) * error: the usual approximation (Bloom, Evaluation Review 19(5), 1995).
        """
        return (_quantile(1 - level / 2, self.freedom) + _quantile(power, self.freedom)) * self.error


def clustered(differences: Floats, clusters: Sequence[str]) -> Difference:
    """The two-way cluster-robust test of a mean difference that the module's docstring derives.

    Args:
        differences: [queries, seeds], of paired seeds.
        clusters: [queries], the cluster that each query belongs to.

    Raises:
        EncoreError: fewer than two clusters, so that nothing can be said about the spread.
    """
    return summed([(differences, clusters)])


def summed(parts: Sequence[tuple[Floats, Sequence[str]]]) -> Difference:
    """The cluster-robust test of a sum of mean differences, each over queries of its own, such as several collections.

    Clusters of different parts err independently, and their variances add up; the seeds are the same models in every
    part, so a seed's errors are added before they are squared.

    Args:
        parts: of each the differences [queries, seeds], of the same seeds, and its queries' clusters [queries].

    Raises:
        EncoreError: a part has fewer than two clusters, so that nothing can be said about the spread.
    """
    mean, of_clusters, of_both, effective = 0.0, 0.0, 0.0, np.inf
    of_seeds: Floats = np.zeros(parts[0][0].shape[1])
    seeds = len(of_seeds)
    for differences, clusters in parts:
        sums, sizes = _by_cluster(differences, clusters)
        if len(sums) < 2:
            raise EncoreError("a significance test needs queries of at least 2 clusters; use more queries")
        own, shares = float(sums.sum() / (sizes.sum() * seeds)), sizes / sizes.sum()
        deviations = (sums - own * sizes[:, None]) / (sizes.sum() * seeds)
        mean += own
        of_clusters += _jackknife(deviations.sum(axis=1), shares)
        of_both += _jackknife(deviations.ravel(), np.repeat(shares / seeds, seeds))
        of_seeds = of_seeds + deviations.sum(axis=0)
        effective = min(effective, float(sizes.sum() ** 2 / (sizes**2).sum()))
    variance, freedom = of_clusters, effective - 1
    if seeds > 1:
        between = _jackknife(of_seeds, np.full(seeds, 1 / seeds))
        variance, freedom = max(of_clusters + between - of_both, of_clusters, between), min(effective, seeds) - 1
    error = float(np.sqrt(variance))
    return Difference(mean, error, freedom, _two_tailed(mean, error, freedom), seeds)


def paired_t(differences: Floats) -> float:
    """p of the papers' own test: two-tailed paired t over queries, as if they were independent (Student 1908).

    Args:
        differences: [queries], the mean over seeds or one seed's.

    Raises:
        EncoreError: fewer than two queries.
    """
    count = len(differences)
    if count < 2:
        raise EncoreError("a paired t-test needs at least 2 queries; use more queries")
    error = float(differences.std(ddof=1)) / count**0.5
    return _two_tailed(float(differences.mean()), error, count - 1)


def randomised(differences: Floats, clusters: Sequence[str], samples: int = SAMPLES, seed: int = 0) -> float:
    """p of a two-tailed randomisation test: signs flip for whole clusters, after averaging over seeds [queries, seeds].

    Without clusters this is Fisher's test as in Smucker, Allan & Carterette (CIKM 2007). The observed order is counted
    among the samples, so p is never 0 (Phipson & Smyth 2010). It knows nothing of the variance between seeds.
    """
    sums = _by_cluster(differences, clusters)[0].mean(axis=1)
    generator = np.random.default_rng(seed)
    observed = abs(sums.sum()) * (1 - 1e-12)  # rounding must not make an equal sum look smaller
    larger = 0
    for start in range(0, samples, 1000):
        signs = 2.0 * generator.integers(0, 2, (min(1000, samples - start), len(sums))) - 1
        larger += int((np.abs(signs @ sums) >= observed).sum())
    return (larger + 1) / (samples + 1)


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
    names, member = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.zeros((len(names), differences.shape[1]))
    np.add.at(sums, member, differences)
    return sums, np.bincount(member)


def _jackknife(sums: Floats, shares: Floats) -> float:
    """V_x, from the sum of deviations over N and the share of the data of each group [groups]."""
    return float((len(sums) - 1) / len(sums) * ((sums / (1 - shares)) ** 2).sum())


def _two_tailed(mean: float, error: float, freedom: float) -> float:
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stdtr(freedom, -abs(mean / error)))


def _quantile(probability: float, freedom: float) -> float:
    return float(stdtrit(freedom, probability))

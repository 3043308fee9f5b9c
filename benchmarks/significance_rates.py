"""How often the test of ``encore.evaluation.significance`` errs, and what it finds: the two tables of docs/protocol.md.

    python benchmarks/significance_rates.py

Scores of MS MARCO's size are planted: 6,980 queries, on which a paired difference deviates by .15 whatever the seed and
by .20 more with each, and systems that deviate by so much from seed to seed. Verdicts are planted on clusters of
unequal size, with objectives that share the queries, the seeds, none and the control, as the rows of a table do.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from encore.evaluation.significance import Component, Difference, Floats, clustered, critical
from encore.products.tables import comparisons
from encore.products.tables.comparisons import RowComparison, correct

LEVELS = (0.05, 0.05 / 8, 0.05 / 24)
DEVIATIONS = (0.0, 0.003, 0.006, 0.01, 0.03)
MODULES = np.round(60 / np.arange(1, 31) ** 0.7).astype(int)  # queries of 30 clusters, 6 to 60
QUERIES, OF_QUERIES, OF_BOTH = 6980, 0.15, 0.20


@dataclass(frozen=True)
class World:
    """Paired differences of two systems, as they vary: standard deviations in the measure's unit."""

    seeds: int
    of_seeds: float  # of one system over seeds
    queries: int = QUERIES
    of_queries: float = OF_QUERIES  # of the difference on a query, the same for all seeds
    of_both: float = OF_BOTH  # of the difference on a query, with each seed anew

    def components(self) -> tuple[Component, Component]:
        """What the test estimates on average: the variances of clusters and of seeds."""
        of_clusters = (self.of_queries**2 + self.of_both**2 / self.seeds) / self.queries
        of_seeds = (2 * self.of_seeds**2 + self.of_both**2 / self.queries) / self.seeds
        return Component(of_clusters, self.queries - 1), Component(of_seeds, self.seeds - 1)

    def detectable(self, level: float) -> float:
        """The smallest gain found with 80 % power."""
        return Difference(0.0, self.components(), self.seeds).detectable(level)


def rates(world: World, gain: float, draws: int, seed: int = 0) -> list[float]:
    """The share of draws in which a true gain is found, in either direction, for each of ``LEVELS``.

    Normal scores of queries that are clusters of their own: mean and both variances are independent, so they are drawn.
    """
    generator = np.random.default_rng(seed)
    of_clusters, of_seeds = world.components()
    both_twice = world.of_both**2 / (world.seeds * world.queries)
    error = (of_clusters.variance + of_seeds.variance - both_twice) ** 0.5
    mean = gain + error * generator.standard_normal(draws)
    first, second = (
        one.variance * generator.chisquare(one.freedom, draws) / one.freedom for one in (of_clusters, of_seeds)
    )
    angles = np.arctan2(np.sqrt(second), np.sqrt(first))
    reach = [critical(level, of_clusters.freedom, of_seeds.freedom, angles) for level in LEVELS]
    return [float((np.abs(mean) > each * np.sqrt(first + second)).mean()) for each in reach]


def unequal_rates(seeds: int, of_seeds: float, draws: int, of_clusters: float = 0.05, seed: int = 0) -> list[float]:
    """The share of draws in which equal systems are told apart, for each of ``LEVELS``, over clusters of unequal size.

    Args:
        of_seeds: deviation of one system over seeds; ``of_clusters`` that of one system over ``MODULES``.
    """
    means, first, second, freedom = statistics(planted(seeds, of_seeds, draws, of_clusters, seed))
    angles = np.arctan2(np.sqrt(second), np.sqrt(first))
    reach = [critical(level, freedom, seeds - 1, angles) for level in LEVELS]
    return [float((np.abs(means) > each * np.sqrt(first + second)).mean()) for each in reach]


def planted(seeds: int, of_seeds: float, draws: int, of_clusters: float, seed: int) -> Floats:
    """Sums over the queries of each cluster of the difference of two equal systems, [draws, clusters, seeds].

    Each query deviates by .15, and by .15 more with each seed, in either system.
    """
    draw, sizes = np.random.default_rng(seed).standard_normal, MODULES[:, None]
    whole = of_clusters * draw((draws, len(MODULES), 1)) + of_seeds * draw((draws, 1, seeds))
    queries = 0.15 * draw((draws, len(MODULES), 1)) + 0.15 * draw((draws, len(MODULES), seeds))
    found: Floats = 2**0.5 * (sizes * whole + np.sqrt(sizes) * queries)
    return found


def statistics(sums: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Means, variances of clusters and of seeds, [draws] each, and the freedom of clusters, as ``clustered`` has them.

    Args:
        sums: [draws, clusters, seeds], over the queries of ``MODULES``.
    """
    clusters, seeds = sums.shape[1:]
    shares = MODULES / MODULES.sum()
    means = sums.sum((1, 2)) / (MODULES.sum() * seeds)
    deviations = (sums - means[:, None, None] * MODULES[:, None]) / (MODULES.sum() * seeds)
    first = (clusters - 1) / clusters * ((deviations.sum(2) / (1 - shares)) ** 2).sum(1)
    second = (seeds - 1) / seeds * ((deviations.sum(1) / (1 - 1 / seeds)) ** 2).sum(1)
    return means, first, second, float(1 / (shares**2).sum() - 1)


def wrong_verdicts(seeds: int, of_seeds: float, gains: Floats, draws: int, seed: int = 0) -> float:
    """The share of tables with a verdict that their truth forbids.

    Args:
        gains: [objectives, 2] of the true differences to none and to the control; a verdict ``reproduced`` is wrong
            where either is not above 0, ``contradicted`` where neither is below.
    """
    generator = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(MODULES)).astype(str), MODULES)
    wrong = 0
    for _ in range(draws):
        systems = len(gains) + 2  # none, control and the objectives
        scores = 0.05 * generator.standard_normal((systems, len(MODULES), 1)).repeat(MODULES, axis=1)
        scores = scores + 0.15 * generator.standard_normal((systems, len(clusters), 1))
        scores = scores + of_seeds * generator.standard_normal((systems, 1, seeds))
        scores = scores + 0.15 * generator.standard_normal((systems, len(clusters), seeds))
        compared = {
            ("", str(row), ""): {
                name: RowComparison(clustered(own[place] + scores[2 + row] - scores[place], list(clusters)), 1.0, 1.0)
                for place, name in enumerate(("none", "control"))
            }
            for row, own in enumerate(gains)
        }
        correct(compared, list(compared), ["none", "control"])
        found = [comparisons.objective_verdict(list(own.values()), proxy_data=False) for own in compared.values()]
        wrong += any(_is_wrong(verdict, *own) for verdict, own in zip(found, gains, strict=True))
    return wrong / draws


def _is_wrong(verdict: str, over_none: float, over_control: float) -> bool:
    return {
        "reproduced": min(over_none, over_control) <= 0,
        "contradicted": min(over_none, over_control) >= 0,
        comparisons.NOT_BEYOND: not over_none > 0 > over_control,
    }.get(verdict, False)


def main() -> None:
    """Print both tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200_000)
    draws = parser.parse_args().draws
    print("| seeds | level | " + " | ".join(f"{each:g}" for each in DEVIATIONS) + " |")
    print("| --- " * (len(DEVIATIONS) + 2) + "|")
    for seeds in (3, 5, 10):
        found = [rates(World(seeds, each), 0.0, draws) for each in DEVIATIONS]
        for place, level in enumerate(LEVELS):
            print(f"| {seeds} | {level:.5f} | " + " | ".join(f"{each[place]:.5f}" for each in found) + " |")
    print("\n| seeds | deviation | .008 | .010 | .015 | found with 80 % power |\n| --- | --- | --- | --- | --- | --- |")
    for seeds in (3, 5, 7, 10):
        for deviation in (0.002, 0.003, 0.004):
            world = World(seeds, deviation)
            power = [f"{rates(world, gain, draws)[1]:.2f}" for gain in (0.008, 0.010, 0.015)]
            print(f"| {seeds} | {deviation} | " + " | ".join(power) + f" | {world.detectable(LEVELS[1]):.4f} |")


if __name__ == "__main__":
    main()

"""How often the test of ``encore.evaluation.significance`` errs, and what it finds: the tables of docs/protocol.md.

    python benchmarks/significance_rates.py

Scores of MS MARCO's size are planted: 6,980 queries, on which a paired difference deviates by .15 whatever the seed and
by .20 more with each, and systems that deviate by so much from seed to seed. Verdicts are planted on clusters of
unequal size, with objectives that share the queries, the seeds, none and the control, as the rows of a table do.
"""

from __future__ import annotations

import argparse
import json
import tarfile
from collections import Counter
from dataclasses import dataclass
from importlib import resources
from typing import IO

import numpy as np
from numpy.typing import NDArray

from encore.evaluation.families import PairedDifference, correct
from encore.evaluation.significance import SIGNIFICANT, Component, Difference, Floats, clustered, critical
from encore.products.tables.comparisons import NOT_BEYOND, objective_verdict

LEVELS = (0.05, 0.05 / 8, 0.05 / 24)
DEVIATIONS = (0.0, 0.003, 0.006, 0.01, 0.03)
MODULES = np.round(60 / np.arange(1, 31) ** 0.7).astype(int)  # queries of 30 clusters, 6 to 60
QUERIES, OF_QUERIES, OF_BOTH = 6980, 0.15, 0.20
SHIPPED = (0.01, 0.10, 0.17)  # of a difference on the shipped data: by cluster, by query, by query and seed
VERDICTS = ((5, 0.003), (5, 0.005), (10, 0.003), (10, 0.005))  # seeds, and the deviation of one system over them


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
                name: PairedDifference(
                    clustered(own[place] + scores[2 + row] - scores[place], list(clusters)), 1.0, 1.0
                )
                for place, name in enumerate(("none", "control"))
            }
            for row, own in enumerate(gains)
        }
        correct(compared, list(compared), ["none", "control"])
        found = [objective_verdict(list(own.values()), proxy_data=False) for own in compared.values()]
        wrong += any(_is_wrong(verdict, *own) for verdict, own in zip(found, gains, strict=True))
    return wrong / draws


def shipped_clusters() -> NDArray[np.int64]:
    """The queries of each cluster of the default's test split, from the text that is shipped."""
    shipped = resources.files("encore.datasets") / "embedded/pydocs.tar.xz"
    with resources.as_file(shipped) as path, tarfile.open(path) as archive:
        judged = {line.split(b"\t")[0].decode() for line in _member(archive, "pydocs/qrels/test.tsv")}
        queries = map(json.loads, _member(archive, "pydocs/queries.jsonl"))
        counts = Counter(each["metadata"]["cluster"] for each in queries if each["_id"] in judged)
    return np.array(list(counts.values()))


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name)
    assert file is not None
    return file


@dataclass(frozen=True)
class VerdictRates:
    """Shares: of tables with a wrong verdict (family-wise), of true gains that hold, of comparisons shown."""

    fwer: float
    holds: float
    one_comparison: float


def verdict_rates(
    sizes: NDArray[np.int64], seeds: int, of_seeds: float, gains: Floats, draws: int, seed: int = 0
) -> VerdictRates:
    """The rates of the verdict that tables give, above none and above control, by Holm over the objectives.

    Args:
        sizes: queries of each cluster.
        of_seeds: deviation of one system over seeds; ``SHIPPED`` has the others.
        gains: of each objective, over none and over control alike.
        draws: tables; each query's scores are normal, so that only sums over clusters are drawn.
    """
    generator, count, found = np.random.default_rng(seed), len(gains), []
    shares, total = sizes / sizes.sum(), sizes.sum()
    of_cluster, of_query, of_both = (each / 2**0.5 for each in SHIPPED)  # of one system
    lasting = np.sqrt(sizes**2 * of_cluster**2 + sizes * of_query**2)[:, None]
    passing = np.sqrt(sizes)[:, None] * of_both
    for _ in range(draws):
        sums = lasting * generator.standard_normal((count + 2, len(sizes), 1))
        sums = sums + passing * generator.standard_normal((count + 2, len(sizes), seeds))
        sums += sizes[:, None] * of_seeds * generator.standard_normal((count + 2, 1, seeds))
        apart = sums[2:, None] - sums[None, :2]  # [objectives, none and control, clusters, seeds]
        means = apart.sum((2, 3)) / (total * seeds)
        left = (apart - means[..., None, None] * sizes[:, None]) / (total * seeds)
        of_clusters = (len(sizes) - 1) / len(sizes) * ((left.sum(3) / (1 - shares)) ** 2).sum(2)
        found.append((means + gains[:, None], of_clusters, seeds / (seeds - 1) * (left.sum(2) ** 2).sum(2)))
    means, first, second = (np.stack(each) for each in zip(*found, strict=True))
    angles, error = np.arctan2(np.sqrt(second), np.sqrt(first)), np.sqrt(first + second)
    freedom = float(1 / (shares**2).sum() - 1)
    levels = [critical(SIGNIFICANT / (count - step), freedom, seeds - 1, angles) for step in range(count)]
    beyond = np.stack([np.abs(means) > each * error for each in levels])  # [levels, draws, objectives, comparators]
    holds = step_down(np.all(beyond & (means > 0), axis=3))
    below = np.stack([step_down(beyond[..., place]) & (means[..., place] < 0) for place in (0, 1)]).any(0)
    true = gains > 0
    wrong = ((holds | below) & ~true).any(1) | (below & true).any(1)
    power = [float(each[:, true].mean()) if true.any() else 0.0 for each in (holds, beyond[0, ..., 0])]
    return VerdictRates(float(wrong.mean()), *power)


def step_down(significant: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What Holm's procedure rejects [draws, tests], from what is significant at each of its levels, the first first."""
    needed = np.arange(1, len(significant) + 1)[:, None]
    steps = np.logical_and.accumulate(significant.sum(2) >= needed).sum(0)
    last = np.take_along_axis(significant, np.maximum(steps - 1, 0)[None, :, None], axis=0)[0]
    return last & (steps > 0)[:, None]


def _is_wrong(verdict: str, over_none: float, over_control: float) -> bool:
    return {
        "reproduced": min(over_none, over_control) <= 0,
        "contradicted": min(over_none, over_control) >= 0,
        NOT_BEYOND: not over_none > 0 > over_control,
    }.get(verdict, False)


def main() -> None:
    """Print the tables as Markdown."""
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
    print("\n| seeds | deviation | objectives | FWER | one, .010 | one, .015 | all, .010 | all, .015 | comparison |")
    print("| --- " * 9 + "|")
    for seeds, deviation in VERDICTS:
        for count in (7, 19):
            print(
                f"| {seeds} | {deviation} | {count} | " + " | ".join(verdict_row(seeds, deviation, count, 2000)) + " |"
            )


def verdict_row(seeds: int, deviation: float, count: int, draws: int) -> list[str]:
    """The cells of a line of the protocol's table of verdicts on the shipped data."""
    one, sizes = np.eye(1, count)[0], shipped_clusters()
    worlds = [0 * one, 0.010 * one, 0.015 * one, 0.010 + 0 * one, 0.015 + 0 * one]
    found = [verdict_rates(sizes, seeds, deviation, gains, draws) for gains in worlds]
    power = [each.holds for each in found[1:]]
    return [f"{found[0].fwer:.3f}", *(f"{each:.2f}" for each in power), f"{found[1].one_comparison:.2f}"]


if __name__ == "__main__":
    main()

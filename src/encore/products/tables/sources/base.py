"""The interface of a source of a column's values, and the values it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from encore.evaluation.scores import Scored, exact_mean
from encore.evaluation.significance import clustered
from encore.products.slices import Unit
from encore.products.tables.layout import CellSlice, Column, Layout

Best = Literal["highest", "lowest"] | None


@dataclass(frozen=True)
class CellScores:
    """A row under a column: the judged queries, and one ``Scored`` for each seed, all over the same queries."""

    seeds: list[int | None]
    scored: list[Scored]

    @property
    def queries(self) -> list[str]:
        """Ids of the judged queries, the same for all seeds."""
        return self.scored[0].queries

    @property
    def clusters(self) -> list[str]:
        """The cluster of each query, in the order of ``queries``."""
        return self.scored[0].clusters

    def means(self) -> list[float]:
        """The measure's mean over queries, for each seed; exactly rounded, so that machines cannot differ."""
        return [exact_mean(one.values) for one in self.scored]

    def tie_interval(self) -> tuple[float, float]:
        """Lowest and highest mean over all orders of tied scores, averaged over seeds."""
        low, high = ([exact_mean(getattr(one, end)) for one in self.scored] for end in ("low", "high"))
        return exact_mean(low), exact_mean(high)

    def interval(self) -> tuple[float, float] | None:
        """The 95 % cluster-robust interval of the mean over queries and seeds; None for a single cluster.

        See ``evaluation.significance.clustered``.
        """
        if len(set(self.clusters)) < 2:
            return None
        return clustered(np.stack([one.values for one in self.scored], axis=1), self.clusters).interval()

    def answered(self) -> int:
        """Queries that the run of every seed has an answer to."""
        return int(np.logical_and.reduce([one.answered for one in self.scored]).sum())


@dataclass(frozen=True)
class CellValues:
    """What stands in a cell: a value for each seed, one under no seed where there is no chance in it.

    ``ties``: the lowest and highest value over all orders of tied scores. ``queries``: what differences are tested on.
    """

    seeds: list[int | None]
    means: list[float]
    ties: tuple[float, float] | None = None
    queries: CellScores | None = None

    def under(self, seed: int | None) -> float:
        """The value under a seed; the only one where there is no chance in it."""
        return self.means[0 if self.seeds == [None] else self.seeds.index(seed)]


class CellSource(ABC):
    """One kind of values. It is made once and knows nothing of a table."""

    best: ClassVar[Best] = None  # which of a column's values is set in bold

    @abstractmethod
    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """What stands in a cell, from its folders or from the cells that it is made of; None where nothing does.

        Raises:
            EncoreError: what is read is missing or damaged, or lacks what is asked for.
        """

    @abstractmethod
    def named(self, request: CellSlice, column: Column) -> str:
        """What the tidy CSV calls it, under ``measure``."""

    @abstractmethod
    def shown(self, value: float, unit: Unit) -> str:
        """An amount as people read it in a table of that unit."""

    def unit(self, request: CellSlice, unit: Unit) -> str:
        """The unit in which people read its amounts in a table of that unit; empty for a count."""
        return ""

    def in_our_unit(self, printed: float, unit: Unit) -> float:
        """A number that a paper prints in a table of that unit, as our values are."""
        return printed

    def notes(self, layout: Layout) -> list[str]:
        """Notes below the table on how these values were measured."""
        return []


class ShareSource(CellSource):
    """Values between 0 and 1, which a table may show in percent: three digits, or two of a percent."""

    best: ClassVar[Best] = "highest"

    def shown(self, value: float, unit: Unit) -> str:
        """A share with two digits in percent, or with three between 0 and 1."""
        return f"{100 * value:.2f}" if unit == "percent" else f"{value:.3f}"

    def unit(self, request: CellSlice, unit: Unit) -> str:
        """The table's own."""
        return unit

    def in_our_unit(self, printed: float, unit: Unit) -> float:
        """A printed number as a share between 0 and 1."""
        return printed / 100 if unit == "percent" else printed

"""Columns of measures of runs, of means and gains over other columns, and of what only a paper prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.tables.grid import CellRequest, Column, ColumnFields, GainEntry, Grid, Row
from encore.products.tables.sources.base import CellSource, CellValues, Parts, ShareSource, topics_of

if TYPE_CHECKING:
    from encore.products.tables.cell_scores import CellScores

OWN, OTHER = "own", "other"  # what the parts of a gain are called


class Measures(ShareSource):
    """A measure on a split, read from the scores of the cell's runs."""

    field = (str, Field("", description="The source of the values: a measure of the split, by its printed name."))
    needs = ("system", "dataset", "split")
    averaged = True

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The scores of the system's run over the queries of the split."""
        fields, topics = plan.resolve.dataset(request.dataset).fields, topics_of(plan, request)
        if request.value not in (measures := fields.splits[request.split].measures):
            near = nearest(request.value, measures)
            raise EncoreError(
                f"{request.value!r} is not measured on split {request.split!r} of {request.dataset!r}{near}"
            )
        seeds: list[int | None] = list(plan.config.seeds) if plan.resolve.has_chance(request.system) else [None]
        scores = ((seed, plan.scores(request.system, seed, request.dataset, topics)) for seed in seeds)
        return request.reading(scores, plan.collection(request.dataset), expression=measures[request.value])

    def values(self, request: CellRequest, parts: Parts) -> CellValues | None:
        """None for a row that was not run, or a split that the collection cannot have."""
        found = self.queries(request)
        return CellValues(found.seeds, found.means(), found.tie_interval(), found) if found else None

    def queries(self, request: CellRequest) -> CellScores | None:
        """The scores of the cell's runs."""
        from encore.products.tables.cell_scores import read_cell

        return read_cell(request)


def most_seeds(of_parts: Iterable[list[int | None]]) -> list[int | None]:
    """The seeds of the part that has most; no seed (``[None]``), where nothing is drawn, is fewer than one."""
    return max(of_parts, key=lambda seeds: (seeds != [None], len(seeds)))


class MeanSource(ShareSource):
    """The unweighted mean of a row's cells, for each seed; nothing where one of them has nothing.

    It is a mean of sets, not of queries, so no test over queries says anything about it, and it is never compared.
    """

    field = (list[str], ColumnFields.model_fields["mean_of"])
    averaged = True

    def parts(self, row: Row, column: Column) -> dict[str, tuple[str, str]]:
        """The row's cells under the columns."""
        return {part: (row.id, part) for part in column.mean_of}

    def values(self, request: CellRequest, parts: Parts) -> CellValues | None:
        """The mean of the columns under each seed; None where one of them has no value."""
        from encore.evaluation.scores import exact_mean

        found = [part for part in parts.values() if part is not None]
        if len(found) < len(parts):
            return None
        seeds = most_seeds(part.seeds for part in found)
        if any(part.seeds not in (seeds, [None]) for part in found):
            raise EncoreError(f"{' and '.join(parts)} were run under different seeds, so they have no mean for each")
        means = [exact_mean([part.under(seed) for part in found]) for seed in seeds]
        ties = [part.ties for part in found if part.ties is not None]
        low, high = (exact_mean([tie[end] for tie in ties]) for end in (0, 1))
        return CellValues(seeds, means, (low, high))

    def named(self, request: CellRequest, column: Column) -> str:
        """The mean with the ids of its columns."""
        return f"mean of {' '.join(column.mean_of)}"

    def notes(self, own: Sequence[Column], grid: Grid) -> list[str]:
        """What each mean is over."""
        labels = {column.id: column.label for column in grid.columns}
        return [
            f"{column.label}: the mean of {', '.join(labels[part] for part in column.mean_of)}; not tested."
            for column in own
        ]


class GainSource(ShareSource):
    """The difference of two cells, for each seed that both have; nothing is tested on it that is not on the cells."""

    field = (GainEntry | None, ColumnFields.model_fields["gain"])
    best = None
    name = "gain of {column.gain.of} over {column.gain.over}"

    def parts(self, row: Row, column: Column) -> dict[str, tuple[str, str]]:
        """The row's cell, and that of the other row; nothing for the other row itself, which gains nothing."""
        if column.gain is None or column.gain.over == row.id:
            return {}
        return {OWN: (row.id, column.gain.of), OTHER: (column.gain.over, column.gain.of)}

    def values(self, request: CellRequest, parts: Parts) -> CellValues | None:
        """Differences of the two rows under the seeds that both have; None without such a seed or without a value."""
        own, other = parts.get(OWN), parts.get(OTHER)
        if own is None or other is None:
            return None
        seeds = most_seeds([own.seeds, other.seeds])
        shared = [seed for seed in seeds if all(seed in part.seeds or part.seeds == [None] for part in (own, other))]
        return CellValues(shared, [own.under(seed) - other.under(seed) for seed in shared]) if shared else None


class PrintedOnly(CellSource):
    """No values of ours."""

    field = (bool, Field(False, description="Or: only the paper's printed number, since nothing here measures it."))
    name = "{column.label}"

    def values(self, request: CellRequest, parts: Parts) -> CellValues | None:
        """None: such a cell has only the number that the paper prints."""
        return None

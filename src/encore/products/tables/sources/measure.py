"""Columns of measures of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.products.tables.grid import CellRequest
from encore.products.tables.sources.base import CellValues, Parts, ShareSource, topics_of

if TYPE_CHECKING:
    from encore.plan.plan import Plan
    from encore.products.tables.cell_scores import CellScores


class Measures(ShareSource):
    """A measure on a split, read from the scores of the cell's runs."""

    field = (str, Field("", description="The source of the values: a measure of the split, by its printed name."))
    needs = ("system", "dataset", "split")
    averaged = True

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The scores of the system's run over the queries of the split.

        Raises:
            EncoreError: the split is unknown, or has no such measure.
        """
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

"""Queries that occur in training, and columns of the others, since memorised answers do not show retrieval."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from encore.evaluation.scores import RELEVANT, TEXT
from encore.evaluation.significance import can_be_tested
from encore.products.tables.grid import CellRequest, Column
from encore.products.tables.layout import Layout, of_unseen
from encore.products.tables.sources.kinds import source_of

Place = tuple[str, str]  # a dataset and a split
LEAST = 0.1  # the share of queries above which the others get separate columns


@dataclass(frozen=True)
class Met:
    """How many queries a column has, how many share a text or a relevant document with training, or neither."""

    queries: int
    text: int
    relevant: int
    unseen: int
    can_be_tested: bool = True  # whether the unseen queries are of enough clusters

    @property
    def is_shown(self) -> bool:
        """True if the unseen queries have a separate column."""
        return self.can_be_tested and self.unseen < (1 - LEAST) * self.queries


def with_unseen(layout: Layout) -> Layout:
    """The table with a column of the unseen queries behind each measure of which training has met over a tenth.

    Where settings are about several splits, only cells of those that training has met have a number in it.
    """
    if layout.untrained:
        return layout
    columns: list[Column] = []
    rows = [dict(row.cells) for row in layout.rows]
    for column in layout.columns:
        columns.append(column)
        met = {} if column.hidden else met_in_training(layout, column)
        if any(each.is_shown for each in met.values()):
            name, label = of_unseen(column.id, column.label)
            columns.append(column.model_copy(update={"id": name, "label": label, "primary": False}))
            for cells in rows:
                cells[name] = _of_unseen(cells[column.id], met)
    if len(columns) == len(layout.columns):
        return layout
    widened = [row.model_copy(update={"cells": cells}) for row, cells in zip(layout.rows, rows, strict=True)]
    return layout.model_copy(update={"columns": columns, "rows": widened})


def _of_unseen(request: CellRequest, met: Mapping[Place, Met]) -> CellRequest:
    """A cell's request for the unseen queries; it reads nothing where nearly all are unseen, or too few."""
    about: dict[str, Any] = {"unseen": True, "reported": {}}
    if request.reads and not met[request.dataset, request.split].is_shown:
        about |= {"reads": [], "absent": "training has met hardly any of its queries, or nearly all"}
    return request.model_copy(update=about)


def met_in_training(layout: Layout, column: Column) -> dict[Place, Met]:
    """What training has met of a column's queries, by the dataset and split that its cells are about.

    It is empty for a column that is about no queries, or was not run.
    """
    found: dict[Place, Met] = {}
    for request in (cell for cell in layout.cells([column]) if cell.reads and not cell.unseen):
        place = request.dataset, request.split
        if place not in found and (read := source_of(column).queries(request)):
            shared = read.scored[0].shared
            clusters = [read.clusters[number] for number in np.flatnonzero(shared == 0)]
            found[place] = Met(
                queries=len(shared),
                text=int(np.count_nonzero(shared & TEXT)),
                relevant=int(np.count_nonzero(shared & RELEVANT)),
                unseen=len(clusters),
                can_be_tested=can_be_tested(clusters),
            )
    return found


def unseen_notes(layout: Layout) -> Iterator[str]:
    """How many queries training has met, a note for all columns of which that is the same."""
    labels: dict[tuple[str, Met], list[str]] = {}
    for column in () if layout.untrained else layout.columns:
        places = met_in_training(layout, column)
        for (dataset, split), met in places.items():
            if met.unseen < met.queries:
                name = layout.dataset_labels.get(dataset, dataset) + (f", split {split}" if len(places) > 1 else "")
                labels.setdefault((name, met), []).append(column.label)
    for (dataset, met), columns in labels.items():
        parts = [f"{met.relevant:,} have a relevant document that also answers a training query"]
        parts = parts if met.relevant else []
        parts += [f"{met.text:,} have the text of {'one' if parts else 'a training query'}"] if met.text else []
        others = f"; “unseen” are the other {met.unseen:,}" if met.is_shown else ""
        yield f"{', '.join(columns)}: of {met.queries:,} queries of {dataset}, {' and '.join(parts)}{others}."

"""Queries that occur in training, and columns of the others, since memorised answers do not show retrieval."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from encore.evaluation.scores import RELEVANT, TEXT
from encore.evaluation.significance import can_be_tested
from encore.products.tables.grid import Column
from encore.products.tables.layout import Layout, of_unseen
from encore.products.tables.sources.kinds import source_of

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
    """The table with a column of the unseen queries behind each measure of which training has met over a tenth."""
    columns: list[Column] = []
    rows = [dict(row.cells) for row in layout.rows]
    for column in layout.columns:
        columns.append(column)
        if not column.hidden and (met := met_in_training(layout, column)) and met.is_shown:
            name, label = of_unseen(column.id, column.label)
            more = column.model_copy(update={"id": name, "label": label, "primary": False})
            columns.append(more)
            for cells in rows:
                cells[more.id] = cells[column.id].model_copy(update={"unseen": True, "reported": {}})
    if len(columns) == len(layout.columns):
        return layout
    widened = [row.model_copy(update={"cells": cells}) for row, cells in zip(layout.rows, rows, strict=True)]
    return layout.model_copy(update={"columns": columns, "rows": widened})


def met_in_training(layout: Layout, column: Column) -> Met | None:
    """What training has met of a column's queries; None for one that is about no queries, or was not run."""
    request = next((cell for cell in layout.cells([column]) if cell.reads and not cell.unseen), None)
    found = source_of(column).queries(request) if request else None
    if found is None:
        return None
    shared = found.scored[0].shared
    clusters = [found.clusters[place] for place in np.flatnonzero(shared == 0)]
    return Met(
        queries=len(shared),
        text=int(np.count_nonzero(shared & TEXT)),
        relevant=int(np.count_nonzero(shared & RELEVANT)),
        unseen=len(clusters),
        can_be_tested=can_be_tested(clusters),
    )


def unseen_notes(layout: Layout) -> Iterator[str]:
    """How many queries training has met, a note for all columns of which that is the same."""
    labels: dict[tuple[str, Met], list[str]] = {}
    for column in layout.columns:
        if (met := met_in_training(layout, column)) and met.unseen < met.queries:
            dataset = next(cell.dataset for cell in layout.cells([column]) if cell.reads)
            labels.setdefault((layout.dataset_labels.get(dataset, dataset), met), []).append(column.label)
    for (dataset, met), columns in labels.items():
        parts = [f"{met.relevant:,} have a relevant document that also answers a training query"]
        parts = parts if met.relevant else []
        parts += [f"{met.text:,} have the text of {'one' if parts else 'a training query'}"] if met.text else []
        others = f"; “unseen” are the other {met.unseen:,}" if met.is_shown else ""
        yield f"{', '.join(columns)}: of {met.queries:,} queries of {dataset}, {' and '.join(parts)}{others}."

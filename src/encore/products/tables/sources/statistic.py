"""Columns of numbers of collections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.products.tables.grid import CellSlice, Column
from encore.products.tables.sources.base import CountSource, Reads
from encore.storage.typed import REMAKE

if TYPE_CHECKING:
    from encore.plan.plan import Plan

FILE = "statistics.json"


class Statistic(CountSource):
    """A number of a collection's ``statistics.json``."""

    field = (
        str | None,
        Field(None, description="Or: a number of the dataset's statistics.json, its keys joined by full stops."),
    )
    needs = ("dataset",)
    files = (FILE,)

    def reads(self, plan: Plan, request: CellSlice) -> Reads:
        """The collection, whose statistics the cell shows."""
        collection = plan.collection(request.dataset)
        return Reads(((None, collection),), collection.name)

    def counted(self, folder: Path, name: str) -> float:
        """The number, named by its keys with full stops between them."""
        path = folder / FILE
        try:
            found = dict(_numbers(json.loads(path.read_text())))
        except (OSError, ValueError) as error:
            raise EncoreError(f"{path} has no statistics ({error}); {REMAKE}") from error
        if name not in found:
            raise EncoreError(f"{path} has no number {name!r}{nearest(name, found)}")
        return found[name]

    def named(self, request: CellSlice, column: Column) -> str:
        """The name of the statistic."""
        return f"statistic {request.value}"


def _numbers(content: dict[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Every number with its keys, joined by full stops."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{above}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{above}{key}", float(value)

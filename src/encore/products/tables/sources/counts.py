"""Columns of counts and mean lengths, in which there is no chance: of collections, of texts in tokens, of pairs."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.products.slices import Unit
from encore.products.tables.layout import CellSlice, Column, Layout
from encore.products.tables.sources.base import CellSource, CellValues
from encore.storage.typed import REMAKE


class CountSource(CellSource):
    """One number of one folder; nothing for a cell that reads none."""

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """The number, under no seed; None where there is nothing to count.

        Raises:
            EncoreError: what is counted is missing, damaged, or lacks the number.
        """
        found = self.counted(Path(request.reads[0].folder), request.value) if request.reads else None
        return None if found is None else CellValues([None], [found])

    def counted(self, folder: Path, name: str) -> float | None:
        """The number of that name in a folder."""
        raise NotImplementedError

    def shown(self, value: float, unit: Unit) -> str:
        """A whole number, or two digits after the point."""
        return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


class Statistic(CountSource):
    """A number of a collection's ``statistics.json``."""

    def counted(self, folder: Path, name: str) -> float:
        """The number, named by its keys with full stops between them."""
        path = folder / "statistics.json"
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


class PairCounts(CountSource):
    """How many pairs of texts one epoch of a pre-training step has, or how long they are."""

    def counted(self, folder: Path, name: str) -> float:
        """A number of ``pairs.json``."""
        path = folder / "pairs.json"
        try:
            return float(json.loads(path.read_text())[name])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EncoreError(
                f"{path} counts no {name} ({error}); remove its folder and run snakemake again"
            ) from error

    def named(self, request: CellSlice, column: Column) -> str:
        """The statistic, as of an epoch."""
        return f"{request.value} of an epoch"

    def notes(self, layout: Layout) -> list[str]:
        """Which pairs are counted, and what counts as a word piece."""
        labels = dict.fromkeys(column.label for column in layout.columns if column.source == "pairs")
        about = "of one epoch of the step, whose chance is that of seed 0; word pieces as the model reads them, titles "
        return [f"{', '.join(labels)}: {about}among them and special tokens not."] if labels else []


class Tokens(CountSource):
    """The mean length of all passages, or all queries, in word pieces, before any is cut."""

    def counted(self, folder: Path, name: str) -> float | None:
        """The mean of a token store's texts, special tokens not included; None for a store without texts."""
        path = folder / f"{name}.offsets.npy"
        try:
            offsets = np.load(path, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise EncoreError(f"{path} is no part of a token store ({error}); {REMAKE}") from error
        return int(offsets[-1]) / (len(offsets) - 1) if len(offsets) > 1 else None

    def named(self, request: CellSlice, column: Column) -> str:
        """Tokens, with the kind of texts."""
        return f"tokens of {request.value}"

    def unit(self, request: CellSlice, unit: Unit) -> str:
        """Lengths are in word pieces."""
        return "word pieces"

    def shown(self, value: float, unit: Unit) -> str:
        """A number with two digits after the point."""
        return f"{value:,.2f}"


def _numbers(content: dict[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Every number with the keys above it, between which stands a full stop."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{above}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{above}{key}", float(value)

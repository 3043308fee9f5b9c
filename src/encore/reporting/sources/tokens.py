"""Columns of lengths: how many word pieces a collection's texts have in a backbone's vocabulary."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from encore.errors import EncoreError
from encore.plan.tables.layout import CellSlice, Column, Unit
from encore.reporting.sources.base import CellSource, CellValues


class Tokens(CellSource):
    """The mean over all passages, or all queries, before any is cut and without special tokens."""

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """Mean tokens of a text of a token store, special tokens not included; None for a store without texts.

        Raises:
            EncoreError: the store's offsets are missing or damaged.
        """
        if not request.reads:
            return None
        path = Path(request.reads[0].folder) / f"{request.value}.offsets.npy"
        try:
            offsets = np.load(path, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise EncoreError(f"{path} is no part of a token store ({error}); run snakemake for it again") from error
        return CellValues([None], [int(offsets[-1]) / (len(offsets) - 1)]) if len(offsets) > 1 else None

    def named(self, request: CellSlice, column: Column) -> str:
        """Tokens, with the kind of texts."""
        return f"tokens of {request.value}"

    def unit(self, request: CellSlice, unit: Unit) -> str:
        """Lengths are in word pieces."""
        return "word pieces"

    def shown(self, value: float, unit: Unit) -> str:
        """A number with two digits after the point."""
        return f"{value:,.2f}"

"""Columns of lengths of texts in word pieces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from encore.errors import EncoreError
from encore.products.slices import Unit
from encore.products.tables.grid import CellSlice, Column
from encore.products.tables.sources.base import CountSource, Reads, lineage_of
from encore.storage.typed import REMAKE

if TYPE_CHECKING:
    from encore.plan.plan import Plan


class Tokens(CountSource):
    """The mean length of all passages, or all queries, in word pieces, before any is cut."""

    field = (
        Literal["passages", "queries"] | None,
        Field(
            None, description="Or: the mean length of the dataset's texts in word pieces of the system's vocabulary."
        ),
    )
    needs = ("system", "dataset")
    files = ("passages.offsets.npy", "queries.offsets.npy")

    def reads(self, plan: Plan, request: CellSlice) -> Reads:
        """The dataset's texts in the vocabulary of the lineage's backbone; nothing for a system that is no lineage."""
        lineage = lineage_of(plan, request)
        if lineage is None:
            return Reads()
        tokens = plan.tokens(request.dataset, plan.resolve.backbone(lineage))
        return Reads(((None, tokens),), plan.collection(request.dataset).name)

    def counted(self, folder: Path, name: str) -> float | None:
        """The mean of a token store's texts, special tokens not included; None for a store without texts."""
        import numpy as np

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

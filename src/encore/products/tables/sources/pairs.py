"""Columns of what a pre-training step learns from: the pairs of texts of an epoch, and their lengths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from encore.products.tables.grid import CellSlice, Column, Grid
from encore.products.tables.sources.base import CountSource, Reads, last_pretrained, number_in

if TYPE_CHECKING:
    from encore.plan.plan import Plan


class PairCounts(CountSource):
    """How many pairs of texts one epoch of a pre-training step has, or how long they are."""

    field = (
        Literal["pairs", "tokens", "query_tokens", "document_tokens"] | None,
        Field(
            None,
            description="Or: the number of pairs, or mean tokens, in an epoch of the last pre-training step, "
            "which learns from pairs of texts.",
        ),
    )
    needs = ("system",)

    def reads(self, plan: Plan, request: CellSlice) -> Reads:
        """The pairs that the system's last pre-training step learns from; nothing where it has none."""
        last = last_pretrained(plan, request)
        return Reads(((None, plan.pairs(last)),) if last else ())

    def counted(self, folder: Path, name: str) -> float:
        """A number of ``pairs.json``."""
        return number_in(folder / "pairs.json", name)

    def named(self, request: CellSlice, column: Column) -> str:
        """The statistic, as of an epoch."""
        return f"{request.value} of an epoch"

    def notes(self, own: list[Column], grid: Grid) -> list[str]:
        """Which pairs are counted, and what counts as a word piece."""
        labels = ", ".join(dict.fromkeys(column.label for column in own))
        about = "of one epoch of the step, whose chance is that of seed 0; word pieces as the model reads them, titles "
        return [f"{labels}: {about}among them and special tokens not."] if labels else []

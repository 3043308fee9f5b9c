"""What claims are judged by: their slice of the plan, ``results/plan/claims.json``."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import field_serializer

from encore.products.claims.entries import Claim
from encore.products.figures.inspected import INSPECTION
from encore.products.slices import Product, Shape, SlicePart
from encore.products.tables.grid import CellRequest
from encore.products.tables.layout import Layout


class Claimed(SlicePart):
    """A claim and whose it is."""

    paper: str
    claim: Claim

    @field_serializer("claim")
    def _without_defaults(self, claim: Claim) -> dict[str, Any]:
        return claim.model_dump(exclude_defaults=True)


class ClaimedPoint(SlicePart):
    """A point, and what it is the mean of: a measure of a split, or without one a share that an inspection found."""

    panel: str
    line: str
    place: str
    parts: list[CellRequest]


class Gap(SlicePart):
    """A cell or a point that has no value here, and why."""

    table: str
    setting: str
    row: str
    column: str
    why: str


class ClaimsSlice(Product):
    """Claims, the tables and figures that they are about, and why some of those are unavailable here."""

    claims: dict[str, Claimed]
    shapes: dict[str, Shape]  # all rows and columns: a claim is about all, whether or not the run builds them
    tables: dict[str, Layout]
    figures: dict[str, list[ClaimedPoint]] = {}
    checkpoints: dict[str, dict[str, str]] = {}  # by table and system, by figure and line
    unavailable: dict[str, str] = {}
    missing: list[Gap] = []
    spread: dict[str, float] = {}

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """The tables and figures that claims are about."""
        for name, table in self.tables.items():
            yield f"about {name}", [folder for row in table.rows for folder in row.folders]
        for name, points in self.figures.items():
            parts = (part for point in points for part in point.parts)
            yield f"about {name}", [read.folder for part in parts for read in part.reads]

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders that the tables and figures with claims are computed from."""
        found = {folder: files for table in self.tables.values() for folder, files in table.reads().items()}
        parts = (part for points in self.figures.values() for point in points for part in point.parts)
        return found | {
            Path(read.folder): None if part.split else (INSPECTION,) for part in parts for read in part.reads
        }

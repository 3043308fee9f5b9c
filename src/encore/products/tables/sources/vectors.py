"""Columns of how models' vectors of texts lie. Nothing is tested on them."""

import json
from collections.abc import Mapping
from pathlib import Path

from encore.errors import EncoreError
from encore.products.slices import Unit
from encore.products.tables.layout import CellSlice, Column, Layout
from encore.products.tables.sources.base import CellSource, CellValues

FILE = "inspection.json"
MEANING = {
    "cosine": "the mean cosine of the vectors of two texts",
    "effective_dimension": "in how many directions vectors spread: the participation ratio of their centred spectrum",
    "own_half": "the share of texts whose first half is nearest, by cosine, to its own second half among all",
}


class Vectors(CellSource):
    """A number of a model's vectors, for each seed. None is the best: a model whose vectors spread may be bad."""

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """The number of each seed's model.

        Raises:
            EncoreError: an inspection is missing or damaged.
        """
        if not request.reads:
            return None
        found = [_number(Path(read.folder) / FILE, request.value) for read in request.reads]
        return CellValues([read.seed for read in request.reads], found)

    def named(self, request: CellSlice, column: Column) -> str:
        """The number, as in the inspection."""
        return f"vectors: {request.value}"

    def shown(self, value: float, unit: Unit) -> str:
        """Two digits behind the point."""
        return f"{value:.2f}"

    def notes(self, layout: Layout) -> list[str]:
        """What each column is, and when it was measured."""
        columns = [column for column in layout.columns if column.source == "vectors"]
        if not columns:
            return []
        when = "Vectors are of a sample of passages, after pre-training, before fine-tuning and any linear head."
        values = {row.cells[column.id].value for column in columns for row in layout.rows} - {""}
        kinds = dict.fromkeys(value.removeprefix("mean_") for value in sorted(values))
        return [when, *(f"{kind.replace('_', ' ').capitalize()}: {MEANING[kind]}." for kind in kinds)]


def _number(path: Path, name: str) -> float:
    try:
        return float(json.loads(path.read_text())[name])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoreError(f"{path} says no {name} ({error}); remove its folder and run snakemake again") from error

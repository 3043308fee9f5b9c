"""Columns of what a pre-training step learns from: how many pairs of texts there are, and how long they are."""

import json
from collections.abc import Mapping
from pathlib import Path

from encore.errors import EncoreError
from encore.plan.tables.layout import CellSlice, Column, Layout, Unit
from encore.reporting.sources.base import CellSource, CellValues

FILE = "pairs.json"


class PairCounts(CellSource):
    """A count or a mean over one epoch of pairs; nothing for a model that no step pre-trained."""

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """A number from the statistics of a step's training pairs; there is one value, under no seed.

        Raises:
            EncoreError: the statistics are missing, damaged, or lack the number.
        """
        return (
            CellValues([None], [_number(Path(request.reads[0].folder) / FILE, request.value)])
            if request.reads
            else None
        )

    def named(self, request: CellSlice, column: Column) -> str:
        """The statistic, as of an epoch."""
        return f"{request.value} of an epoch"

    def shown(self, value: float, unit: Unit) -> str:
        """A whole number, or two digits after the point."""
        return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"

    def notes(self, layout: Layout) -> list[str]:
        """Which pairs are counted, and what counts as a word piece."""
        labels = dict.fromkeys(column.label for column in layout.columns if column.source == "pairs")
        if not labels:
            return []
        return [
            f"{', '.join(labels)}: of one epoch of the step, whose chance is that of seed 0; word pieces as the model "
            "reads them, titles among them and special tokens not."
        ]


def _number(path: Path, key: str) -> float:
    try:
        return float(json.loads(path.read_text())[key])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoreError(f"{path} counts no {key} ({error}); remove its folder and run snakemake again") from error

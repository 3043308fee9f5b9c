"""Columns of costs: what a query takes and how large the index is, as they were measured. Nothing is tested on them."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.reporting.layout import Asked, Column, Layout, Unit
from encore.reporting.sources.base import Source, Values

FILE = "latency.json"
UNITS = {"latency": "ms a query", "size": "MiB"}
MIB = 2**20


class Efficiency(Source):
    """Median milliseconds of a query, or the index in MiB; nothing for a system that was not measured."""

    def values(self, asked: Asked, parts: Mapping[str, Values | None]) -> Values | None:
        if not asked.reads:
            return None
        record = read(Path(asked.reads[0].folder))
        size = record["index"]["bytes"] / MIB
        return Values([None], [float(record["total"]["median_ms"]) if asked.value == "latency" else size])

    def named(self, asked: Asked, column: Column) -> str:
        return f"{asked.value} ({UNITS[asked.value]})"

    def shown(self, value: float, unit: Unit) -> str:
        """Three digits that say something, in whole numbers from a thousand on."""
        digits = 2 if value < 10 else 1 if value < 100 else 0
        return f"{value:,.{digits}f}"

    def notes(self, layout: Layout) -> list[str]:
        """How and on what costs were measured: one sentence for all, with each machine."""
        columns = [column for column in layout.columns if column.source == "efficiency"]
        folders = [read.folder for row in layout.rows for column in columns for read in row.cells[column.id].reads]
        records = [read(Path(folder)) for folder in dict.fromkeys(folders)]
        if not records:
            return []
        machines = sorted({_machine(record) for record in records})
        counts = sorted({record["queries"] for record in records})
        return [
            f"{' and '.join(column.label for column in columns)}: median over {' or '.join(map(str, counts))} queries "
            "one after another, all stages together, after a warm-up, and files of the index, not of the model; on "
            f"{' and on '.join(machines)}. Not tested; of the first seed's model."
        ]


@cache
def read(folder: Path) -> dict[str, Any]:
    """A measurement.

    Raises:
        EncoreError: it is missing or not one.
    """
    path = folder / FILE
    try:
        record: dict[str, Any] = json.loads(path.read_text())
        float(record["total"]["median_ms"]), float(record["index"]["bytes"]), record["hardware"]["processor"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoreError(f"{path} is no measurement ({error}); remove its folder and run snakemake again") from error
    return record


def _machine(record: dict[str, Any]) -> str:
    hardware, threads = record["hardware"], record["hardware"]["threads"]
    gpu = f", {hardware['gpu']}" if hardware["gpu"] else ""
    return f"{hardware['processor']}{gpu}, {threads} thread{'s' if threads > 1 else ''}"

"""Columns of costs: what a query takes and how large the index is, as they were measured. Nothing is tested on them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.reporting.layout import Column, Layout, Row

FILE = "latency.json"
UNITS = {"latency": "ms a query", "size": "MiB"}
MIB = 2**20


def value(row: Row, column: Column) -> float | None:
    """Median milliseconds of a query, or the index in MiB; None for a system that was not measured.

    Raises:
        EncoreError: the measurement is damaged.
    """
    if row.efficiency is None or not column.collection:
        return None
    record = read(Path(row.efficiency))
    size = record["index"]["bytes"] / MIB
    return float(record["total"]["median_ms"]) if column.efficiency == "latency" else size


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


def shown(amount: float) -> str:
    """Three digits that say something, in whole numbers from a thousand on."""
    digits = 2 if amount < 10 else 1 if amount < 100 else 0
    return f"{amount:,.{digits}f}"


def notes(layout: Layout) -> list[str]:
    """How and on what the table's costs were measured: one sentence for each machine."""
    labels = [column.label for column in layout.columns if column.efficiency]
    records = [read(Path(row.efficiency)) for row in layout.rows if row.efficiency]
    if not labels or not records:
        return []
    alike: dict[str, dict[str, Any]] = {_machine(record): record for record in records}
    counts = sorted({record["queries"] for record in records})
    return [
        f"{' and '.join(labels)}: median over {' or '.join(map(str, counts))} queries one after another, all stages "
        f"together, after a warm-up, and files of the index, not of the model; on {' and on '.join(sorted(alike))}. "
        "Not tested; of the first seed's model."
    ]


def _machine(record: dict[str, Any]) -> str:
    hardware, threads = record["hardware"], record["hardware"]["threads"]
    gpu = f", {hardware['gpu']}" if hardware["gpu"] else ""
    return f"{hardware['processor']}{gpu}, {threads} thread{'s' if threads > 1 else ''}"

"""Columns of costs: what a query takes and how large the index is, as they were measured. Nothing is tested on them."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.products.slices import Unit
from encore.products.tables.layout import CellSlice, Column, Layout
from encore.products.tables.sources.base import CellSource, CellValues

FILE = "latency.json"
LATENCY, SIZE = "latency", "size"
MIB = 2**20


class Efficiency(CellSource):
    """Median milliseconds of a query, in all or in one stage, or the index in MiB.

    Nothing for a system that was not measured.
    """

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """Size of the index in MiB, or the median time of a query in ms, from the record of a latency measurement.

        Raises:
            EncoreError: the record is missing or damaged, or has no such stage.
        """
        if not request.reads:
            return None
        folder = Path(request.reads[0].folder)
        record = read_latency(folder)
        if request.value == SIZE:
            return CellValues([None], [record["index"]["bytes"] / MIB])
        times = record["total"] if request.value == LATENCY else _stage(folder, record, _part(request))
        return CellValues([None], [float(times["median_ms"])])

    def named(self, request: CellSlice, column: Column) -> str:
        """The quantity with its unit."""
        return f"{request.value} ({'MiB' if request.value == SIZE else 'ms a query'})"

    def unit(self, request: CellSlice, unit: Unit) -> str:
        """Of the index MiB, of a query ms."""
        return "MiB" if request.value == SIZE else "ms"

    def shown(self, value: float, unit: Unit) -> str:
        """Three significant digits; whole numbers from 100 on."""
        digits = 2 if value < 10 else 1 if value < 100 else 0
        return f"{value:,.{digits}f}"

    def notes(self, layout: Layout) -> list[str]:
        """How and on what costs were measured: one sentence for all, with each machine."""
        columns = [column for column in layout.columns if column.source == "efficiency"]
        cells = [row.cells[column.id] for row in layout.rows for column in columns]
        records = [
            read_latency(Path(folder)) for folder in dict.fromkeys(one.folder for cell in cells for one in cell.reads)
        ]
        if not records:
            return []
        machines = sorted({_machine(record) for record in records})
        together = "each stage by itself" if any(_part(cell) for cell in cells) else "all stages together"
        counts = sorted({record["queries"] for record in records})
        return [
            f"{' and '.join(column.label for column in columns)}: median over {' or '.join(map(str, counts))} queries "
            f"one after another, {together}, after a warm-up, and files of the index, not of the model; on "
            f"{' and on '.join(machines)}. Not tested; of the first seed's model."
        ]


@cache
def read_latency(folder: Path) -> dict[str, Any]:
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


def _part(request: CellSlice) -> str:
    """The stage that a cell is about; none where it is about all of them."""
    return request.value.partition(".")[2]


def _stage(folder: Path, record: dict[str, Any], name: str) -> dict[str, Any]:
    """What was measured of a stage of the system itself, not of those that it is made of."""
    stages = {stage["stage"]: stage for stage in record["stages"]}
    if name not in stages:
        raise EncoreError(f"{folder / FILE} has no stage {name!r}, only {', '.join(stages)}; name another system")
    found: dict[str, Any] = stages[name]
    return found


def _machine(record: dict[str, Any]) -> str:
    hardware, threads = record["hardware"], record["hardware"]["threads"]
    gpu = f", {hardware['gpu']}" if hardware["gpu"] else ""
    return f"{hardware['processor']}{gpu}, {threads} thread{'s' if threads > 1 else ''}"

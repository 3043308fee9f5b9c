"""Columns of costs: what a query takes and how large the index is, as they were measured. Nothing is tested on them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.slices import Unit
from encore.products.tables.grid import CellRequest, Column, Grid
from encore.products.tables.sources.base import CellSource, CellValues, Parts, optional, topics_of

FILE = "latency.json"
LATENCY, SIZE = "latency", "size"
MIB = 2**20


class Efficiency(CellSource):
    """Median milliseconds of a query, in all or in one stage, or the index in MiB.

    Nothing for a system that was not measured.
    """

    field = optional(
        str,
        "milliseconds per query of the split, in all (`latency`) or in one stage (`latency.search`), or MiB of the "
        "index (`size`).",
        pattern=r"^(latency(\.(encoder|search|fusion|rerank|\{\w+\}))?|size)$",
    )
    needs = ("system", "dataset", "split")

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The latency of the first seed's model, as all cost alike; nothing where it cannot be measured."""
        seed = plan.config.seeds[0] if plan.resolve.has_chance(request.system) else None
        measured = plan.latency(request.system, seed, request.dataset, topics_of(plan, request))
        return request.reading([(seed, measured)] if measured else [], plan.collection(request.dataset))

    def values(self, request: CellRequest, parts: Parts) -> CellValues | None:
        """Size of the index in MiB, or the median time of a query in ms, from the record of a latency measurement."""
        if not request.reads:
            return None
        folder = Path(request.reads[0].folder)
        record = _record(folder)
        if request.value == SIZE:
            return CellValues([None], [record["index"]["bytes"] / MIB])
        times = record["total"] if request.value == LATENCY else _stage(folder, record, _part(request))
        return CellValues([None], [float(times["median_ms"])])

    def named(self, request: CellRequest, column: Column) -> str:
        """The quantity with its unit."""
        return f"{request.value} ({'MiB' if request.value == SIZE else 'ms a query'})"

    def unit(self, request: CellRequest, unit: Unit) -> str:
        """MiB for the index, ms for a query."""
        return "MiB" if request.value == SIZE else "ms"

    def shown(self, value: float, unit: Unit) -> str:
        """Three significant digits; whole numbers from 100 on."""
        digits = 2 if value < 10 else 1 if value < 100 else 0
        return f"{value:,.{digits}f}"

    def notes(self, own: Sequence[Column], grid: Grid) -> list[str]:
        """How and on what costs were measured: one sentence for all, with each machine."""
        cells = grid.cells(own)
        records = [_record(Path(folder)) for folder in {one.folder for cell in cells for one in cell.reads}]
        if not records:
            return []
        machines = sorted({_machine(record) for record in records})
        together = "each stage by itself" if any(_part(cell) for cell in cells) else "all stages together"
        counts = sorted({record["queries"] for record in records})
        return [
            f"{' and '.join(column.label for column in own)}: median over {' or '.join(map(str, counts))} queries "
            f"one after another, {together}, after a warm-up, and files of the index, not of the model; on "
            f"{' and on '.join(machines)}. Not tested; of the first seed's model."
        ]


def _record(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / FILE).read_text())
    return record


def _part(request: CellRequest) -> str:
    """The stage that a cell is about; none where it is about all of them."""
    return request.value.partition(".")[2]


def _stage(folder: Path, record: dict[str, Any], name: str) -> dict[str, Any]:
    """The measurement of a stage of the system itself, not of the systems that it combines."""
    stages = {stage["stage"]: stage for stage in record["stages"]}
    if name not in stages:
        raise EncoreError(f"{folder / FILE} has no stage {name!r}, only {', '.join(stages)}; name another system")
    found: dict[str, Any] = stages[name]
    return found


def _machine(record: dict[str, Any]) -> str:
    hardware, threads = record["hardware"], record["hardware"]["threads"]
    gpu = f", {hardware['gpu']}" if hardware["gpu"] else ""
    return f"{hardware['processor']}{gpu}, {threads} thread{'s' if threads > 1 else ''}"

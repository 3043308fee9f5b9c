"""What was estimated next to what really happened, for everything that is finished: time, memory, disk, operations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.commands.preflight.forecast import Forecast
from encore.commands.preflight.forecast_text import columns, duration, size
from encore.commands.preflight.jobs import Needed
from encore.errors import EncoreError
from encore.storage import manifest

BENCHMARKS = Path("results/benchmarks")


@dataclass(frozen=True)
class MeasuredJob:
    """What jobs took: seconds and bytes of memory (Snakemake's benchmark, or ``run.json``), bytes, operations.

    ``cpu``: seconds of the processor, which other work on the machine does not lengthen; None where nobody noted them.
    """

    seconds: float
    ram: float
    kept: float
    flops: float | None
    cpu: float | None = None


@dataclass(frozen=True)
class RuleCalibration:
    """All finished jobs of a rule: sums of seconds, bytes and flops, and the most memory that one took."""

    rule: str
    jobs: int
    estimated: MeasuredJob
    measured: MeasuredJob

    @property
    def ratio(self) -> float:
        """Measured seconds over estimated ones."""
        return self.measured.seconds / max(self.estimated.seconds, 1e-9)


def compare_with_finished(found: Forecast) -> list[RuleCalibration]:
    """Every rule with finished jobs that left a record.

    Raises:
        EncoreError: nothing is finished.
    """
    pairs = [(job, real) for job in found.jobs if job.finished and (real := measured_job(job))]
    if not pairs:
        raise EncoreError("nothing of this configuration is finished here; run it first, then compare")
    rules = dict.fromkeys(job.rule for job, _ in pairs)
    return [_compared(found, rule, [pair for pair in pairs if pair[0].rule == rule]) for rule in rules]


def measured_job(job: Needed) -> MeasuredJob | None:
    """What a finished job took; None where it left no record, as tables do."""
    folder = Path(job.artifact.folder)
    run, made = _json(folder / "run.json"), _json(folder / manifest.MANIFEST)
    if not run or not made:
        return None
    benchmark = _benchmark(job)
    return MeasuredJob(
        seconds=benchmark.get("s", float(run["seconds"])),
        ram=1e6 * benchmark.get("max_rss", float(run["peak_memory_mb"])),
        kept=float(sum(each["bytes"] for each in made["outputs"].values())),
        flops=made["results"].get("flops"),
        cpu=benchmark.get("cpu_time"),
    )


def _benchmark(job: Needed) -> dict[str, float]:
    """The record that Snakemake has of a job's last run, by column; nothing where there is none."""
    parts = job.artifact.folder.split("/")[2:]
    for first in range(len(parts)):
        path = BENCHMARKS.joinpath(job.rule, *parts[first:-1], f"{parts[-1]}.tsv")
        if path.is_file():
            head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
            values = dict(zip(head, rows[-1], strict=False)) if rows else {}
            return {name: float(values[name]) for name in ("s", "max_rss", "cpu_time") if _number(values.get(name, ""))}
    return {}


def _number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _compared(found: Forecast, rule: str, pairs: Sequence[tuple[Needed, MeasuredJob]]) -> RuleCalibration:
    counted = [(job, real) for job, real in pairs if real.flops is not None]
    estimated = MeasuredJob(
        seconds=sum(found.seconds(job) for job, _ in pairs),
        ram=max(found.memory(job) for job, _ in pairs),
        kept=sum(job.cost.kept for job, _ in pairs),
        flops=sum(_trained(job) for job, _ in counted) if counted else None,
    )
    real = MeasuredJob(
        seconds=sum(each.seconds for _, each in pairs),
        ram=max(each.ram for _, each in pairs),
        kept=sum(each.kept for _, each in pairs),
        flops=sum(each.flops or 0.0 for _, each in counted) if counted else None,
        cpu=sum(each.cpu or 0.0 for _, each in pairs) if all(each.cpu is not None for _, each in pairs) else None,
    )
    return RuleCalibration(rule, len(pairs), estimated, real)


def _trained(job: Needed) -> float:
    """Operations of training alone, as a model's manifest counts them, on all processes."""
    return sum(work.amount for work in job.cost.works if work.kind == "train") * job.cost.processes


def calibration_text(rows: Iterable[RuleCalibration]) -> str:
    """The comparison as text."""
    cells = [
        [
            row.rule,
            str(row.jobs),
            duration(row.estimated.seconds),
            duration(row.measured.seconds),
            "" if row.measured.cpu is None else duration(row.measured.cpu),
            f"{row.ratio:.2f}",
            size(row.estimated.ram),
            size(row.measured.ram),
            size(row.estimated.kept),
            size(row.measured.kept),
            _ratio(row.measured.flops, row.estimated.flops),
        ]
        for row in rows
    ]
    heads = ["rule", "jobs", "estimated", "took", "CPU", "ratio", "RAM", "took", "disk", "took", "FLOP"]
    return columns(heads, cells, "<" + ">" * 10)


def calibration_json(rows: Iterable[RuleCalibration]) -> list[dict[str, Any]]:
    """The comparison in plain types."""
    return [
        {"rule": row.rule, "jobs": row.jobs, "estimated": vars(row.estimated), "measured": vars(row.measured)}
        for row in rows
    ]


def _ratio(real: float | None, estimated: float | None) -> str:
    return f"{real / estimated:.3f}" if real and estimated else ""


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text()) if path.is_file() else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

"""What finished jobs took, next to what is forecast for them, and rates that are fitted to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from encore.commands.preflight.fit import errors_left_out, refined
from encore.commands.preflight.forecast import Forecast
from encore.commands.preflight.forecast_text import columns, duration, size
from encore.commands.preflight.jobs import Needed
from encore.commands.preflight.rates import CPU, Errors, Rates, RuleRates
from encore.errors import EncoreError
from encore.storage import manifest

BENCHMARKS = Path("results/benchmarks")
FEWEST = 5  # finished jobs that rates are fitted to


@dataclass(frozen=True)
class Measured:
    """What a job took: seconds on the clock and of the processor, bytes of memory and on the disk, operations.

    ``cpu`` is what other work on the machine does not lengthen; None where it was not noted. ``flops``: of a training.
    """

    seconds: float
    cpu: float | None
    ram: float
    disk: float
    flops: float | None
    device: str

    @property
    def time(self) -> float:
        """What rates are fitted to: the processor's time, or the clock's where a GPU did the work."""
        return self.seconds if self.device != CPU or self.cpu is None else self.cpu


def measured(job: Needed) -> Measured | None:
    """What a finished job took; None where it left no record, as tables do."""
    folder = Path(job.artifact.folder)
    run = manifest.read_run(folder)
    if not run or not (folder / manifest.MANIFEST).is_file():
        return None
    made = manifest.read_manifest(folder)
    benchmark = _benchmark(job)
    return Measured(
        seconds=max(benchmark.get("s", 0.0), float(run["seconds"])),
        cpu=max(times) if (times := _both(run.get("cpu_seconds"), benchmark.get("cpu_time"))) else None,
        ram=1e6 * max(benchmark.get("max_rss", 0.0), float(run.get("peak_memory_mb", 0))),
        disk=float(sum(each["bytes"] for each in made["outputs"].values())),
        flops=made["results"].get("flops"),
        device=run["device"],
    )


def _benchmark(job: Needed) -> dict[str, float]:
    """Snakemake's record of a job's last run, by column; it counts programs that a job starts, such as Java."""
    parts = job.artifact.folder.split("/")[2:]
    for first in range(len(parts)):
        path = BENCHMARKS.joinpath(job.rule, *parts[first:-1], f"{parts[-1]}.tsv")
        if path.is_file():
            head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
            values = dict(zip(head, rows[-1], strict=False)) if rows else {}
            return {name: float(values[name]) for name in ("s", "max_rss", "cpu_time") if _number(values.get(name, ""))}
    return {}


def _both(*values: float | None) -> list[float]:
    """Those that were noted: a program's own record lacks its end, Snakemake's, taken every few seconds, may too."""
    return [value for value in values if value is not None]


def _number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def finished_jobs(found: Forecast) -> list[tuple[Needed, Measured]]:
    """The finished jobs of a forecast that left a record.

    Raises:
        EncoreError: there is none.
    """
    pairs = [(job, real) for job in found.jobs if job.finished and (real := measured(job))]
    if not pairs:
        raise EncoreError("nothing of this configuration is finished here; run it first, then compare")
    return pairs


def fitted(rates: Rates, pairs: Sequence[tuple[Needed, Measured]], runs: str, machine: str) -> Rates:
    """Rates that are refined with what finished jobs took; what these do not tell stays as it was.

    Raises:
        EncoreError: there are too few, or they ran on devices of several kinds.
    """
    devices = sorted({real.device for job, real in pairs if job.computes})
    if len(pairs) < FEWEST or len(devices) > 1:
        what = f"{len(pairs)} finished jobs" if len(devices) < 2 else f"jobs on {' and '.join(devices)}"
        raise EncoreError(
            f"rates cannot be fitted to {what}; finish a run of at least {FEWEST} jobs on one machine first"
        )
    by_key: dict[str, list[tuple[Needed, Measured]]] = {}
    for job, real in pairs:
        stage = job.artifact.stage
        by_key.setdefault(stage if stage in rates.rules else job.rule, []).append((job, real))
    errors: list[float] = []
    rules = dict(rates.rules)
    for key, own in by_key.items():
        if key in rules:
            rules[key], left_out = _of_rule(rules[key], own)
            errors += left_out
    return Rates(
        device=devices[0] if devices else CPU,
        machine=machine,
        runs=runs,
        date=date.today().isoformat(),
        jobs=len(pairs),
        error=Errors(half=round(median(errors), 3), nine_in_ten=round(quantiles(errors, n=10)[-1], 3)),
        rules=rules,
    )


def _of_rule(rule: RuleRates, own: Sequence[tuple[Needed, Measured]]) -> tuple[RuleRates, list[float]]:
    """A rule's formulas from its jobs, and how far off its seconds were for each of them, left out."""
    jobs, times = [job.amounts for job, _ in own], [real.time for _, real in own]
    host = [max(real.ram - (job.gpu_memory if real.device == CPU else 0), 1e6) for job, real in own]
    errors = errors_left_out(rule.seconds, jobs, times)
    changes = {
        "jobs": len(own),
        "error": round(median(errors), 3),
        "seconds": refined(rule.seconds, jobs, times),
        "ram": refined(rule.ram, jobs, host),
        "disk": refined(rule.disk, jobs, [real.disk for _, real in own]),
    }
    return rule.model_copy(update=changes), errors


@dataclass(frozen=True)
class RuleComparison:
    """All finished jobs of a rule: sums of seconds, bytes and operations, and the most memory that one took."""

    rule: str
    jobs: int
    estimated: Measured
    measured: Measured

    @property
    def ratio(self) -> float:
        """Measured seconds, of the processor where they were noted, over estimated ones."""
        return self.measured.time / max(self.estimated.seconds, 1e-9)


def compare_with_finished(found: Forecast) -> list[RuleComparison]:
    """Every rule with finished jobs that left a record.

    Raises:
        EncoreError: nothing is finished.
    """
    pairs = finished_jobs(found)
    rules = dict.fromkeys(job.rule for job, _ in pairs)
    return [_compared(found, rule, [pair for pair in pairs if pair[0].rule == rule]) for rule in rules]


def _compared(found: Forecast, rule: str, pairs: Sequence[tuple[Needed, Measured]]) -> RuleComparison:
    counted = [(job, real) for job, real in pairs if real.flops is not None]
    seconds = sum(found.seconds(job) for job, _ in pairs)
    estimated = Measured(
        seconds,
        seconds,
        ram=max(found.memory(job) for job, _ in pairs),
        disk=sum(found.disk_of(job) for job, _ in pairs),
        flops=sum(job.amounts["flops"] for job, _ in counted) if counted else None,
        device=found.machine.device,
    )
    real = Measured(
        seconds=sum(each.seconds for _, each in pairs),
        cpu=sum(each.cpu or 0.0 for _, each in pairs) if all(each.cpu is not None for _, each in pairs) else None,
        ram=max(each.ram for _, each in pairs),
        disk=sum(each.disk for _, each in pairs),
        flops=sum(each.flops or 0.0 for _, each in counted) if counted else None,
        device=pairs[0][1].device,
    )
    return RuleComparison(rule, len(pairs), estimated, real)


def comparison_text(rows: Sequence[RuleComparison]) -> str:
    """The comparison as text, and how wrong all of it was."""
    cells = [
        [
            row.rule,
            str(row.jobs),
            duration(row.estimated.seconds),
            "" if row.measured.cpu is None else duration(row.measured.cpu),
            duration(row.measured.seconds),
            f"{row.ratio:.2f}",
            *(size(count) for count in (row.estimated.ram, row.measured.ram, row.estimated.disk, row.measured.disk)),
            f"{row.measured.flops / row.estimated.flops:.2f}" if row.measured.flops and row.estimated.flops else "",
        ]
        for row in rows
    ]
    heads = ["rule", "jobs", "estimated", "CPU", "clock", "ratio", "RAM", "took", "disk", "took", "FLOP"]
    forecast, real = sum(row.estimated.seconds for row in rows), sum(row.measured.time for row in rows)
    table = columns(heads, cells, "<" + ">" * 10)
    summed = f"{duration(forecast)} estimated, {duration(real)} needed, {real / forecast:.2f} times that"
    return f"{table}\n\nAll: {summed}"


def comparison_json(rows: Iterable[RuleComparison]) -> list[dict[str, Any]]:
    """The comparison in plain types."""
    parts = [{"estimated": vars(row.estimated), "measured": vars(row.measured), "ratio": row.ratio} for row in rows]
    return [{"rule": row.rule, "jobs": row.jobs, **part} for row, part in zip(rows, parts, strict=True)]

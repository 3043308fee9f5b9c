"""What finished jobs took, next to what is forecast for them, and rates that are fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    ``threads`` of all its processes, ``waited`` for data (seconds on the clock) and ``gflops`` of exact search (10^9
    operations a second): where they were noted.
    ``forked``: Python did not start for it, and most of its memory is that of the process that it is a fork of.
    """

    seconds: float
    cpu: float | None
    ram: float
    disk: float
    flops: float | None
    device: str
    threads: int | None = None
    waited: float | None = None
    gflops: float | None = None
    forked: bool = False

    @property
    def time(self) -> float:
        """What rates are fitted to: the processor's time, or the clock's where a GPU did the work."""
        return self.seconds if self.cpu is None or not self.by_processor else self.cpu

    @property
    def by_processor(self) -> bool:
        """Whether ``time`` is the processor's."""
        return self.device == CPU and self.cpu is not None


def measured(job: Needed) -> Measured | None:
    """What a finished job took; None where it left no record, as tables do."""
    folder = Path(job.artifact.folder)
    run = manifest.read_run(folder)
    if not run or not (folder / manifest.MANIFEST).is_file():
        return None
    made = manifest.read_manifest(folder)
    benchmark = _benchmark(job)
    how = run.get("search") or run.get("build") or run
    return Measured(
        seconds=max(benchmark.get("s", 0.0), float(run["seconds"])),
        cpu=max(times) if (times := _both(run.get("cpu_seconds"), benchmark.get("cpu_time"))) else None,
        ram=1e6 * max(benchmark.get("max_rss", 0.0), float(run.get("peak_memory_mb", 0))),
        disk=float(sum(each["bytes"] for each in made["outputs"].values())),
        flops=made["results"].get("flops"),
        device=run["device"],
        threads=how["threads"] * run.get("processes", 1) if "threads" in how else None,
        waited=run.get("data_seconds"),
        gflops=how.get("gflops"),
        forked=run.get("forked", False),
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
    """The finished jobs of a forecast that left a record, as they were started.

    Raises:
        EncoreError: there is none.
    """
    pairs = [
        (replace(job, amounts=job.amounts | {"imports": float(not real.forked)}), real)
        for job in found.jobs
        if job.finished and (real := measured(job))
    ]
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
    alone = [(job, real) for job, real in own if not real.forked]
    host = [max(real.ram - (job.gpu_memory if real.device == CPU else 0), 1e6) for job, real in alone]
    errors = errors_left_out(rule.seconds, jobs, times)
    changes = {
        "jobs": len(own),
        "error": round(median(errors), 3),
        "seconds": refined(rule.seconds, jobs, times),
        "ram": refined(rule.ram, [job.amounts for job, _ in alone], host),
        "disk": refined(rule.disk, jobs, [real.disk for _, real in own]),
    }
    return rule.model_copy(update=changes), errors


def compare_with_finished(found: Forecast) -> list[dict[str, Any]]:
    """For every rule, what its finished jobs were estimated to take, and took.

    Sums, of memory and threads the most of one job, of rates the median. ``ratio``: measured seconds, of the processor
    where they were noted, over estimated ones; ``flops``: of trainings.

    Raises:
        EncoreError: nothing is finished.
    """
    by_rule: dict[str, list[tuple[Needed, Measured]]] = {}
    for job, real in finished_jobs(found):
        by_rule.setdefault(job.rule, []).append((job, real))
    return [{"rule": rule, "jobs": len(pairs), **_compared(found, pairs)} for rule, pairs in by_rule.items()]


def _compared(found: Forecast, pairs: Sequence[tuple[Needed, Measured]]) -> dict[str, Any]:
    jobs, reals = zip(*pairs, strict=True)
    counted = [(job.amounts["flops"], real.flops) for job, real in pairs if real.flops is not None]
    estimated = {
        "seconds": sum(
            found.processor_seconds(job) if real.by_processor else found.seconds(job) for job, real in pairs
        ),
        "ram": max(map(found.memory, jobs)),
        "disk": sum(map(found.disk_of, jobs)),
        "flops": sum(flops for flops, _ in counted),
    }
    took = {
        "seconds": sum(real.time for real in reals),
        "clock": sum(real.seconds for real in reals),
        "ram": max(real.ram for real in reals),
        "disk": sum(real.disk for real in reals),
        "flops": sum(flops for _, flops in counted),
    }
    threads = [(job.threads, real.threads) for job, real in pairs if real.threads]
    rates = [(_search_gflops(found, job, real), real.gflops) for job, real in pairs if real.gflops]
    for place, kind in enumerate((estimated, took)):
        kind |= {"threads": max(pair[place] for pair in threads)} if threads else {}
        kind |= {"gflops": median(pair[place] for pair in rates)} if rates else {}
    if waited := [real.waited for real in reals if real.waited is not None]:
        took["waited"] = sum(waited)
    return {"estimated": estimated, "measured": took, "ratio": took["seconds"] / estimated["seconds"]}


def _search_gflops(found: Forecast, job: Needed, real: Measured) -> float:
    """The rate of exact search that is expected: of the machine's GPU, or of the threads that searched."""
    on_gpu = found.machine.flops_a_second(job.precision(found.precision)) if found.on_gpu(job) else None
    seconds = found.rates.of(job.artifact.stage).seconds.parts({"products": 1.0})["products"]
    return (on_gpu or (real.threads or 1) / seconds) / 1e9


def comparison_text(rows: Sequence[dict[str, Any]]) -> str:
    """The comparison as text, and how wrong all of it was."""
    cells = []
    for row in rows:
        estimated, real = row["estimated"], row["measured"]
        times = [duration(seconds) for seconds in (estimated["seconds"], real["seconds"], real["clock"])]
        sizes = [size(each[kind]) for kind in ("ram", "disk") for each in (estimated, real)]
        flops = f"{real['flops'] / estimated['flops']:.2f}" if estimated["flops"] else ""
        cells.append([row["rule"], str(row["jobs"]), *times, f"{row['ratio']:.2f}", *sizes, flops])
    heads = ["rule", "jobs", "estimated", "CPU", "clock", "ratio", "RAM", "took", "disk", "took", "FLOP"]
    estimate, took = (sum(row[kind]["seconds"] for row in rows) for kind in ("estimated", "measured"))
    summed = f"All: {duration(estimate)} estimated, {duration(took)} needed, {took / estimate:.2f} times that"
    parts = [columns(heads, cells, "<" + ">" * 10), _how_text(rows), summed]
    return "\n\n".join(part for part in parts if part)


def _how_text(rows: Sequence[dict[str, Any]]) -> str:
    """Threads, waiting for data and rates of the rules whose jobs noted them."""
    cells = []
    for row in rows:
        estimated, real = row["estimated"], row["measured"]
        if real.keys() & {"threads", "waited", "gflops"}:
            numbers = [each.get(name) for name in ("threads", "gflops") for each in (estimated, real)]
            waited = duration(real["waited"]) if "waited" in real else ""
            cells.append([row["rule"], *("" if number is None else f"{number:,.3g}" for number in numbers), waited])
    heads = ["rule", "threads", "used", "GFLOP/s expected", "took", "waited for data"]
    return columns(heads, cells, "<" + ">" * 5) if cells else ""

"""A forecast as text of at most 100 columns, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from encore.commands.preflight.first_training import FirstTraining, first_training
from encore.commands.preflight.forecast import HOUR, Forecast
from encore.commands.preflight.rates import CPU

WIDTH = 100
NOTES = 15
NAMED = ("tables", "figures")  # kinds whose names may hold a paper's
CHAIN = 6  # jobs of the longest chain that are named
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def forecast_text(found: Forecast, complaints: Sequence[str] = ()) -> str:
    """The whole forecast for a terminal: what it comes to, then by rule, by download and by kind of file."""
    beyond = "\n".join(f"beyond: {complaint}" for complaint in complaints)
    parts = [_summary(found), beyond, _rules(found), _downloads(found), _disk(found), _chain(found)]
    parts += [_counts(found), _notes(found)]
    return "\n\n".join(part for part in parts if part)


def forecast_json(found: Forecast, complaints: Sequence[str]) -> dict[str, Any]:
    """The whole forecast in plain types; bytes, seconds and operations as they are."""
    training = first_training(found.missing, found.schedule)
    return {
        "title": found.title,
        "machine": {"name": found.machine.name, "device": found.machine.device},
        "rates": found.rates.about,
        "error": found.rates.error.model_dump() if found.rates.error else None,
        "gpus": found.gpus,
        "cores": found.cores,
        "jobs": {
            "finished": sum(job.finished for job in found.jobs),
            "missing": len(found.missing),
            "bytes": found.finished_bytes,
        },
        "downloads": [vars(each) | {"missing": each.missing} for each in found.downloads],
        "rules": [vars(rule) for rule in found.rules],
        "disk": {**found.disk, "peak": found.peak_disk, "free": found.free},
        "wall_seconds": found.schedule.wall,
        "critical_seconds": found.schedule.critical_seconds,
        "critical_path": list(found.schedule.critical),
        "first_training": training._asdict() if training else None,
        "gpu_hours": found.gpu_hours,
        "core_hours": found.core_hours,
        "energy_kwh": found.energy_kwh,
        "counts": [vars(count) for count in found.counts],
        "notes": found.notes,
        "complaints": list(complaints),
    }


def _summary(found: Forecast) -> str:
    finished = sum(job.finished for job in found.jobs)
    there = f" ({size(found.finished_bytes)})" if finished else ""
    where = _count(found.gpus, "GPU") if found.gpus else _count(found.cores, "core")
    hours = f"{found.gpu_hours:,.2f} GPU-hours, " if found.gpus else ""
    power = f"{found.energy_kwh:,.3g} kWh"
    unknown = f", and {len(found.unknown_downloads)} of unknown size" if found.unknown_downloads else ""
    rows = {
        "jobs": f"{finished} of {len(found.jobs)} jobs are finished{there}, {len(found.missing)} are to run",
        "time": f"{duration(found.schedule.wall)} on {where} ({hours}{found.core_hours:,.2f} core-hours, {power})",
        "at least": f"{duration(found.schedule.critical_seconds)}, the longest chain of jobs that wait for each other",
        "training": _training(first_training(found.missing, found.schedule)),
        "disk": f"{size(found.peak_disk)} at the peak, {size(found.free)} are free",
        "downloads": f"{size(found.to_download)}{unknown}",
        "machine": f"{found.machine.name}: {found.machine.device} ({found.machine.source})",
        "rates": found.rates.about,
    }
    if found.gpus and found.rates.device == CPU:
        rows["GPU"] = "not measured: its maker's peak times a stated utilisation; may be off by a factor of two"
    lines = [
        f"{name if not place else '':<11}{line}"
        for name, text in rows.items()
        if text
        for place, line in enumerate(textwrap.wrap(text, WIDTH - 11))
    ]
    return "\n".join([found.title, *lines])


def _training(first: FirstTraining | None) -> str:
    """When the longest chain begins to train."""
    if first is None:
        return ""
    last = f"; last before it: {_folder(first.last)}" if first.last else ""
    return f"after {duration(first.seconds)}, the first of that chain{last}"


def _folder(name: str) -> str:
    """A folder's kind and name; of a product the whole name."""
    parts = PurePosixPath(name).parts
    return "/".join(parts[1:] if parts[1] in NAMED else parts[1:3])


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number > 1)}"


def _downloads(found: Forecast) -> str:
    rows = [
        [each.name, each.kind, size(each.bytes), size(each.here) if each.here else "", _cut(each.licence, 44)]
        for each in found.downloads
        if each.bytes != 0  # part of another one
    ]
    return columns(["download", "from", "size", "here", "licence"], rows, "<<>><") if rows else ""


def _rules(found: Forecast) -> str:
    rows = [
        [
            rule.rule,
            str(rule.finished),
            str(rule.missing),
            _if(rule.missing, duration(rule.seconds)),
            _if(rule.gpu_hours, f"{rule.gpu_hours:,.2f}"),
            _if(rule.flops, f"{rule.flops:.1e}"),
            _if(rule.missing, size(rule.ram)),
            _if(rule.gpu_memory, size(rule.gpu_memory)),
            _if(rule.missing, size(rule.kept)),
        ]
        for rule in found.rules
    ]
    heads = ["rule", "done", "to run", "time", "GPU-hours", "operations", "RAM of one", "GPU of one", "disk"]
    return columns(heads, rows, "<" + ">" * 8)


def _disk(found: Forecast) -> str:
    rows = [[kind, size(count)] for kind, count in sorted(found.disk.items(), key=lambda pair: -pair[1])]
    return columns(["disk", "bytes"], rows, "<>") if rows else ""


def _chain(found: Forecast) -> str:
    names = [_folder(name) for name in found.schedule.critical]
    if len(names) > CHAIN:
        names = [*names[: CHAIN // 2], f"… {len(names) - CHAIN} more …", *names[-CHAIN // 2 :]]
    return "\n".join(["longest chain", *(f"  {_cut(name, WIDTH - 2)}" for name in names)]) if names else ""


def _counts(found: Forecast) -> str:
    rows = [
        [f"{each.count} of {_some(each.steps)}", f"{each.ours:,.0f}", f"{each.published:,.0f}", _cut(each.place, 40)]
        for each in found.counts
    ]
    return columns(["counts", "ours", "published", "where"], rows, "<>><") if rows else ""


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _notes(found: Forecast) -> str:
    lines = [_cut(f"note: {note}", WIDTH) for note in found.notes[:NOTES]]
    more = len(found.notes) - NOTES
    return "\n".join([*lines, *([f"and {more} more; --json has them all"] if more > 0 else [])])


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> str:
    """Columns of equal width, ``<`` to the left and ``>`` to the right; a table that is too wide loses from names."""
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    spare = WIDTH - sum(widths) - 2 * (len(widths) - 1)
    widths[0] += min(0, spare)
    lines = [
        "  ".join(f"{_cut(cell, width):{side}{width}}" for cell, width, side in zip(row, widths, sides, strict=True))
        for row in [heads, *rows]
    ]
    return "\n".join(line.rstrip() for line in lines)


def size(count: float | None) -> str:
    """Bytes in the unit that suits them; 1 kB is 1,000 bytes."""
    if count is None:
        return "unknown"
    place = 0
    while count >= 999.5 and place < len(UNITS) - 1:
        count, place = count / 1000, place + 1
    return f"{count:.0f} {UNITS[place]}" if place == 0 or count >= 99.95 else f"{count:.1f} {UNITS[place]}"


def duration(seconds: float) -> str:
    """Seconds, minutes, hours or days, whichever suits."""
    for unit, length in (("d", 24 * HOUR), ("h", HOUR), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.0f} s"


def _if(wanted: float, text: str) -> str:
    return text if wanted else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 1)] + "…"

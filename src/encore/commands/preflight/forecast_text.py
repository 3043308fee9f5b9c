"""A forecast as text of at most 100 columns, and as JSON."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from encore.commands.preflight.forecast import Forecast

WIDTH = 100
KINDS, RULES, DOWNLOADS, NOTES = 6, 15, 10, 6  # that are shown; JSON has all
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def forecast_text(found: Forecast, complaints: Sequence[str] = ()) -> str:
    """The forecast for a terminal: first the sums, then what exceeds a limit, the rules and the downloads."""
    problems = "\n".join(textwrap.fill(f"problem: {each}", WIDTH, subsequent_indent="  ") for each in complaints)
    parts = [_summary(found), problems, _rules(found), _downloads(found), _counts(found), _notes(found)]
    return "\n\n".join(part for part in parts if part)


def forecast_json(found: Forecast, complaints: Sequence[str]) -> dict[str, Any]:
    """The whole forecast in plain types; bytes and operations in full."""
    return {
        "title": found.title,
        "machine": {"name": found.machine.name, "device": found.machine.device},
        "gpus": found.gpus,
        "finished": len(found.jobs) - len(found.missing),
        "missing": vars(found.total) | {"core_hours": found.core_hours},
        "rules": {rule: vars(needs) for rule, needs in found.rules.items()},
        "disk": {**found.disk, "peak": found.peak_disk, "free": found.free},
        "downloads": [vars(each) | {"missing": each.missing} for each in found.downloads],
        "counts": [vars(count) for count in found.counts],
        "notes": found.notes,
        "complaints": list(complaints),
    }


def _summary(found: Forecast) -> str:
    total, machine = found.total, found.machine
    kinds = sorted(found.disk.items(), key=lambda pair: -pair[1])
    unknown = f", and {len(found.unknown_downloads)} of unknown size" if found.unknown_downloads else ""
    rows = {
        "jobs": f"{total.jobs:,} to run, {len(found.jobs) - total.jobs:,} of {len(found.jobs):,} finished",
        "compute": (f"{total.operations:.1e}" if total.operations else "no")
        + " floating-point operations of models and exact search; "
        + (f"{about(total.gpu_hours, 2)} GPU-hours on {machine.device} and " if machine.peak else "")
        + f"{about(found.core_hours, 1)} core-hours"
        + ("" if machine.peak else "; GPU-hours with --machine a100-80gb"),
        "memory": f"{size(total.ram)} for the largest job",
        "GPU memory": f"{size(total.gpu_memory)} for the largest job" if total.gpu_memory else "",
        "disk": f"{size(found.peak_disk)} at the peak, {size(found.free)} free: "
        + ", ".join(f"{kind} {size(count)}" for kind, count in kinds[:KINDS]),
        "downloads": f"{size(found.to_download)}{unknown}" if found.downloads else "none",
    }
    lines = [
        f"{'' if place else name:<12}{line}"
        for name, text in rows.items()
        for place, line in enumerate(textwrap.wrap(text, WIDTH - 12, break_on_hyphens=False))
    ]
    return "\n".join([found.title, *lines])


def _rules(found: Forecast) -> str:
    """The rules with most operations and bytes; the others in one row."""
    operations, disk = max(found.total.operations, 1.0), max(found.total.disk, 1.0)
    ordered = sorted(found.rules.items(), key=lambda pair: -pair[1].operations / operations - pair[1].disk / disk)
    shown, others = ordered[:RULES], {rule for rule, _ in ordered[RULES:]}
    if others:
        shown.append((f"{len(others)} others", found.needs([job for job in found.missing if job.rule in others])))
    rows = [
        [
            rule,
            f"{needs.jobs:,}",
            f"{needs.operations:.1e}" if needs.operations else "",
            f"{needs.gpu_hours:,.2f}" if needs.gpu_hours >= 0.01 else "",
            size(needs.ram),
            size(needs.gpu_memory) if needs.gpu_memory else "",
            size(needs.disk) if needs.disk else "",
        ]
        for rule, needs in shown
    ]
    heads = ["rule", "jobs", "operations", "GPU-hours", "memory of one", "GPU memory", "written"]
    return columns(heads, rows, "<" + ">" * 6) if rows else ""


def _downloads(found: Forecast) -> str:
    """The largest downloads with their licences; the others in one row."""
    known = [each for each in found.downloads if each.bytes != 0]  # none that is a part of another one
    ordered = sorted(known, key=lambda each: float("inf") if each.bytes is None else each.bytes, reverse=True)
    rows = [
        [each.name, each.kind, size(each.bytes), size(each.here) if each.here else "", _cut(each.licence, 44)]
        for each in ordered[:DOWNLOADS]
    ]
    if others := ordered[DOWNLOADS:]:
        total, here = (math.fsum(getattr(each, name) or 0 for each in others) for name in ("bytes", "here"))
        rows.append([f"{len(others)} others", "", size(total), size(here) if here else "", "--json has their licences"])
    return columns(["download", "from", "size", "here", "licence"], rows, "<<>><") if rows else ""


def _counts(found: Forecast) -> str:
    rows = [
        [
            f"{each.count} of {each.steps[0]}" + (f" and {len(each.steps) - 1} more" if len(each.steps) > 1 else ""),
            f"{each.ours:,.0f}",
            f"{each.published:,.0f}",
            _cut(each.place, 40),
        ]
        for each in found.counts
    ]
    return columns(["counts", "ours", "published", "where"], rows, "<>><") if rows else ""


def _notes(found: Forecast) -> str:
    lines = [_cut(f"note: {note}", WIDTH) for note in found.notes[:NOTES]]
    more = len(found.notes) - NOTES
    return "\n".join([*lines, *([f"and {more} more; --json has them all"] if more > 0 else [])])


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> str:
    """Columns of equal width, ``<`` to the left and ``>`` to the right; in a table that is too wide names are cut."""
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    spare = WIDTH - sum(widths) - 2 * (len(widths) - 1)
    widths[0] += min(0, spare)
    lines = [
        "  ".join(f"{_cut(cell, width):{side}{width}}" for cell, width, side in zip(row, widths, sides, strict=True))
        for row in [heads, *rows]
    ]
    return "\n".join(line.rstrip() for line in lines)


def about(hours: float, digits: int) -> str:
    """``about 28.9``, ``about 3,585`` from a hundred on, or ``less than 0.1`` where only zeros would be seen."""
    least = 10.0**-digits
    return f"about {hours:,.{digits if hours < 100 else 0}f}" if hours >= least else f"less than {least:g}"


def size(count: float | None) -> str:
    """Bytes in the unit that suits them; 1 kB is 1,000 bytes."""
    if count is None:
        return "unknown"
    place = 0
    while count >= 999.5 and place < len(UNITS) - 1:
        count, place = count / 1000, place + 1
    return f"{count:.0f} {UNITS[place]}" if place == 0 or count >= 99.95 else f"{count:.1f} {UNITS[place]}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 1)] + "…"

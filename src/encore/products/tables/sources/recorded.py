"""Columns of costs that were measured besides the workflow, on a machine that the record names."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.slices import Unit
from encore.products.tables.grid import CellRequest, Column, Grid
from encore.products.tables.sources.base import CellSource, CellValues, Parts, optional
from encore.storage import program_files


class Recorded(CellSource):
    """A number of a record; nothing where the record has an empty text in its place."""

    field = optional(
        str,
        "a number of a record of the run, `<record>/<key>/...`, where an entry of a list is named by its first value.",
        pattern=r"^[^/]+(/[^/]+)+$",
    )

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """A file that the run's configuration names; nothing of this run makes it."""
        name, records = request.value.split("/")[0], plan.config.records
        if name not in records:
            raise EncoreError(f"the run's `records` have no {name!r}{nearest(name, records)}")
        if not program_files.found(records[name]).is_file():
            raise EncoreError(f"records.{name}: {records[name]} is missing; name a file that benchmarks/ wrote")
        return request.model_copy(update={"record": records[name]})

    def values(self, request: CellRequest, parts: Parts) -> CellValues | None:
        """The number in a file of the user's, at the keys that the cell names; None where the entry is empty."""
        if not request.record:
            return None
        path, found = Path(request.record), _read(program_files.found(request.record))
        for key in request.value.split("/")[1:]:
            entries = dict(_entries(found))
            if key not in entries:
                raise EncoreError(f"{path}: no {key!r} for {request.value!r}{nearest(key, entries)}")
            found = entries[key]
        if found == "":
            return None
        return CellValues([None], [_number(found, f"{path}: {request.value!r}")])

    def named(self, request: CellRequest, column: Column) -> str:
        """The last key of the number's path, as recorded."""
        return f"recorded {request.value.rpartition('/')[2]}"

    def shown(self, value: float, unit: Unit) -> str:
        """Four significant digits."""
        return f"{value:.4g}".replace("-", "−")

    def notes(self, own: Sequence[Column], grid: Grid) -> list[str]:
        """Each record with its machine and its setting."""
        files: dict[str, dict[str, None]] = {}
        for column in own:
            for row in grid.rows:
                if record := row.cells[column.id].record:
                    files.setdefault(record, {})[column.label] = None
        return [f"{', '.join(labels)}: {_described(Path(file))}. Not tested." for file, labels in files.items()]


@cache
def _read(path: Path) -> Any:
    """A record."""
    try:
        record = json.loads(path.read_text())
        record["machine"]["processor"], record["setting"]["batch"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoreError(f"{path} is not a record of a measurement ({error}); name another under `records`") from error
    return record


def _entries(found: Any) -> Iterable[tuple[str, Any]]:
    """The next entries by key; those of a list by their first value."""
    if isinstance(found, dict):
        return found.items()
    entries = found if isinstance(found, list) else []
    return ((str(next(iter(entry.values()))), entry) for entry in entries if isinstance(entry, dict) and entry)


def _number(found: Any, place: str) -> float:
    """``1.5``, or ``+25.2 %`` as 25.2."""
    try:
        return float(found.removesuffix("%") if isinstance(found, str) else found)
    except (TypeError, ValueError) as error:
        raise EncoreError(f"{place} is {found!r}, not a number; name another key") from error


def _described(path: Path) -> str:
    """``recorded on <machine>, 1 thread, base, length 512, batches of 1, fp32 (path)``."""
    record = _read(program_files.found(path))
    machine, setting = record["machine"], record["setting"]
    accelerator = f", {machine['accelerator']}" if machine.get("accelerator") else ""
    threads = setting["threads"]
    return (
        f"recorded on {machine['processor']}{accelerator}, {threads} thread{'s' if threads > 1 else ''}, with a model "
        f"of shape {setting['model']}, texts of {setting['length']} tokens, batches of {setting['batch']} and "
        f"{setting['precision']} ({path})"
    )

"""The record of a benchmark, a JSON file, and its lines as a table."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encore.storage.files import write_text
from harness import machine

RESULTS = Path(__file__).parents[1] / "results"


def add_flags(parser: argparse.ArgumentParser, part: str) -> None:
    """The flags of every benchmark: where its record goes."""
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the record")
    parser.add_argument("--name", default=f"{part}-{machine.name()}", help="of the record")


def write(folder: Path, name: str, contents: dict[str, Any], before: float, packages: Sequence[str] = ()) -> Path:
    """Write ``<name>.json``: what was measured, on which machine, when, and with which versions.

    Args:
        before: the machine's load before anything was measured.
        packages: whose versions matter, next to those that every benchmark uses.
    """
    path = folder / f"{name}.json"
    surroundings = {
        "machine": machine.describe() | {"load_before": before, "load_after": machine.load()},
        "versions": machine.versions(packages),
        "commit": machine.COMMIT,
        "date": machine.today(),
    }
    write_text(path, json.dumps(contents | surroundings, indent=1) + "\n")
    return path


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of a Markdown table."""
    names = list(rows[0]) if rows else []
    head = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|" + " --- |" * len(names)]
    return [*head, *("| " + " | ".join(_cell(row[name]) for name in names) + " |" for row in rows)]


def _cell(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)

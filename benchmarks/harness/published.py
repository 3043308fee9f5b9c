"""Rows of a comparison: what we find next to what others print."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from encore.config.validation import read_yaml

FILE = Path(__file__).parents[1] / "published.yaml"
Row = dict[str, Any]


def read(path: Path = FILE) -> dict[str, dict[str, Any]]:
    """The printed numbers, by kind and name."""
    return read_yaml(path)


def compared(name: str, found: Mapping[str, int], printed: Mapping[str, Any]) -> list[Row]:
    """A row for every count that is printed; one that was not found differs."""
    return [
        {"file": name, "count": what, "found": found.get(what), "published": value, "equal": found.get(what) == value}
        for what, value in printed.items()
        if what != "origin"
    ]

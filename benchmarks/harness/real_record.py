"""The files of a comparison with real files: a JSON record, and Markdown for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from encore.storage.files import write_text
from harness.record import table

SMALL = 0.01
PARTS = (
    ("counts", "Counts"),
    ("measures", "Measures beside trec_eval"),
    ("significance", "Tests beside published p-values"),
    ("bm25", "BM25 (Lucene, k1 = 0.9, b = 0.4)"),
    ("codes", "Where BM25 ranks Cranfield's codes"),
)


def write(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Write ``<name>.json`` and ``<name>.md``."""
    write_text(folder / f"{name}.json", json.dumps(record, indent=1) + "\n")
    write_text(folder / f"{name}.md", markdown(record))


def markdown(record: dict[str, Any]) -> str:
    """One table a part; files that were not there are named."""
    lines = ["# Real files beside what others print about them", ""]
    lines += ["Versions: " + ", ".join(f"{package} {version}" for package, version in record["versions"].items()) + "."]
    for part, title in PARTS:
        if record[part]:
            lines += ["", f"## {title}", "", *table([_shown(row) for row in record[part]])]
    if record["left_out"]:
        lines += ["", "Not there: " + ", ".join(record["left_out"]) + "."]
    lines += ["", f"## Differences: {len(differing(record)) or 'none'}", ""]
    lines += [f"- {json.dumps(row)}" for row in differing(record)]
    return "\n".join(lines).rstrip() + "\n"


def differing(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows that are not as printed."""
    return [row for part, _ in PARTS for row in record[part] if row.get("equal") is False or row.get("agrees") is False]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _number(value) for name, value in row.items()}


def _number(value: Any) -> Any:
    """Measures have four decimals, as trec_eval's; what is smaller four digits; what is whole none."""
    if not isinstance(value, float):
        return value
    if value.is_integer():
        return int(value)
    return f"{value:.4f}" if value > SMALL else f"{value:.4g}"

"""The files of a measurement: a JSON record, tables in Markdown, and the paper's table as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encore.storage.files import write_text


def write(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Write ``<name>.json``, ``<name>.md`` and ``<name>.table4.csv``."""
    write_text(folder / f"{name}.json", json.dumps(record, indent=1) + "\n")
    write_text(folder / f"{name}.md", markdown(name, record))
    write_text(folder / f"{name}.table4.csv", _csv(record["table4"]))


def markdown(name: str, record: dict[str, Any]) -> str:
    setting, machine = record["setting"], record["machine"]
    kind = {"cpu": "CPU seconds of the process", "wall": "wall-clock seconds"}[setting["clock"]]
    lines = [
        f"# Pre-training on {name}",
        "",
        f"{machine['accelerator'] or machine['processor']}, {machine['cores']} cores, {setting['threads']} threads, "
        f"{setting['precision']}; load {machine['load_before']} before and {machine['load_after']} after. "
        f"Model {setting['model']}, vocabulary {setting['vocabulary']}, batches of {setting['batch']} texts of at most "
        f"{setting['length']} tokens. Best of {setting['repetitions'] * setting['steps']} steps, {kind}. "
        f"The machine's best matrix product: {record['peak_gflops']:.0f} GFLOP/s.",
        "",
        "Lengths: " + ", ".join(f"{count} of {bin_}" for bin_, count in record["lengths"].items()) + ".",
        "Versions: " + ", ".join(f"{package} {version}" for package, version in record["versions"].items()) + ".",
    ]
    if record["peer"]:
        peer = record["peer"]
        lines += [
            "",
            f"Hugging Face, {peer['name']}: {peer['samples_per_second']} samples/s, utilisation {peer['utilisation']}; "
            f"ours is {peer['ratio']} times as fast. "
            f"Loss of one batch: {peer['loss']:.6f}, ours {peer['our_loss']:.6f}.",
        ]
    for title, part in (
        ("Every objective", "objectives"),
        ('Efficiency, as in Table 4 of "Drop your Decoder"', "table4"),
        ("Masks of enhanced decoding, one text", "masks"),
        ("Goals", "goals"),
    ):
        if record[part]:
            lines += ["", f"## {title}", "", *table(record[part])]
    if record["left_out"]:
        lines += ["", "Not measured: " + "; ".join(record["left_out"]) + "."]
    return "\n".join(lines) + "\n"


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of a Markdown table."""
    names = list(rows[0])
    head = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|" + " --- |" * len(names)]
    return [*head, *("| " + " | ".join(_cell(row[name]) for name in names) + " |" for row in rows)]


def _cell(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()

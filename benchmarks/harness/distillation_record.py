"""The files of a measurement of teachers: a JSON record, and Markdown for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from encore.storage.files import write_text
from harness.record import table


def write(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Write ``<name>.json`` and ``<name>.md``."""
    write_text(folder / f"{name}.json", json.dumps(record, indent=1) + "\n")
    write_text(folder / f"{name}.md", markdown(name, record))


def markdown(name: str, record: dict[str, Any]) -> str:
    setting, machine = record["setting"], record["machine"]
    kind = {"cpu": "CPU seconds of the process", "wall": "wall-clock seconds"}[setting["clock"]]
    texts = "all" if setting["full"] else "at most"
    lines = [
        f"# What a teacher costs: {name}",
        "",
        f"{machine['accelerator'] or machine['processor']}, {machine['cores']} cores, {setting['threads']} threads, "
        f"{setting['precision']}; load {machine['load_before']} before and {machine['load_after']} after. Student and "
        f"teacher of the shape {setting['model']}; batches of {setting['batch']} queries of {setting['query_length']} "
        f"tokens with two passages of {setting['length']} each, {texts} of these. Best of "
        f"{setting['repetitions'] * setting['steps']} steps, {kind}. Versions: "
        + ", ".join(f"{package} {version}" for package, version in record["versions"].items())
        + ".",
        "",
        *table(record["arms"]),
        "",
        "`paper`: Table 1 of TCT-ColBERT, a batch of 96 on one TPU-v2. In-batch distillation from a cross-encoder, "
        "which reads every query with every passage of the batch, ran out of memory there and is not tried here.",
    ]
    return "\n".join(lines) + "\n"

"""The files of the comparison with sentence-transformers: a JSON record, and Markdown for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from encore.storage.files import write_text
from harness.record import table

DIFFERENCES = (
    "Ours leaves other right answers of a query out of its denominator; theirs does not. Its own batches have no text "
    "twice, ours may.",
    "Their learning rate warms up from 0, ours from the first step's share: one step apart until the warm-up ends.",
    "Their batches are padded column by column, and tokenised when they are made; ours are padded in four parts sorted "
    "by length, from ids that were made once (`tokens`, not counted here).",
    "The same on both sides: weights at the start, token ids, lengths of passages and queries, no dropout in this "
    "model, AdamW (0.9, 0.999, 1e-8), no decay, norm of the gradient clipped at 1, fp32.",
)


def write(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Write ``<name>.json`` and ``<name>.md``."""
    write_text(folder / f"{name}.json", json.dumps(record, indent=1) + "\n")
    write_text(folder / f"{name}.md", markdown(name, record))


def markdown(name: str, record: dict[str, Any]) -> str:
    setting, machine, agreed = record["setting"], record["machine"], record["agreement"]
    step = setting["step"]
    lines = [
        f"# Fine-tuning beside sentence-transformers: {name}",
        "",
        f"{machine['accelerator'] or machine['processor']}, {machine['cores']} cores, "
        f"{setting['numerics']['threads']} thread, {setting['numerics']['precision']}; load {machine['load_before']} "
        f"before and {machine['load_after']} after. Versions: "
        + ", ".join(f"{package} {version}" for package, version in record["versions"].items())
        + ".",
        "",
        f"`{setting['lineage']}` under `{setting['run']}`: {setting['steps']} steps of {step['batch']} queries with "
        f"{step['per_query']} negative each, learning rate {step['learning_rate']:g}, temperature "
        f"{step['temperature']:g}; {len(setting['seeds'])} seeds. RR@10 of all validation queries by exact search; "
        f"{record['start']:.4f} before any training.",
        "",
        f"One batch without copies ({agreed['examples']} queries): loss {agreed['loss']:.6f} there, "
        f"{agreed['our_loss']:.6f} here; gradients {agreed['gradient_apart']:.1e} of their size apart. Token ids are "
        f"equal. Our loss leaves out {agreed['pairs_left_out']:.3%} of a batch's pairs.",
        "",
        *table([_arm(arm) for arm in record["arms"]]),
        "",
        f"Difference from Encore over the same seeds, with its 90 % interval; equivalent where all of that lies within "
        f"{setting['margin']:g} (two one-sided t-tests at 5 %):",
        "",
        *table([_difference(one) for one in record["differences"]]),
        "",
        f"On the same batches Encore trains {_ratio(record['ratio'])} times as many examples a second, "
        f"{_ratio(record['ratio_without_data'])} times without the making of batches (seconds of the process, one "
        "thread; the median of seeds, the least and the most).",
        "",
        "What differs, and what does not:",
        "",
        *(f"- {line}" for line in DIFFERENCES),
    ]
    return "\n".join(lines) + "\n"


def _arm(arm: dict[str, Any]) -> dict[str, Any]:
    return {
        "trained_by": arm["name"],
        "mean_RR@10": f"{arm['mean']:.4f}",
        "deviation_over_seeds": f"{arm['deviation']:.4f}",
        "examples_per_second": f"{arm['examples_per_second']:.1f}",
    }


def _difference(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "arm": one["arm"],
        "difference": f"{one['mean']:+.4f}",
        "interval": f"[{one['low']:+.4f}, {one['high']:+.4f}]",
        "p": f"{one['p']:.2g}",
        "equivalent": one["equivalent"],
    }


def _ratio(found: dict[str, float]) -> str:
    return f"{found['median']:.2f} ({found['low']:.2f} to {found['high']:.2f})"

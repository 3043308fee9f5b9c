"""What is wanted of one H100, next to what the parts of ``gpu.py`` have measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.figures import EXPLAINED, SPEEDS, rounded


class Goal(NamedTuple):
    """One number: ``bound`` says whether ``aim`` is the least or the most of it.

    ``path`` leads to it in the record of a part: by keys, and to a row of a table by the row's name. It is empty where
    nothing measures the number, for the reason ``why``.
    """

    label: str
    part: str
    path: tuple[str, ...]
    aim: float
    bound: str = "least"
    why: str = ""


BUSY, OF_BEST = ("objectives", "MLM 15 %", "utilisation"), "share of the GPU's best product"
OVER, OVER_KEY = "over operations relative to MLM 30 %", "time_over_operations"
MORE = "percent more time than without a teacher"
IN_LOOP, KEPT = "in-batch, ColBERT in the loop", "in-batch, kept ColBERT vectors"
SEARCHED = (
    ("one query, milliseconds", "one_query_ms"),
    ("all queries, seconds", "all_queries_seconds"),
    ("mining for 502,939 queries, by one batch of them, seconds", "mining_seconds"),
)
# Three quarters of a memory's 3 TB/s for 27 GB, and of a GPU's 50 TFLOP/s outside its matrix units.
SEARCH = (12.0, 2.5, 180.0)
ENCODING = "encoding from texts, speed relative to sentence-transformers"
GOALS = (
    Goal(f"MLM of 512, full texts, {OF_BEST}", "pretraining-512", BUSY, 0.38),
    Goal(f"MLM of 144, full texts, {OF_BEST}", "pretraining-144", BUSY, 0.30),
    Goal(f"MLM packed, texts as MS MARCO's, {OF_BEST}", "pretraining-packed", BUSY, 0.27),
    Goal("MLM of 512, speed relative to Hugging Face", "pretraining-512", ("peer", "ratio"), 1),
    *(
        Goal(f"{name} of 512, speed relative to MLM 30 %", "pretraining-512", ("objectives", name, "speed_of_mlm"), aim)
        for name, aim in SPEEDS.items()
    ),
    *(
        Goal(f"{name} of 512, time {OVER}", "pretraining-512", ("objectives", name, OVER_KEY), EXPLAINED, "most")
        for name in SPEEDS
    ),
    Goal("enhanced of 512, samples a second", "data", ("full", "enhanced", "samples_per_second"), 700),
    Goal("enhanced of 512, wait for data, percent", "data", ("full", "enhanced", "wait_percent"), 2, "most"),
    Goal("MLM packed, calls of a step's operations, percent", "data", ("packed", "mlm", "launch_percent"), 60, "most"),
    Goal("fine-tuning, 64 x (1 + 15), steps a second", "finetuning", ("rows", "whole batch", "steps_per_second"), 8),
    Goal("the same in parts, time relative to one", "finetuning", ("rows", "in parts", "time"), 1.4, "most"),
    Goal(f"ColBERT in the loop, {MORE}", "distillation", ("arms", IN_LOOP, "more_time"), 35, "most"),
    Goal(f"its vectors kept, {MORE}", "distillation", ("arms", KEPT, "more_time"), 5, "most"),
    Goal("in-batch, cross-encoder in the loop, GB of memory", "cross-encoder", ("memory_gb",), 20, "most"),
    Goal("encoding, passages a second", "encoding", ("passages_per_second",), 15_000),
    Goal("encoding, cores of the host at work", "encoding", ("host_cores",), 1.2, "most"),
    Goal("reranking by a cross-encoder, pairs a second", "scoring", ("cross-encoder", "pairs_per_second"), 10_000),
    Goal("reranking by ColBERT, pairs a second", "scoring", ("late-interaction", "pairs_per_second"), 10_000),
    Goal("encoding in 60 % of its memory, time relative to all", "memory", ("encoding", "time"), 1.2, "most"),
    Goal("80 queries for each of MS MARCO's passages, GPU-hours", "predicting", ("gpu_hours_of_all",), 800, "most"),
    Goal(f"{ENCODING} in fp16", "encoding", ("speed_of_sentence_transformers",), 1.3),
    Goal(f"{ENCODING} with FlashAttention-2", "encoding", (), 1.0, why="flash-attn is none of Encore's packages"),
    *(
        Goal(f"search in fp32, {label}", "search", ("fp32", key), aim, "most")
        for (label, key), aim in zip(SEARCHED, SEARCH, strict=True)
    ),
)


def judged(folder: Path, parts: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """A line for each goal: its aim, what its part's record says, whether it is met, and why there is no number.

    Args:
        folder: of the records, those of parts that have measured something.
        parts: how they ended, as ``parts.run_part`` says it.
    """
    ended = {part["part"]: part["ended"] for part in parts}
    return [_judged(goal, folder / f"{goal.part}.json", ended.get(goal.part, "not run")) for goal in GOALS]


def _judged(goal: Goal, path: Path, ended: str) -> dict[str, Any]:
    measured = path.is_file() and bool(goal.path)
    found = value_at(json.loads(path.read_text()), goal.path) if measured else None
    why = goal.why or (f"not in the record of {goal.part}" if measured else f"{goal.part}: {ended}")
    met = found is not None and (found >= goal.aim if goal.bound == "least" else found <= goal.aim)
    shown = "" if found is None else rounded(found)
    return {
        "goal": goal.label,
        "aim": f"{goal.bound} {goal.aim}",
        "measured": shown,
        "met": met,
        "why": "" if shown else why,
    }


def value_at(content: Any, path: tuple[str, ...]) -> float | None:
    """The number at the end of a path, also one in percent; None where the record has no such row or nothing there."""
    for key in path:
        if isinstance(content, list):
            content = next((row for row in content if key in row.values()), None)
        else:
            content = content.get(key)
        if content is None:
            return None
    return float(str(content).removesuffix(" %"))

"""What a teacher adds to the time of a batch: Table 1 of TCT-ColBERT, next to answers that were kept; see README.md."""

from __future__ import annotations

import argparse
import copy
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encore.storage.program import run

import torch
from harness import machine, record, steps, texts, timing
from harness.figures import rounded
from harness.setting import SHAPES, Setting
from harness.teachers import Arm, arms
from torch import nn

from encore.finetuning.retrieval_task import RetrievalTask
from encore.models.encoder import Encoder

QUERY_LENGTH = 36  # the paper's 32 and the prefix of its released code; 150 and the prefix are a passage's
QUICK: dict[str, Any] = {"model": "nano", "vocabulary": 500, "length": 32, "batch": 4, "repetitions": 2, "steps": 1}


class Runner:
    """A way to train, on one batch, with its own copy of the common weights."""

    def __init__(self, arm: Arm, setting: Setting, encoder: Encoder) -> None:
        self.arm, self.setting, self.encoder = arm, setting, copy.deepcopy(encoder)
        self.task: RetrievalTask = arm.task()
        self.turns: list[steps.Steps] = []

    def measure(self) -> None:
        """Some optimiser steps that only warm up, and as many that count."""
        task, count, numerics = self.task, self.setting.steps, self.setting.numerics()
        self.turns.append(steps.measured(task, self.encoder, nn.ModuleDict(), task.step, numerics, count, count))


def main() -> None:
    options = _options()
    setting = Setting(**{key: getattr(options, key) for key in Setting.__dataclass_fields__})
    torch.set_num_threads(setting.threads)
    before = machine.load()
    with tempfile.TemporaryDirectory() as folder:
        contents = measure(setting, Path(folder))
    record.write(options.output, options.name, contents, before)
    print("\n".join(record.table(contents["arms"])))


def measure(setting: Setting, folder: Path) -> dict[str, Any]:
    """Train in every way, in turns, from the same weights on the same batch."""
    query_length = min(QUERY_LENGTH, setting.length)
    store, queries = texts.write_judged(
        folder, setting.batch, setting.length, query_length, setting.vocabulary, setting.full
    )
    torch.manual_seed(0)
    shape = setting.shape(positions=setting.length + query_length)  # the cross-encoder reads both texts as one
    encoder = Encoder(shape)
    fields = {
        "kind": "finetune",
        "collection": "made-up",
        "negatives": "bm25",
        "per_query": 1,
        "batch": setting.batch,
        "length": setting.length,
        "query_length": query_length,
        "learning_rate": 1e-5,
        "warmup": 0,
        "steps": 1,
    }
    runners = [Runner(arm, setting, encoder) for arm in arms(fields, queries, store, encoder, folder)]
    for turn in range(setting.repetitions):
        for one in runners:
            print(f"turn {turn + 1}/{setting.repetitions}  {one.arm.name}", flush=True)
            one.measure()
    return {"setting": setting.to_json() | {"query_length": query_length}, "arms": rows(runners, setting), "goals": []}


def rows(runners: Sequence[Runner], setting: Setting) -> list[dict[str, Any]]:
    """Seconds and operations of each, and what they are over the first, which has no teacher."""
    seconds = [timing.best([turn.seconds for turn in one.turns], setting.clock) for one in runners]
    flops = [one.turns[-1].flops for one in runners]
    return [
        {
            "arm": one.arm.name,
            "step_seconds": rounded(its),
            "more_time": f"{100 * (its / seconds[0] - 1):+.1f} %",
            "more_operations": f"{100 * (count / flops[0] - 1):+.1f} %",
            "paper": one.arm.paper and f"+{one.arm.paper} %",
        }
        for one, its, count in zip(runners, seconds, flops, strict=True)
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    gpu = torch.cuda.is_available()
    parser.add_argument("--model", choices=SHAPES, default="base")
    parser.add_argument("--vocabulary", type=int, default=30522)
    parser.add_argument("--length", type=int, default=154, help="tokens of a passage, [CLS] and [SEP] included")
    parser.add_argument("--batch", type=int, default=96 if gpu else 8, help="queries, with two passages each")
    parser.add_argument(
        "--ragged", dest="full", action="store_false", help="lengths as MS MARCO has them, not all full"
    )
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: on a busy machine, one thread")
    parser.add_argument("--repetitions", type=int, default=3, help="turns, of each of which the best counts")
    parser.add_argument("--steps", type=int, default=1, help="measured in each turn")
    parser.add_argument("--quick", action="store_true", help="a minute model, to see that everything runs")
    record.add_flags(parser, "distillation")
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
    return options


if __name__ == "__main__":
    run(main)

"""MLM or predicted queries by one process and then by several, one a GPU, each with as many texts; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.storage.program import run

import torch
from harness import gpu_filled, machine, ours, record, steps, texts
from harness.figures import rounded
from harness.gpu_training import POOL, VOCABULARY, precision
from harness.setting import SHAPES, Setting

from encore.models.start import initial_encoder
from encore.storage import environment
from encore.storage.files import write_json
from encore.training import launch

WARM, COUNT = 4, 8  # steps that are not counted, and that are
QUICK: dict[str, Any] = {"model": "nano", "length": 32, "batch": 4, "expanded": 4, "predicted": 4}


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    before, alone = machine.load(), options.output / f"{options.name}-alone.json"
    if "WORLD_SIZE" not in os.environ:  # not yet one of several
        write_json(alone, {"samples_per_second": rounded(MEASURED[options.measure](options, 1))})
    launch.start_processes(options.processes)
    processes = environment.number(environment.SIZE)
    found = rounded(MEASURED[options.measure](options, processes))
    if launch.leads():
        one = json.loads(alone.read_text())["samples_per_second"]
        alone.unlink()
        contents = {"processes": processes, "samples_per_second": found, "speed_of_one": rounded(found / one)}
        record.write(options.output, options.name, contents, before)
        print("\n".join(record.table([contents])))


def training(options: argparse.Namespace, processes: int) -> float:
    """Texts a second of all processes together, of which this is one."""
    batch = options.batch * processes
    setting = Setting(options.model, VOCABULARY, options.length, batch, True, precision(), 1, "wall", 1, 1)
    step = ours.step_of("mlm", {}, setting)
    with tempfile.TemporaryDirectory() as folder:
        store = texts.write(Path(folder), POOL * batch, setting.length, VOCABULARY, setting.full)
        task, encoder = ours.load(step, store), initial_encoder(setting.shape(), 0)
        torch.manual_seed(0)
        its = steps.measured(task, encoder, task.heads(encoder), step, setting.numerics(), WARM, COUNT)
    return batch / its.seconds.wall


def predicting(options: argparse.Namespace, processes: int) -> float:
    """Predicted queries a second of all processes together, of which this is one."""
    return gpu_filled.sampled(vars(options), processes)


# One for each start of torchrun: in its store a second group may find the addresses of the first, where nobody answers.
MEASURED: dict[str, Callable[[argparse.Namespace, int], float]] = {"training": training, "predicting": predicting}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2, help="that work together")
    parser.add_argument("--measure", choices=MEASURED, default="training")
    parser.add_argument("--model", choices=SHAPES, default="base")
    parser.add_argument("--length", type=int, default=512, help="tokens of a text, [CLS] and [SEP] included")
    parser.add_argument("--batch", type=int, default=64, help="texts of each process")
    parser.add_argument("--expanded", type=int, default=24, help="passages of each that queries are predicted for")
    parser.add_argument("--predicted", type=int, default=64, help="tokens of such a query")
    parser.add_argument("--quick", action="store_true", help="a minute model, to see that everything runs")
    record.add_flags(parser, "together")
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
    return options


if __name__ == "__main__":
    run(main)

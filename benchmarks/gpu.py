"""Everything about one GPU in parts that survive each other, and a table of goals at the end; see README.md."""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from encore.storage.program import run

import numpy as np
import torch
from harness import gpu_encoding, gpu_filled, gpu_goals, gpu_training, machine, record, timing
from harness.gpu_encoding import LENGTH
from harness.gpu_training import Facts, setting_of
from harness.parts import DONE, run_part
from harness.setting import device

from encore.errors import EncoreError
from encore.models.encoder import Encoder
from encore.retrieval.inner_products import BATCH, ExactSearch
from encore.retrieval.tiles import Stretch, Tiles
from encore.storage.files import write_json
from encore.training.checkpoint import save_checkpoint

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests" / "unit"
LEFT_OUT = "left out"
TOGETHER = ("two-training", "two-predicting")  # parts that two GPUs work on

# What is measured at, on a GPU and to see on a CPU that everything runs.
FULL: Facts = {
    "model": "base",
    "passages": 8_841_823,
    "dimension": 768,
    "queries": 6980,
    "depth": 1000,
    "mined": 502_939,  # queries that negatives are mined for
    "mined_depth": 200,
    "texts": 60_000,
    "length": 512,
    "batch": 64,
    "warm": 16,  # steps that are not counted: a worker makes as many batches before it gives the first
    "steps": 32,
    "workers": 4,
    "negatives": 15,
    "passage_lengths": (144, 128),
    "query_length": 32,
    "expanded": 24,  # passages that queries are predicted for
    "predicted": 64,  # tokens of such a query
    "distilled": (96, 154, 36),  # TCT-ColBERT's batch, and tokens of its passages and queries
}
QUICK: Facts = {
    "model": "nano",
    "passages": 5_000,
    "dimension": 32,
    "queries": 40,
    "depth": 10,
    "mined": 60,
    "mined_depth": 5,
    "texts": 200,
    "length": 32,
    "batch": 4,
    "warm": 2,
    "steps": 3,
    "workers": 2,
    "negatives": 3,
    "passage_lengths": (24, 20),
    "query_length": 10,
    "expanded": 4,
    "predicted": 4,
    "distilled": (4, 24, 10),
}


def peaks(sizes: Facts) -> Facts:
    """Operations and bytes a second that the device, its bus and a core of its host reach at best."""
    size = 256 if sizes is QUICK else 64 * 2**20
    numbers, pinned = torch.empty(size, device=device()), torch.zeros(size)
    pinned = pinned.pin_memory() if device().type == "cuda" else pinned
    one, calls = torch.zeros(1, device=device()), range(size // 2**14 + 1)
    works: dict[str, Callable[[], object]] = {
        "copied": numbers.clone,
        "sent": lambda: numbers.copy_(pinned, non_blocking=True),
        "called": lambda: [one.add_(1) for _ in calls],
    }
    best = {name: timing.best([timing.time_of(work) for _ in range(10)], "wall") for name, work in works.items()}
    kinds = ("bf16", "fp32") if device().type == "cuda" else ("fp32",)  # which few processors multiply
    return {
        **{f"{kind}_tflops": timing.peak("wall", kind) / 1e12 for kind in kinds},
        "memory_gb_per_second": 2 * numbers.nbytes / best["copied"] / 1e9,
        "host_to_device_gb_per_second": numbers.nbytes / best["sent"] / 1e9,
        "host_core_gflops": timing.peak("wall", "fp32", on="cpu") / 1e9,
        "call_us": 1e6 * best["called"] / len(calls),
    }


def drawn(tiles: Tiles) -> Iterator[Stretch]:
    """Vectors that are drawn on the device, in place of a collection that a disk would have to hold."""
    generator = torch.Generator(device()).manual_seed(0)
    for first, part in tiles._cuts(1):
        vectors = torch.randn(tiles.size, tiles.dimension, generator=generator, device=device())
        yield Stretch(first, len(part), vectors)


def search(sizes: Facts) -> Facts:
    """One query, all, and those that are mined for, over MS MARCO's number of vectors.

    Mining's seconds are those of a batch, times the number of batches.
    """
    with mock.patch.object(Tiles, "_copied" if device().type == "cuda" else "_read", drawn):
        return {"fp32": _searched(sizes)}


def _searched(sizes: Facts) -> Facts:
    vectors = np.broadcast_to(np.float32(0), (sizes["passages"], sizes["dimension"]))
    searching, depth = ExactSearch([vectors], device()), sizes["depth"]
    if sizes is FULL and searching.tiles.resident is None:
        raise EncoreError("the vectors do not fit into the GPU's memory, which the goals suppose")
    one, every, mined = (
        torch.randn(count, sizes["dimension"], device=device())
        for count in (1, sizes["queries"], min(sizes["mined"], BATCH[device().type]))
    )
    searching.best(one, depth)
    seconds = timing.best([timing.time_of(lambda: searching.best(one, depth)) for _ in range(5)], "wall")
    of_all = timing.time_of(lambda: searching.best(every, depth)).wall
    of_batch = timing.time_of(lambda: searching.best(mined, sizes["mined_depth"])).wall
    operations = 2.0 * sizes["passages"] * sizes["queries"] * sizes["dimension"]
    return {
        "one_query_ms": 1000 * seconds,
        "all_queries_seconds": of_all,
        "tflops": operations / of_all / 1e12,
        "mining_seconds": of_batch * sizes["mined"] / len(mined),
    }


def checkpoint(sizes: Facts) -> Facts:
    """How long a training waits for its checkpoint: weights and both moments of AdamW."""
    encoder = Encoder(setting_of(sizes, LENGTH, full=False).shape()).to(device())
    with tempfile.TemporaryDirectory() as folder:
        content = {name: copy.deepcopy(encoder).state_dict() for name in ("weights", "first", "second")}
        seconds = timing.time_of(lambda: save_checkpoint(Path(folder), "benchmark", 1, content)).wall
    return {"seconds": seconds}


MEASURED: dict[str, Callable[[Facts], Facts]] = {
    "peaks": peaks,
    "encoding": gpu_encoding.encoding,
    "scoring": gpu_filled.scoring,
    "memory": gpu_filled.memory,
    "predicting": gpu_filled.predicting,
    "search": search,
    "checkpoint": checkpoint,
    "data": gpu_training.data,
    "finetuning": gpu_training.finetuning,
    "cross-encoder": gpu_training.cross_encoder,
}
# The seconds that each part may take, 900 in all; what one leaves over, the next ones may have.
LIMITS = {
    "peaks": 25,
    "tests": 140,
    "pretraining-512": 130,
    "pretraining-packed": 70,
    "finetuning": 50,
    "search": 25,
    "data": 50,
    "encoding": 50,
    "scoring": 30,
    "pretraining-144": 70,
    "memory": 30,
    "predicting": 50,
    "distillation": 40,
    "cross-encoder": 40,
    "checkpoint": 20,
    **dict.fromkeys(TOGETHER, 40),
}


def commands(output: Path, quick: bool) -> dict[str, list[str]]:
    """Each part's command; what matters most comes first."""
    python, small = sys.executable, ["--quick"] if quick else []
    found = {name: [python, __file__, "--part", name, "--output", str(output), *small] for name in MEASURED}
    uses_gpu = ('usefixtures("gpu")', "gpu: str", "mark.gpu\n")  # so that other files are not imported
    tests = sorted(TESTS.rglob("test_*.py"))
    marked = [str(path) for path in tests if any(use in path.read_text() for use in uses_gpu)]
    found["tests"] = [python, "-m", "pytest", "-q", "-m", "gpu", *(["--collect-only"] if quick else []), *marked]
    shapes = {
        "pretraining-512": ["--length", "512", "--full", "--steps", "4", "--repetitions", "2"],
        "pretraining-packed": ["--length", "144", "--steps", "12", "--repetitions", "1"],
        "pretraining-144": ["--length", "144", "--full", "--steps", "12", "--repetitions", "1"],
        "distillation": ["--precision", gpu_training.precision(), "--steps", "3", "--repetitions", "2"],
    }
    for name, shape in shapes.items():
        program = [python, str(HERE / f"{name.partition('-')[0]}.py"), "--output", str(output), "--name", name]
        found[name] = [*program, *shape, *small]
    for name in TOGETHER:
        program = [python, str(HERE / "together.py"), "--output", str(output), "--name", name]
        found[name] = [*program, "--measure", name.removeprefix("two-"), *small]
    return {name: found[name] for name in LIMITS}


def main() -> int:
    options = _options()
    sizes = QUICK if options.quick else FULL
    options.output.mkdir(parents=True, exist_ok=True)
    if options.part:
        torch.set_num_threads(1)
        write_json(options.output / f"{options.part}.json", MEASURED[options.part](sizes))
        return 0
    before = machine.load()
    parts = _run(options.output, options.only or list(LIMITS), options.quick)
    contents: Facts = {"sizes": sizes, "parts": parts, "measured": _measured(options.output)}
    contents["goals"] = gpu_goals.judged(options.output, parts)
    record.write(options.output, f"gpu-{machine.name()}", contents, before)
    print("\n".join(["", *record.table(parts)]))
    print("\n".join(["", *record.table(contents["goals"])]))
    if options.quick:
        print("\nThese are the numbers of tiny sizes: they only show that everything runs.")
    return 0 if all(part["ended"] == DONE or part["ended"].startswith(LEFT_OUT) for part in parts) else 1


def _run(output: Path, names: list[str], quick: bool) -> list[Facts]:
    """How the parts of these names ended; what an earlier run measured of them is removed."""
    parts, spare = list[Facts](), 0.0
    for name, command in commands(output, quick).items():
        if name not in names:
            continue
        if name in TOGETHER and (reason := left_out(quick)):
            parts.append({"part": name, "ended": f"{LEFT_OUT}: {reason}", "seconds": 0.0})
            continue
        if (earlier := output / f"{name}.json").is_file():
            earlier.unlink()
        environment = os.environ if name in TOGETHER else one_gpu()
        most = 900.0 if quick else LIMITS[name] + spare  # here only whether all parts run matters
        parts.append(run_part(name, command, most, output / f"{name}.log", environment))
        spare += LIMITS[name] - parts[-1]["seconds"]
    return parts


def one_gpu() -> dict[str, str]:
    """The environment of a part that sees one GPU alone, which Hugging Face's Trainer would share its batches among."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    return {**os.environ, "CUDA_VISIBLE_DEVICES": first}


def left_out(quick: bool) -> str:
    """Why two processes are not measured here; empty where they are."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return "" if gpus > 1 or (quick and not gpus) else f"it needs two GPUs and there {'is one' if gpus else 'is none'}"


def _measured(folder: Path) -> Facts:
    """What the parts have measured that no program of their own belongs to."""
    paths = {name: folder / f"{name}.json" for name in (*MEASURED, *TOGETHER)}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.is_file()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; also on a CPU")
    parser.add_argument("--only", nargs="*", choices=LIMITS, help="these parts; without: all")
    parser.add_argument("--part", choices=MEASURED, help=argparse.SUPPRESS)  # what a part's own process is told
    parser.add_argument("--output", type=Path, help="of the records; without: results/gpu, or results/gpu-quick")
    options = parser.parse_args()
    options.output = options.output or HERE / "results" / ("gpu-quick" if options.quick else "gpu")
    return options


if __name__ == "__main__":
    run(main)

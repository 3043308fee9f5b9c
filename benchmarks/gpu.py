"""Everything about one GPU in parts that survive each other, and a table of goals at the end; see README.md."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.storage.program import run

import numpy as np
import torch
from harness import figures, machine, record, texts, timing
from harness.parts import run_part
from harness.setting import Setting, device

from encore.models.encoder import Encoder
from encore.retrieval.encode import CollectionShard, encode
from encore.retrieval.products import BATCH, Tiles
from encore.retrieval.rescored import tiles_for
from encore.storage.files import write_json
from encore.training import machine as numerics
from encore.training.checkpoint import save_checkpoint

HERE = Path(__file__).parent
Facts = dict[str, Any]

# What is measured at, on a GPU and to see on a CPU that everything runs.
FULL: Facts = {
    "model": "base",
    "passages": 8_841_823,
    "dimension": 768,
    "queries": 6980,
    "depth": 1000,
    "texts": 60_000,
}
QUICK: Facts = {"model": "nano", "passages": 5_000, "dimension": 32, "queries": 40, "depth": 10, "texts": 200}
VOCABULARY, LENGTH = 30522, 144  # of an encoded passage, as the papers read MS MARCO

# What it is, its part, its key there, and the least or the most that we want of one H100.
GOALS = (
    ("MLM of 512, full texts, samples a second", "pretraining-512", "samples_per_second", 1000, "least"),
    ("MLM of 144, as MS MARCO, samples a second", "pretraining-144", "samples_per_second", 3500, "least"),
    ("encoding, passages a second", "encoding", "passages_per_second", 15_000, "least"),
    ("search, one query, milliseconds", "search", "one_query_ms", 6.0, "most"),
    ("search, all queries, seconds", "search", "all_queries_seconds", 1.0, "most"),
)


def peaks(sizes: Facts) -> Facts:
    """Operations and bytes a second that the device reaches at best."""
    size = 256 if sizes is QUICK else 64 * 2**20
    numbers = torch.empty(size, device=device())
    copied = timing.best([timing.time_of(lambda: numbers.clone()) for _ in range(10)], "wall")
    products = {f"{kind}_tflops": timing.peak("wall", kind) / 1e12 for kind in ("bf16", "fp32")}
    return {**products, "memory_gb_per_second": 2 * numbers.nbytes / copied / 1e9}


def encoding(sizes: Facts) -> Facts:
    """Passages of MS MARCO's lengths through an encoder of the papers' shape, in bf16 on a GPU."""
    setting = Setting(sizes["model"], VOCABULARY, LENGTH, sizes["texts"], False, _precision(), 1, "wall", 1, 1)
    with tempfile.TemporaryDirectory() as folder:
        store, _ = texts.write_judged(Path(folder), sizes["texts"] // 2, LENGTH, 32, VOCABULARY, full=False)
        torch.manual_seed(0)
        encoder = Encoder(setting.shape()).to(device()).eval()
        with numerics.precision(setting.numerics(), device()):
            list(encode(encoder, store.passages, CollectionShard(0, 50), LENGTH))  # to warm up
            seconds = timing.time_of(lambda: list(encode(encoder, store.passages, CollectionShard(0, 1), LENGTH))).wall
    return {"passages_per_second": len(store.passages) / seconds}


def made_up(passages: int, dimension: int, products: str) -> Tiles:
    """Vectors that are drawn on the device, for a collection that no disk has to hold."""
    shape = np.broadcast_to(np.float32(0), (passages, dimension))
    tiles = tiles_for(shape[:0], device(), products)
    tiles.vectors, generator = shape, torch.Generator(device()).manual_seed(0)
    tiles._resident = [
        torch.randn(tiles.size, dimension, generator=generator, device=device()) for _ in range(0, passages, tiles.size)
    ]
    return tiles


def search(sizes: Facts) -> Facts:
    """One query, and all, over MS MARCO's number of vectors; and both by products of fp16."""
    (one, every), (one_fp16, every_fp16) = (_searched(sizes, products) for products in ("fp32", "fp16"))
    operations = 2.0 * sizes["passages"] * sizes["queries"] * sizes["dimension"]
    found = {"one_query_ms": 1000 * one, "all_queries_seconds": every, "tflops": operations / every / 1e12}
    return {**found, "one_query_ms_fp16": 1000 * one_fp16, "all_queries_seconds_fp16": every_fp16}


def _searched(sizes: Facts, products: str) -> tuple[float, float]:
    """The seconds of one query, and of all."""
    tiles, depth = made_up(sizes["passages"], sizes["dimension"], products), sizes["depth"]
    queries = torch.randn(sizes["queries"], sizes["dimension"], device=device())
    tiles.best(queries[:1], depth)
    one = timing.best([timing.time_of(lambda: tiles.best(queries[:1], depth)) for _ in range(5)], "wall")
    batches = queries.split(BATCH[device().type])
    return one, timing.time_of(lambda: [tiles.best(batch, depth) for batch in batches]).wall


def checkpoint(sizes: Facts) -> Facts:
    """How long a training waits for its checkpoint: weights and both moments of AdamW."""
    setting = Setting(sizes["model"], VOCABULARY, LENGTH, 1, False, "fp32", 1, "wall", 1, 1)
    weights = Encoder(setting.shape()).to(device()).state_dict()
    with tempfile.TemporaryDirectory() as folder:
        content = {"weights": weights, "first": weights, "second": weights}
        seconds = timing.time_of(lambda: save_checkpoint(Path(folder), "benchmark", 1, content)).wall
    return {"seconds": seconds}


MEASURED: dict[str, Callable[[Facts], Facts]] = {
    "peaks": peaks,
    "encoding": encoding,
    "search": search,
    "checkpoint": checkpoint,
}


def commands(output: Path, quick: bool) -> dict[str, tuple[list[str], int]]:
    """Each part's command and the seconds that it may take; what matters most comes first."""
    python, small = sys.executable, ["--quick"] if quick else []
    own = {name: [python, __file__, "--part", name, "--output", str(output), *small] for name in MEASURED}
    gpu_tests = [python, "-m", "pytest", "-q", "-m", "gpu", str(HERE.parent / "tests/unit")]
    found = {
        "peaks": (own["peaks"], 60),
        "tests": ([*gpu_tests, "--collect-only"] if quick else gpu_tests, 120),
        "search": (own["search"], 60),
        "encoding": (own["encoding"], 60),
        "checkpoint": (own["checkpoint"], 30),
    }
    for length, full in ((512, ["--full"]), (144, [])):
        program = [python, str(HERE / "pretraining.py"), "--output", str(output), "--name", f"pretraining-{length}"]
        shape = small or ["--length", str(length), *full, "--repetitions", "2"]
        found[f"pretraining-{length}"] = ([*program, *shape], 150)
    program = [python, str(HERE / "distillation.py"), "--output", str(output), "--name", "distillation"]
    found["distillation"] = ([*program, *(small or ["--repetitions", "2"])], 60)
    return found


def main() -> None:
    options = _options()
    sizes = QUICK if options.quick else FULL
    options.output.mkdir(parents=True, exist_ok=True)
    if options.part:
        torch.set_num_threads(1)
        write_json(options.output / f"{options.part}.json", MEASURED[options.part](sizes))
        return
    parts, before = [], machine.load()
    for name, (command, most) in commands(options.output, options.quick).items():
        if not options.only or name in options.only:
            parts.append(run_part(name, command, most, options.output / f"{name}.log"))
    contents = {"sizes": sizes, "parts": parts, "goals": goals(options.output)}
    record.write(options.output, f"gpu-{machine.name()}", contents, before)
    print("\n".join(["", *record.table(parts)]))
    print("\n".join(["", *record.table(contents["goals"])]))


def goals(folder: Path) -> list[Facts]:
    """Each goal next to what was measured; empty where its part did not end."""
    found = []
    for label, part, key, aim, bound in GOALS:
        path = folder / f"{part}.json"
        measured = _value(json.loads(path.read_text()), key) if path.is_file() else None
        met = measured is not None and (measured >= aim if bound == "least" else measured <= aim)
        shown = "" if measured is None else figures.rounded(measured)
        found.append({"goal": label, "aim": f"{bound} {aim}", "measured": shown, "met": met})
    return found


def _value(content: Facts, key: str) -> float | None:
    """A part's number, or that of the first objective, which is MLM."""
    value: float | None = content.get(key) or content.get("objectives", [{}])[0].get(key)
    return value


def _precision() -> str:
    return "bf16" if device().type == "cuda" else "fp32"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs; also on a CPU")
    parser.add_argument("--only", nargs="*", choices=[*commands(HERE, quick=True)], help="these parts; without: all")
    parser.add_argument("--part", choices=MEASURED, help=argparse.SUPPRESS)  # what a part's own process is told
    parser.add_argument("--output", type=Path, default=HERE / "results" / "gpu")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)

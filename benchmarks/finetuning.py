"""Fine-tune through sentence-transformers and through Encore: are the models equally good? See README.md."""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from encore.storage.program import run

from harness import agreement, equivalence, figures, machine, record
from harness.recipe import MEASURE, Recipe, planned
from harness.sentence_transformers_peer import Done, Peer
from harness.setting import SHAPES
from harness.timing import time_of
from torch import nn

from encore.models import embed
from encore.products.catalogue import DEFAULT_RUN
from encore.training.checkpoint import Resume
from encore.training.loop import train

Found = list[dict[str, float]]  # of each seed: the measure, and seconds
FASTER, GOAL = 1.5, "fine-tuning{}, speed relative to sentence-transformers' trainer"
TURNS, STEPS = 3, 4  # of a model of another shape
MARGIN = 0.01  # of RR@10, fixed before the first run
OURS, THEIRS, OWN, PLANTED = (
    "Encore",
    "sentence-transformers, our batches",
    "sentence-transformers, its own batches",
    "planted error: sentence-transformers, own batches, scale 1",
)
PACKAGES = ("sentence-transformers", "datasets")


def main() -> None:
    options = _options()
    recipe = planned(options.lineage, options.run)
    before = machine.load()
    contents = measure(recipe, options.seeds, options.margin)
    contents["shape"] = shape = of_shape(recipe, options.model)
    contents["goals"].append(figures.goal(GOAL.format(f" of {options.model}"), shape["ratio"]["median"], FASTER))
    contents["setting"] = {"lineage": options.lineage, "run": str(options.run)} | contents["setting"]
    record.write(options.output, options.name, contents, before, PACKAGES)
    for part in ("differences", "goals"):
        print("\n".join(["", *record.table(contents[part])]))


def measure(recipe: Recipe, seeds: Sequence[int], margin: float) -> dict[str, Any]:
    """Train all arms in turns, seed by seed, and compare them with ours."""
    peer, planted = Peer(recipe), Peer(recipe, scale=1.0)
    first = recipe.batches(seeds[0])
    agreed = agreement.agree(recipe, peer, first[0])
    arms: dict[str, Found] = {OURS: [], THEIRS: [], OWN: [], PLANTED: []}
    for seed in seeds:
        batches = recipe.batches(seed)
        texts = [recipe.texts(example) for batch in batches for example in batch]
        arms[OURS].append(_found(recipe, _ours(recipe, seed)))
        arms[THEIRS].append(_found(recipe, _theirs(peer, texts, "ours", seed)))
        arms[OWN].append(_found(recipe, _theirs(peer, texts, "own", seed)))
        arms[PLANTED].append(_found(recipe, _theirs(planted, texts, "own", seed)))
        shown = "  ".join(f"{name}: {found[-1][MEASURE]:.4f}" for name, found in arms.items())
        print(f"seed {seed}  {shown}", flush=True)
    values = {name: [one[MEASURE] for one in found] for name, found in arms.items()}
    examples = recipe.steps * min(recipe.step.batch, len(recipe.task))
    ratio = _ratio(arms[THEIRS], arms[OURS])
    return {
        "setting": {
            "step": recipe.step.model_dump(mode="json"),
            "numerics": recipe.numerics,
            "steps": recipe.steps,
            "seeds": list(seeds),
            "margin": margin,
        },
        "start": recipe.score(embed.load_for_tokens(recipe.start, recipe.store)),
        "agreement": agreed | {"pairs_left_out": agreement.left_out(first)},
        "arms": [_arm(name, found, examples) for name, found in arms.items()],
        "differences": [
            {"arm": name, **vars(equivalence.compare(values[OURS], values[name], margin))}
            for name in (THEIRS, OWN, PLANTED)
        ],
        "ratio": ratio,
        "ratio_without_data": _ratio(arms[THEIRS], arms[OURS], without="data"),
        "goals": [figures.goal(GOAL.format(""), ratio["median"], FASTER)],
    }


def of_shape(recipe: Recipe, model: str) -> dict[str, Any]:
    """Some steps of the recipe with a model of another shape, drawn at random: both sides' speed in our batches."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = recipe.of_shape(model, STEPS, Path(folder))
        peer, found = Peer(drawn), dict[str, Found]({OURS: [], THEIRS: []})
        agreed = agreement.agree(drawn, peer, drawn.batches(0)[0])
        for seed in range(TURNS):
            texts = [drawn.texts(example) for batch in drawn.batches(seed) for example in batch]
            found[OURS].append(_times(_ours(drawn, seed)))
            found[THEIRS].append(_times(_theirs(peer, texts, "ours", seed)))
    seconds = {name: [one["cpu"] for one in times] for name, times in found.items()}
    return {
        "model": model,
        "steps": STEPS,
        "agreement": agreed,
        "cpu_seconds": seconds,
        "ratio": _ratio(found[THEIRS], found[OURS]),
    }


def _ours(recipe: Recipe, seed: int) -> Done:
    """Encore's own loop from the start."""
    encoder = embed.load_for_tokens(recipe.start, recipe.store)
    with tempfile.TemporaryDirectory() as state, contextlib.redirect_stdout(io.StringIO()):
        training = time_of(
            lambda: train(
                recipe.task, encoder, nn.ModuleDict(), recipe.step, seed, Resume(Path(state)), recipe.numerics
            )
        )
    data = time_of(lambda: [recipe.task.collate(batch) for batch in recipe.batches(seed)])
    return Done(encoder, training, data)


def _theirs(peer: Peer, texts: Any, batches: Any, seed: int) -> Done:
    with contextlib.redirect_stdout(io.StringIO()):
        return peer.train(texts, batches, seed)


def _found(recipe: Recipe, done: Done) -> dict[str, float]:
    return {MEASURE: recipe.score(done.encoder), **_times(done)}


def _times(done: Done) -> dict[str, float]:
    return {"wall": done.training.wall, "cpu": done.training.cpu, "data_cpu": done.data.cpu}


def _ratio(theirs: Found, ours: Found, without: str | None = None) -> dict[str, float]:
    """Seconds of the process that theirs took over ours, the median of seeds and its ends."""

    def seconds(one: dict[str, float]) -> float:
        return one["cpu"] - (one[f"{without}_cpu"] if without else 0.0)

    ratios = [seconds(other) / seconds(own) for other, own in zip(theirs, ours, strict=True)]
    return {"median": median(ratios), "low": min(ratios), "high": max(ratios)}


def _arm(name: str, found: Found, examples: int) -> dict[str, Any]:
    values = [one[MEASURE] for one in found]
    return {
        "name": name,
        "values": values,
        "mean": mean(values),
        "deviation": stdev(values),
        "examples_per_second": examples / median(one["cpu"] for one in found),
        "cpu_seconds": [one["cpu"] for one in found],
        "wall_seconds": [one["wall"] for one in found],
        "data_cpu_seconds": [one["data_cpu"] for one in found],
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lineage", default="bert-base+marco-bm25", help="whose last step both sides train")
    parser.add_argument("--run", type=Path, default=DEFAULT_RUN, help="a run's configuration")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(8)))
    parser.add_argument(
        "--margin", type=float, default=MARGIN, help=f"of {MEASURE}, within which models are equally good"
    )
    parser.add_argument("--model", choices=SHAPES, default="minilm", help="the other shape that both sides train")
    record.add_flags(parser, "finetuning")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)

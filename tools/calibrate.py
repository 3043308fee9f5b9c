"""Count the steps of each pre-training step that a budget of floating-point operations pays for.

Nothing is trained: batches are made as the training would make them, and their operations counted. What a step is
trained from and on must have been made (the backbone's start, token stores, an objective's preparation).
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from encore.storage.program import run

from encore import objectives
from encore.config.entries import PretrainStep
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import checkpoint
from encore.models.memory import MicroBatch, PartSize
from encore.plan.lineage import parse
from encore.products.catalogue import DEFAULT_RUN, load_plan
from encore.training import held_out
from encore.training.batches import BatchMaker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=DEFAULT_RUN, help="the run whose scale decides")
    parser.add_argument("--budget", type=float, default=3.0e11, help="floating-point operations")
    parser.add_argument("lineages", nargs="+", help="each up to its pre-training step, such as bert-base+costa")
    args = parser.parse_args()
    plan = load_plan(args.config)
    for text in args.lineages:
        lineage = plan.resolve.lineage(text)
        step = plan.resolve.step(lineage.steps[-1])
        if not isinstance(step, PretrainStep):
            raise EncoreError(f"{text} does not end with a pre-training step; name one that does")
        inputs = {
            role: Path(artifact.folder) for role, artifact in plan.model(lineage, plan.config.seeds[0]).inputs.items()
        }
        print(f"{parse(text).steps[-1]}: {steps(step, inputs, args.budget, plan.config.seeds[0])} steps", flush=True)


def steps(step: PretrainStep, inputs: dict[str, Path], budget: float, seed: int) -> int:
    """Steps until the budget is spent, to the nearest; the operations of ``head_warmup`` come before them."""
    encoder = checkpoint.load_encoder(inputs["weights"])
    objective: Any = objectives.load(step.objective)(step, TokenStore(inputs["tokens"]), inputs.get("prepared"))
    train_on, _ = held_out.hold_out(objective, step.held_out)
    whole, maker = MicroBatch(PartSize(step.batch)), BatchMaker(objective, step.batch, seed, train_on=train_on)

    def costs() -> Iterator[float]:
        for batch in maker.batches(0, whole):
            yield sum(objective.flops(encoder, part.arrays) for part in batch.parts)

    spent = sum(islice(costs(), step.head_warmup))
    for number, cost in enumerate(costs()):
        if spent + cost / 2 > budget:
            return number
        spent += cost
    raise AssertionError("batches never end")


if __name__ == "__main__":
    run(main)

"""Some trainings, as one of two processes that train together or alone: ``python two_processes.py OUTPUT``."""

import json
import math
import os
import sys
from collections import Counter
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from encore import objectives
from encore.training import launch
from encore.training.checkpoint import Resume
from encore.training.distributed import ProcessGroup
from encore.training.loop import train
from encore.training.record import Trained
from tests.support.forks import SIMULATED_GPU
from tests.support.simulated_gpu import SimulatedGpu, simulated_gpu
from tests.support.small_finetuning import made, small_collection, small_store
from tests.support.small_objective import encoder, heads_of, make
from tests.support.small_teachers import small_task as taught_task
from tests.support.small_training import NUMERICS, STEP

CASES: dict[str, dict[str, Any]] = {  # one a mechanism
    "ict in parts": {"micro_batch": 2},
    "costa with dropout": {"dropout": 0.2, "batch": 8, "micro_batch": 4},
    "mlm in little memory": {"most": 2},
    "ict joined in little memory": {"joins": False},
    "kl-in-batch": {"micro_batch": 2},
    "list-wise": {"micro_batch": 2},  # RocketQA's: the positives of both processes' queries, and nothing else
}
ON_GPUS: dict[str, dict[str, Any]] = {"mlm": {}, "ict in parts": CASES["ict in parts"]}  # their waits are counted


def trained(case: str, state: Path, steps: int = 2, seconds: float = 0) -> tuple[Trained, dict[str, Tensor]]:
    """Steps in double precision; batches of seven are shared unequally. The last gradients are with the weights."""
    torch.set_default_dtype(torch.float64)
    options = {"batch": 7, "dropout": 0.0, "micro_batch": None, "most": None, "joins": True, **(CASES | ON_GPUS)[case]}
    name = case.split()[0]
    finetuned = name in ("kl-in-batch", "list-wise")
    step = objectives.fields(
        {**STEP, "objective": "mlm" if finetuned else name, "steps": steps, "batch": options["batch"]}
    )
    task = _finetuning(name, state / f"{case}-{launch.rank()}") if finetuned else make(name)
    model = encoder(dropout=options["dropout"])
    heads = nn.ModuleDict() if finetuned else heads_of(task, model)
    if options["most"] and launch.rank() == 1:
        _narrow(task, options["most"])
    if not options["joins"] and launch.rank() == 1:
        _join_only_once_more()
    numerics = {**NUMERICS, "micro_batch": options["micro_batch"]}
    done = train(task, model, heads, step, 0, Resume(state / case, seconds), numerics)
    both = nn.ModuleDict({"encoder": model, "heads": heads})
    grads = {f"{name}.grad": value.grad for name, value in both.named_parameters() if value.grad is not None}
    torch.set_default_dtype(torch.float32)
    return done, {name: value.clone() for name, value in {**both.state_dict(), **grads}.items()}


def _finetuning(name: str, folder: Path) -> Any:
    if name == "list-wise":
        return made(small_store(), small_collection(folder), negatives="none")
    return taught_task(name, folder)


def _narrow(task: Any, most: int) -> None:
    original = task.forward

    def forward(encoder: Any, heads: Any, batch: dict[str, Tensor]) -> Any:
        if len(batch["mask"]) > most:
            raise torch.OutOfMemoryError("too much")
        return original(encoder, heads, batch)

    task.forward = forward


def _join_only_once_more() -> None:
    """There is no memory for the rows of both processes when they are first to be joined."""
    original = ProcessGroup.joined

    def joined(*_: Any) -> Tensor:
        ProcessGroup.joined = original
        raise torch.OutOfMemoryError("too much")

    ProcessGroup.joined = joined


def waits_of_a_step(case: str, state: Path, gpu: SimulatedGpu) -> Counter[str]:
    """The lines of code that wait for the device in a third step, and how often each does."""
    found = []
    for steps in (2, 3):
        gpu.waits.clear()
        with redirect_stdout(None):
            trained(case, state / str(steps), steps, seconds=math.inf)
        found.append(Counter(gpu.waits))
    return found[1] - found[0]


def main(output: Path, gpu: SimulatedGpu | None) -> None:
    waits = {case: waits_of_a_step(case, output / "waits", gpu) for case in ON_GPUS} if gpu else {}
    (output / f"waits-{launch.rank()}.json").write_text(json.dumps(waits))
    for case in ON_GPUS if gpu else CASES:
        done, weights = trained(case, output / "state")
        weights["losses"] = torch.tensor([point.terms["loss"] for point in done.losses])
        weights["counts"] = torch.tensor([done.flops, done.examples, done.micro_batch_tokens or 0])
        save_file({name: value.cpu() for name, value in weights.items()}, output / f"{case}-{launch.rank()}")


if __name__ == "__main__":
    with simulated_gpu() if SIMULATED_GPU in os.environ else nullcontext() as gpu:
        main(Path(sys.argv[1]), gpu)

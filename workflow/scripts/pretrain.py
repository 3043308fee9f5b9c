"""Pre-train an encoder with one objective on the texts of a token store."""

import argparse
import shutil
from contextlib import nullcontext
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore import objectives
from encore.storage import manifest
from encore.training import launch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=spec_file, required=True, help="step, seed and numerics: a JSON file")
    parser.add_argument("--tokens", type=artifact, required=True, help="token store of the step's collection")
    parser.add_argument("--weights", type=artifact, required=True, help="model to go on from")
    parser.add_argument("--prepared", type=artifact, nargs="?", help="what the objective prepared, if anything")
    parser.add_argument("--output", type=artifact, required=True, help="folder of the new model")
    parser.add_argument("--state", type=Path, required=True, help="checkpoints, removed when the model is written")
    parser.add_argument("--processes", type=int, default=1, help="that train together, one a GPU, under torchrun")
    parser.add_argument("--workers", type=int, default=0, help="that make the batches of each of these")
    parser.add_argument("--checkpoint-seconds", type=float, default=120, help="between two checkpoints")
    arguments = parser.parse_args()
    launch.start_processes(arguments.processes)

    inputs = [folder for folder in (arguments.tokens, arguments.weights, arguments.prepared) if folder]
    step = objectives.fields(arguments.spec["step"])
    stage = f"pretrain.{step.objective}"
    recorded = manifest.record(arguments.output, stage=stage, spec=arguments.spec, inputs=inputs)
    with recorded if launch.leads() else nullcontext({}) as facts:
        from encore.objectives.parts.step import pretrain

        done = pretrain(
            step,
            arguments.spec["seed"],
            arguments.spec["numerics"],
            arguments.tokens,
            arguments.weights,
            arguments.output,
            arguments.state,
            arguments.prepared,
            arguments.checkpoint_seconds,
            arguments.workers,
        )
        facts["results"] = done.results
        facts["results"] |= {"held_out": done.held_out[-1].rounded()} if done.held_out else {}
        facts |= done.facts
    if launch.leads():
        shutil.rmtree(arguments.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)

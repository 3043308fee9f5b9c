"""Pre-train an encoder with one objective on the texts of a token store."""

import argparse
import shutil
from pathlib import Path

from encore import cli_support
from encore.provenance import manifest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=cli_support.json_object, required=True, help="step, seed and numerics, as JSON")
    parser.add_argument(
        "--tokens", type=cli_support.artifact, required=True, help="token store of the step's collection"
    )
    parser.add_argument("--weights", type=cli_support.artifact, required=True, help="model to go on from")
    parser.add_argument(
        "--prepared", type=cli_support.artifact, nargs="?", help="what the objective prepared, if anything"
    )
    parser.add_argument("--output", type=cli_support.artifact, required=True, help="folder of the new model")
    parser.add_argument("--state", type=Path, required=True, help="checkpoints, removed when the model is written")
    arguments = parser.parse_args()

    inputs = [folder for folder in (arguments.tokens, arguments.weights, arguments.prepared) if folder]
    with manifest.record(
        arguments.output, stage=f"pretrain.{arguments.spec['step']['objective']}", spec=arguments.spec, inputs=inputs
    ) as facts:
        from encore.pretraining import pretrain

        trained = pretrain(
            arguments.spec,
            arguments.tokens,
            arguments.weights,
            arguments.output,
            arguments.state,
            arguments.prepared,
        )
        facts["results"] = {"steps": trained.steps, "examples": trained.examples, "operations": trained.operations}
        facts["losses"] = trained.losses[-1].terms
    shutil.rmtree(arguments.state, ignore_errors=True)


if __name__ == "__main__":
    cli_support.run(main)

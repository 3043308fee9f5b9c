"""Compute what an objective needs of a collection before any training."""

import argparse
import shutil
from contextlib import nullcontext
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore import objectives
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.storage import manifest
from encore.training import launch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=spec_file, required=True, help="objective and preparation: a JSON file")
    parser.add_argument("--tokens", type=artifact, required=True, help="token store of the texts")
    parser.add_argument("--weights", type=artifact, nargs="?", help="model to go on from, where the objective reads it")
    parser.add_argument("--output", type=artifact, required=True)
    parser.add_argument("--state", type=Path, required=True, help="blocks that are read, removed at the end")
    parser.add_argument("--processes", type=int, default=1, help="that read texts with the model, one a GPU")
    arguments = parser.parse_args()
    launch.start_processes(arguments.processes)
    prepares = objectives.load(arguments.spec["objective"]).Prepares
    if prepares is None:
        raise EncoreError(f"objective {arguments.spec['objective']!r} has nothing to prepare; leave this program out")
    preparation = prepares(**arguments.spec["preparation"])

    inputs = [folder for folder in (arguments.tokens, arguments.weights) if folder]
    stage = f"prepare.{arguments.spec['objective']}"
    recorded = manifest.record(arguments.output, stage=stage, spec=arguments.spec, inputs=inputs)
    with recorded if launch.leads() else nullcontext({}) as facts:
        store = TokenStore.open(arguments.tokens)
        facts["results"] = preparation.write(store, arguments.weights, arguments.output, arguments.state)
    if launch.leads():
        shutil.rmtree(arguments.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)

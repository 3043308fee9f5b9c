"""Read the texts that an objective trains on with the model that it goes on from, for what [CLS] attends to in them."""

import argparse
import shutil
from contextlib import nullcontext
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.data.tokens import TokenStore
from encore.objectives.parts.attention import AttendedTexts, attend
from encore.storage.manifest import record
from encore.training import launch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=spec_file, required=True, help="which texts are read: a JSON file")
    parser.add_argument("--tokens", type=artifact, required=True, help="token store of the texts")
    parser.add_argument("--weights", type=artifact, required=True, help="model that reads them")
    parser.add_argument("--state", type=Path, required=True, help="blocks that are read, until all are")
    parser.add_argument("--processes", type=int, default=1, help="that share the blocks, one a GPU, under torchrun")
    parser.add_argument("--output", type=artifact, required=True)
    arguments = parser.parse_args()
    launch.start_processes(arguments.processes)
    texts = AttendedTexts(**arguments.spec["texts"])

    inputs = [arguments.tokens, arguments.weights]
    recorded = record(arguments.output, stage="attend", spec=arguments.spec, inputs=inputs)
    with recorded if launch.leads() else nullcontext({}) as facts:
        store = TokenStore(arguments.tokens)
        facts["results"] = attend(texts, store, arguments.weights, arguments.output, arguments.state)
    if launch.leads():
        shutil.rmtree(arguments.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)

"""Compute what an objective needs of a collection before any training."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore import objectives
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=spec_file, required=True, help="objective and preparation: a JSON file")
    parser.add_argument("--tokens", type=artifact, required=True, help="token store of the texts")
    parser.add_argument("--attention", type=artifact, nargs="?", help="to the texts, where the preparation reads it")
    parser.add_argument("--processes", type=int, default=1, help="that share the work")
    parser.add_argument("--output", type=artifact, required=True)
    arguments = parser.parse_args()
    prepares = objectives.load(arguments.spec["objective"]).Prepares
    if prepares is None:
        raise EncoreError(f"objective {arguments.spec['objective']!r} has nothing to prepare; leave this program out")
    preparation = prepares(**arguments.spec["preparation"])

    inputs = [folder for folder in (arguments.tokens, arguments.attention) if folder]
    stage = f"prepare.{arguments.spec['objective']}"
    with record(arguments.output, stage=stage, spec=arguments.spec, inputs=inputs) as facts:
        store = TokenStore(arguments.tokens)
        facts["results"] = preparation.write(store, arguments.output, arguments.attention, arguments.processes)


if __name__ == "__main__":
    run(main)

"""Train a T5 to write the query that a passage answers, on training queries."""

import argparse
import shutil
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.config import checkpoints
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="expansion, seed and numerics: a JSON file")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--tokenizer", type=artifact, nargs="?", help="its vocabulary, where there is no checkpoint")
    parser.add_argument("--checkpoint", type=artifact, nargs="?", help="the fetched T5 that it goes on from")
    parser.add_argument("--source", type=Path, nargs="?", help="or the user's folder of it")
    parser.add_argument("--state", required=True, type=Path, help="checkpoints, removed when the model is written")
    parser.add_argument("--checkpoint-seconds", type=float, default=120, help="between two checkpoints")
    parser.add_argument("--output", required=True, type=artifact, help="folder of the model")
    args = parser.parse_args()
    inputs = [folder for folder in (args.collection, args.tokenizer, args.checkpoint) if folder]
    begun = checkpoints.given(args.spec, args.checkpoint, args.source)
    with record(args.output, stage="train_doc2query", spec=args.spec, inputs=inputs) as facts:
        from encore.retrieval.doc2query.training import train

        places = (args.collection, args.tokenizer, args.output, args.state)
        facts["results"] = train(args.spec, *places, args.checkpoint_seconds, begun)
    shutil.rmtree(args.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)

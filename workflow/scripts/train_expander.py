"""Train a T5 to write the query that a passage answers, on training queries."""

import argparse
import shutil
from pathlib import Path

from encore.cli_support import artifact, json_object, run
from encore.provenance.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json_object, help="expansion, seed and numerics, as JSON")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--tokenizer", type=artifact, nargs="?", help="its vocabulary, where there is no checkpoint")
    parser.add_argument("--state", required=True, type=Path, help="checkpoints, removed when the model is written")
    parser.add_argument("--checkpoint-seconds", type=float, default=120, help="between two checkpoints")
    parser.add_argument("--output", required=True, type=artifact, help="folder of the model")
    args = parser.parse_args()
    inputs = [args.collection, *([args.tokenizer] if args.tokenizer else [])]
    with record(args.output, stage="train_expander", spec=args.spec, inputs=inputs) as facts:
        from encore.expanding.training import train

        seconds = args.checkpoint_seconds
        facts["results"] = train(args.spec, args.collection, args.tokenizer, args.output, args.state, seconds)
    shutil.rmtree(args.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)

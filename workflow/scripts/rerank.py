"""Rank the best results of a run again with a trained scorer of pairs."""

import argparse
import shutil
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.data.runs import add_text_option, write_missing_text
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="reranked, depth, numerics, system: a JSON file")
    parser.add_argument("--model", required=True, type=artifact)
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the collection")
    parser.add_argument("--first", required=True, type=artifact, help="folder of the run to rank again")
    parser.add_argument("--state", type=Path, help="scores that are done so far, removed when all are written")
    parser.add_argument("--checkpoint-seconds", type=float, default=120.0)
    add_text_option(parser)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    inputs = [args.model, args.tokens, args.first]
    with record(args.output, stage="rerank", spec=args.spec, inputs=inputs) as facts:
        from encore.retrieval.rerank import answer_reranked

        facts["results"] = answer_reranked(args.spec, *inputs, args.output, args.state, args.checkpoint_seconds)
        if args.text_runs == "all":
            write_missing_text(args.output)
    if args.state:
        shutil.rmtree(args.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)

"""Rank the best results of a run again with a trained scorer of pairs, or a whole collection by vectors of tokens."""

import argparse
import shutil
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="reranked, depth, numerics, system: a JSON file")
    parser.add_argument("--model", required=True, type=artifact)
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the collection")
    parser.add_argument("--first", nargs="?", type=artifact, help="folder of the run to rank again")
    parser.add_argument("--collection", nargs="?", type=artifact, help="whose queries are answered where there is none")
    parser.add_argument("--state", type=Path, help="scores that are done so far, removed when all are written")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    inputs = [args.model, args.tokens, args.first or args.collection]
    with record(args.output, stage="rerank", spec=args.spec, inputs=inputs) as facts:
        if args.first:
            from encore.retrieval.rerank import answer_reranked

            facts["results"] = answer_reranked(args.spec, *inputs, args.output, args.state)
        else:
            from encore.retrieval.token_search import answer_by_tokens

            facts["results"] = answer_by_tokens(args.spec, *inputs, args.output)
    if args.state:
        shutil.rmtree(args.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)

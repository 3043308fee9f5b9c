"""Rank the best results of a run again with a trained scorer of pairs."""

import argparse

from encore.cli_support import artifact, json_object, run
from encore.provenance.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json_object, help="reranked, depth, numerics, system, as JSON")
    parser.add_argument("--model", required=True, type=artifact)
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the collection")
    parser.add_argument("--first", required=True, type=artifact, help="folder of the run to rank again")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    inputs = [args.model, args.tokens, args.first]
    with record(args.output, stage="rerank", spec=args.spec, inputs=inputs) as facts:
        from encore.retrieval.rerank import answer

        facts["results"] = answer(args.spec, *inputs, args.output)


if __name__ == "__main__":
    run(main)

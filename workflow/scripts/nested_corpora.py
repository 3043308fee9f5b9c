"""Order a collection as it grows: what is relevant and what BM25 ranks high first, the rest at random."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.retrieval.nested_corpora import order_passages
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="split, queries, sample, depth and order")
    parser.add_argument("--run", required=True, type=artifact, help="folder of BM25's run over the queries")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    with record(args.output, stage="nested_corpora", spec=args.spec, inputs=[args.run, args.collection]) as facts:
        facts["results"] = order_passages(args.spec, args.run, args.collection, args.output)


if __name__ == "__main__":
    run(main)

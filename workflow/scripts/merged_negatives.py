"""Put two sets of negatives together: BM25's, and those that a model mined."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.finetuning.negatives import mining
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="the names of both")
    parser.add_argument("--bm25", required=True, type=artifact)
    parser.add_argument("--mined", required=True, type=artifact)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    with record(args.output, stage="merged_negatives", spec=args.spec, inputs=[args.bm25, args.mined]) as facts:
        bm25, mined = mining.read_negatives(args.bm25), mining.read_negatives(args.mined)
        both = mining.merge(bm25, mined)
        counts = mining.statistics(both)
        positives = mining.read_positives(args.mined) or None
        facts["results"] = mining.write_negatives(args.output, both, counts, positives)
    print(f"negatives: {counts.kept} for {counts.queries} queries")


if __name__ == "__main__":
    run(main)

"""Draw negatives for fine-tuning from a run over the training queries."""

import argparse
from dataclasses import asdict, replace

from encore.cli_support import artifact, json_object, run
from encore.collections.common import Collection
from encore.finetuning import negatives
from encore.provenance.manifest import record
from encore.runs import read_run

RECIPE = ("first_rank", "depth", "keep", "exclude_judged", "seed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json_object, help="split, depth, keep, exclude_judged, seed")
    parser.add_argument("--run", required=True, type=artifact, help="folder of the run over the split's queries")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--other", type=artifact, help="folder of other negatives, to report the overlap with")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    recipe = {name: args.spec[name] for name in RECIPE if name in args.spec}
    inputs = [args.run, args.collection, *([args.other] if args.other else [])]
    with record(args.output, stage="negatives", spec=args.spec, inputs=inputs) as facts:
        ranking = {query: ranked.documents for query, ranked in read_run(args.run / "run.trec.gz").items()}
        drawn, statistics = negatives.mine(ranking, Collection(args.collection).qrels(args.spec["split"]), **recipe)
        if args.other:
            compared, jaccard, shared = negatives.overlap(drawn, negatives.read(args.other))
            statistics = replace(statistics, compared=compared, jaccard=jaccard, shared=shared)
        negatives.write(args.output, drawn, statistics)
        facts["results"] = asdict(statistics)
    print(f"negatives: {statistics.kept} for {statistics.queries} queries, {statistics.judged} judged left out")


if __name__ == "__main__":
    run(main)

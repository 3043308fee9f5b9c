"""Draw negatives for fine-tuning from a run over the training queries."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.data.collection import Collection
from encore.data.runs import read_run
from encore.finetuning.negatives import mining
from encore.finetuning.negatives.answers import answering
from encore.finetuning.negatives.excluded import no_negatives
from encore.storage.manifest import record

RECIPE = ("first_rank", "depth", "keep", "exclude_judged", "seed")
WINDOW = ("first_rank", "depth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="split, depth, keep, exclude_judged, seed")
    parser.add_argument("--run", required=True, type=artifact, help="folder of the run over the split's queries")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    spec, collection = args.spec, Collection(args.collection)
    recipe = {name: spec[name] for name in RECIPE if name in spec}
    with record(args.output, stage="negatives", spec=spec, inputs=[args.run, args.collection]) as facts:
        answers = read_run(args.run)
        ranking = mining.Candidates(answers, no_negatives(collection, spec["split"], spec))
        window = {name: spec[name] for name in WINDOW if name in spec}
        right = answering(ranking, collection, **window) if spec.get("answers") else {}
        found = {query: set(documents) for query, documents in right.items()}
        if "negatives_below" in spec:
            scored = mining.false_negatives(answers, spec["negatives_below"])
            found = {query: found.get(query, set()) | scored[query] for query in scored}
        drawn, counts = mining.mine(ranking, collection.qrels(spec["split"]), answering=found, **recipe)
        positives = right if spec.get("answers") == "positives" else None
        facts["results"] = mining.write_negatives(args.output, drawn, counts, positives)
    print(f"negatives: {counts.kept} for {counts.queries} queries, {counts.judged} judged left out")


if __name__ == "__main__":
    run(main)

"""Draw negatives for training queries from those that a collection was published with."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.data.collection import Collection, topics
from encore.finetuning.negatives import mining
from encore.finetuning.negatives.excluded import no_negatives
from encore.finetuning.negatives.published import published
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="split, queries, and the recipe")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    spec, collection = args.spec, Collection(args.collection)
    recipe = {name: spec[name] for name in ("keep", "seed", "exclude_judged")}
    with record(args.output, stage="negatives_from_dataset", spec=spec, inputs=[args.collection]) as facts:
        asked = topics(collection, spec["split"], spec["queries"], spec["sample"])
        excluded = no_negatives(collection, spec["split"], spec)
        drawn, counts = published(collection, spec["split"], asked, excluded=excluded, **recipe)
        facts["results"] = mining.write_negatives(args.output, drawn, counts)
    print(f"negatives: {counts.kept} for {counts.queries} queries, {counts.unknown} of no passage")


if __name__ == "__main__":
    run(main)

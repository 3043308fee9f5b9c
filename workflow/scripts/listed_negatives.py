"""Draw negatives for fine-tuning from a file in which others have listed them."""

import argparse
from pathlib import Path

from encore.cli_support import artifact, json_object, run
from encore.collections.common import Collection, topics
from encore.errors import EncoreError
from encore.finetuning import listed, negatives
from encore.provenance.manifest import record
from encore.storage import contents

FORMS = {"triples": (listed.from_triples, ("keep", "seed")), "systems": (listed.from_systems, ("margin", "per_system"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json_object, help="form, content, split, queries, and the recipe")
    parser.add_argument("--source", required=True, type=Path, help="the file")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    spec, collection = args.spec, Collection(args.collection)
    draw, recipe = FORMS[spec["form"]]
    with record(args.output, stage="listed_negatives", spec=spec, inputs=[args.collection]) as facts:
        if contents({"file": args.source})["file"] != spec["content"]:
            raise EncoreError(f"{args.source} is not what was planned with: it has changed since; run snakemake again")
        asked = topics(collection, spec["split"], spec["queries"], spec["sample"])
        documents = {row["_id"] for row in collection.corpus()}
        wanted = listed.Wanted(set(asked), collection.qrels(spec["split"]), documents, spec["exclude_judged"])
        drawn, counts = draw(args.source, wanted, **{name: spec[name] for name in recipe})
        facts["results"] = negatives.write(args.output, drawn, counts)
    print(f"negatives: {counts.kept} for {counts.queries} queries, {counts.unknown} lines of another collection")


if __name__ == "__main__":
    run(main)

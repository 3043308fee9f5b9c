"""Draw negatives for training queries from a file in which others have listed them."""

import argparse
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.data import unpacked
from encore.data.collection import Collection, topics
from encore.errors import EncoreError
from encore.finetuning.negatives import mining
from encore.finetuning.negatives.excluded import no_negatives
from encore.finetuning.negatives.pair_scores import PublishedScores
from encore.finetuning.negatives.request import NegativesRequest
from encore.finetuning.negatives.systems_file import from_systems
from encore.finetuning.negatives.triples import from_triples
from encore.storage.document_ids import DocIds
from encore.storage.files import contents
from encore.storage.manifest import record

ENDINGS = {"triples": (".tsv", ".tsv.gz", ".txt", ".txt.gz"), "systems": (".jsonl", ".jsonl.gz")}
SCORES = (".pkl", ".pkl.gz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="form, content, split, queries, and the recipe")
    parser.add_argument("--source", type=Path, nargs="?", help="the file, where it is the user's")
    parser.add_argument("--fetched", type=artifact, nargs="?", help="the folder that holds it, where it was fetched")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    spec, collection = args.spec, Collection(args.collection)
    inputs = [args.collection, *([args.fetched] if args.fetched else [])]
    with record(args.output, stage="negatives_from_file", spec=spec, inputs=inputs) as facts:
        if not args.fetched and contents({"file": args.source})["file"] != spec["content"]:
            raise EncoreError(f"{args.source} is not what was planned with: it has changed since; run snakemake again")
        path = unpacked.file(args.fetched, ENDINGS[spec["form"]]) if args.fetched else args.source
        asked = set(topics(collection, spec["split"], spec["queries"], spec["sample"]))
        ids = (row["_id"] for row in collection.corpus())
        documents = dict.fromkeys(ids) if spec["form"] == "systems" else DocIds.of(ids)  # one by one: a dict
        excluded = no_negatives(collection, spec["split"], spec)
        wanted = NegativesRequest(asked, collection.qrels(spec["split"]), documents, spec["exclude_judged"], excluded)
        if spec["form"] == "systems":
            scores = scores_beside(args.fetched, asked)
            drawn, counts = from_systems(path, wanted, scores, margin=spec["margin"], per_system=spec["per_system"])
        else:
            drawn, counts = from_triples(path, wanted, collection, keep=spec["keep"], seed=spec["seed"])
        facts["results"] = mining.write_negatives(args.output, drawn, counts)
    print(f"negatives: {counts.kept} for {counts.queries} queries, {counts.unknown} lines of another collection")


def scores_beside(folder, queries):
    """The scores that a source has in a file of their own, if it has."""
    if folder and any(path.name.endswith(SCORES) for path in unpacked.files(folder)):
        return PublishedScores.read(unpacked.file(folder, SCORES), queries)
    return None


if __name__ == "__main__":
    run(main)

"""Give every passage of a collection its predicted queries: published ones, or samples of a trained T5."""

import argparse
import shutil
from contextlib import nullcontext
from pathlib import Path

from encore.storage.program import artifact, positive, run, spec_file

from encore.config.doc2query import content
from encore.data.collection import Collection
from encore.errors import EncoreError
from encore.retrieval.doc2query import form, published
from encore.storage.manifest import record
from encore.training import launch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="kind, and what it needs: a JSON file")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--doc2query-model", type=artifact, nargs="?", help="kind t5: folder of the trained model")
    parser.add_argument("--source", type=Path, nargs="?", help="kind published: the file of predictions")
    parser.add_argument("--fetched", type=artifact, nargs="?", help="kind published: the folder of a fetched source")
    parser.add_argument("--state", required=True, type=Path, help="finished blocks, removed when all are written")
    parser.add_argument("--output", required=True, type=artifact)
    parser.add_argument("--processes", type=positive, default=1, help="kind t5: that share the blocks, one a GPU")
    args = parser.parse_args()
    if args.spec["kind"] == "t5":
        launch.start_processes(args.processes)
    inputs = [folder for folder in (args.collection, args.doc2query_model, args.fetched) if folder]
    recorded = record(args.output, stage=f"predict_queries.{args.spec['kind']}", spec=args.spec, inputs=inputs)
    with recorded if launch.leads() else nullcontext({}) as facts:
        queries = predicted(args)
        if launch.leads():
            counts = facts["results"] = form.write_predicted_queries(args.output, queries)
    if launch.leads():
        shutil.rmtree(args.state, ignore_errors=True)
        print(f"predict_queries: {counts['queries']} queries for {counts['passages']} passages")


def predicted(args):
    """Queries by passage, in the corpus' order."""
    if args.spec["kind"] == "published":
        if not args.fetched and content(args.source) != args.spec["content"]:
            raise EncoreError(f"{args.source} has changed since it was planned with; run snakemake again")
        names = (row["_id"] for row in Collection(args.collection).corpus())
        return published.predicted(args.fetched or args.source, names, args.spec.get("samples"))
    from encore.retrieval.doc2query.sampling import sample

    return sample(args.spec, args.doc2query_model, args.collection, args.state)


if __name__ == "__main__":
    run(main)

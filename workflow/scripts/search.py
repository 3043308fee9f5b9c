"""Encode the queries of a split and search all shards of a collection exactly."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.plan.index import read_entries
from encore.retrieval.kept_vectors import vectors_of
from encore.storage.manifest import record

SPEC = "split, queries, sample, depth, query_length, numerics and system: a JSON file"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help=SPEC)
    parser.add_argument("--model", required=True, type=artifact)
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the collection")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--indexes", required=True, type=artifact, nargs="+", help="its shards, in any order")
    parser.add_argument("--subset", type=artifact, nargs="?", help="a growing collection, of which `size` is searched")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    places = [args.model, args.tokens, args.collection]
    inputs = [*places, *args.indexes, *([args.subset] if args.subset else [])]
    with (
        vectors_of(args.indexes, read_entries),
        record(args.output, stage="search", spec=args.spec, inputs=inputs) as facts,
    ):
        from encore.retrieval.dense import answer_exactly

        found = answer_exactly(args.spec, *places, args.indexes, args.output, args.subset)
        facts["results"], facts["search"] = found


if __name__ == "__main__":
    run(main)

"""Search a collection in an index of a named type, and report how much of the exact answer it finds."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.storage.manifest import record

SPEC = "split, queries, sample, depth, query_length, search, numerics and system: a JSON file"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help=SPEC)
    parser.add_argument("--model", required=True, type=artifact)
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the collection")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--index", required=True, type=artifact)
    parser.add_argument("--exact", required=True, type=artifact, help="folder of the exact run over the same queries")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    places = [args.model, args.tokens, args.collection, args.index, args.exact]
    with record(args.output, stage="search_index", spec=args.spec, inputs=places) as facts:
        from encore.retrieval.approximate import answer_from_index

        facts["results"], facts["search"] = answer_from_index(args.spec, *places, args.output)


if __name__ == "__main__":
    run(main)

"""Gather the exact shards of a collection's vectors into one index of a named type."""

import argparse
import shutil
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.plan.index import read_entries
from encore.retrieval.kept_vectors import vectors_of
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="index, the fields of its type: a JSON file")
    parser.add_argument("--shards", required=True, type=artifact, nargs="+", help="all shards, in any order")
    parser.add_argument(
        "--state", required=True, type=Path, help="the unfinished graph that an interrupted job resumes from"
    )
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    with (
        vectors_of(args.shards, read_entries),
        record(args.output, stage="build_index", spec=args.spec, inputs=args.shards) as facts,
    ):
        from encore.retrieval.indexing import make_index

        facts["results"], facts["build"] = make_index(args.spec, args.shards, args.output, args.state)
    shutil.rmtree(args.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)

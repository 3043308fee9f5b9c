"""Index a collection's passages, title and text together, for BM25."""

import argparse
import time

from encore.cli_support import artifact, json_object, run
from encore.collections.common import Collection
from encore.provenance.manifest import record
from encore.retrieval.lucene import build_index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json_object, help="the collection's name")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--memory-mb", type=int, default=1024, help="Java's heap")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    started = time.time()
    with record(args.output, stage="lucene_index", spec=args.spec, inputs=[args.collection]) as facts:
        rows = Collection(args.collection).corpus()
        passages = ((row["_id"], f"{row['title']} {row['text']}".strip()) for row in rows)
        count = build_index(passages, args.output, args.memory_mb)
        facts["results"] = {"passages": count}
    print(f"lucene_index: {count} passages in {time.time() - started:.1f} s")


if __name__ == "__main__":
    run(main)

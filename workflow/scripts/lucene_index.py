"""Index a collection's passages for BM25: all that a model reads of each, as one text."""

import argparse
import time

from encore.storage.program import artifact, run, spec_file

from encore.data.collection import Collection
from encore.retrieval.doc2query.form import expanded
from encore.retrieval.lucene import build_lucene_index
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="the collection's name")
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--predicted-queries", type=artifact, nargs="?", help="predicted queries to index them with")
    parser.add_argument("--memory-mb", type=int, default=1024, help="Java's heap")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    started = time.time()
    inputs = [args.collection, *([args.predicted_queries] if args.predicted_queries else [])]
    with record(args.output, stage="lucene_index", spec=args.spec, inputs=inputs) as facts:
        collection = Collection(args.collection)
        plain = ((name, " ".join(text)) for name, text in collection.texts())
        passages = expanded(collection, args.predicted_queries) if args.predicted_queries else plain
        count = build_lucene_index(passages, args.output, args.memory_mb, collection.language)
        facts["results"] = {"passages": count}
    print(f"lucene_index: {count} passages in {time.time() - started:.1f} s")


if __name__ == "__main__":
    run(main)

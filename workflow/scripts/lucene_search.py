"""Search a Lucene index with BM25 for the queries of a split."""

import argparse
import time

from encore.storage.program import artifact, run, spec_file

from encore.data.collection import Collection, topics
from encore.data.runs import describe, write_run
from encore.retrieval.lucene import search_bm25
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="k1, b, depth, split, queries, sample, system")
    parser.add_argument("--index", required=True, type=artifact)
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory-mb", type=int, default=1024, help="Java's heap")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    spec, started = args.spec, time.time()
    with record(args.output, stage="lucene_search", spec=spec, inputs=[args.index, args.collection]) as facts:
        collection = Collection(args.collection)
        chosen = topics(collection, spec["split"], spec["queries"], spec["sample"])
        texts = collection.queries()
        queries = {query: texts[query] for query in chosen}
        model = {name: spec[name] for name in ("k1", "b", "depth")}
        how = {"threads": args.threads, "memory_mb": args.memory_mb, "language": collection.language}
        found = search_bm25(args.index, queries, **model, **how)
        stages = [
            {"name": "bm25", "method": "Lucene BM25Similarity", "k1": spec["k1"], "b": spec["b"], "hits": spec["depth"]}
        ]
        header = describe(spec["system"], collection=args.collection.name, split=spec["split"], retrieval=stages)
        write_run(args.output, found, header)
        facts["results"] = {"queries": len(queries), "answered": len(found)}
    print(f"lucene_search: {len(found)} of {len(queries)} queries answered in {time.time() - started:.1f} s")


if __name__ == "__main__":
    run(main)

"""Encode the queries of a split and search the shards of a collection exactly."""

import argparse
from pathlib import Path

import faiss
import numpy as np

from encore.cli_support import json_object, run
from encore.collections.common import Collection, topics
from encore.modeling import folder, vectors
from encore.provenance.manifest import record
from encore.retrieval.dense import open_shards, search
from encore.runs import describe, write_run
from encore.tokens import TokenStore
from encore.training import machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    spec = "split, queries, sample, depth, query_length, numerics, system"
    parser.add_argument("--spec", required=True, type=json_object, help=spec)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--tokens", required=True, type=Path)
    parser.add_argument("--collection", required=True, type=Path)
    parser.add_argument("--indexes", required=True, type=Path, nargs="+", help="all shards, in any order")
    parser.add_argument("--output", required=True, type=Path)
    args = parser.parse_args()
    spec, split = args.spec, args.spec["split"]
    inputs = [args.model, args.tokens, args.collection, *args.indexes]
    with record(args.output, stage="search", spec=spec, inputs=inputs) as facts:
        faiss.omp_set_num_threads(spec["numerics"]["threads"])
        device = machine.prepare(spec["numerics"])
        store, encoder = TokenStore.open(args.tokens), folder.load(args.model).to(device).eval()
        shards = open_shards(args.indexes, store.passages.names, encoder.dimension)
        names = topics(Collection(args.collection), split, spec.get("queries"), spec.get("sample", 0))
        places = {name: row for row, name in enumerate(store.queries.names)}
        rows = np.array([places[name] for name in names])
        with machine.precision(spec["numerics"], device):
            found = vectors.embed(encoder, store.queries, rows, spec["query_length"])
        method = {
            "name": "exact search",
            "method": "dense",
            "similarity": encoder.shape.similarity,
            "depth": spec["depth"],
        }
        header = describe(spec["system"], collection=args.collection.name, split=split, retrieval=[method])
        write_run(args.output / "run.trec.gz", search(shards, names, found, spec["depth"]), header)
        facts["results"] = {"queries": len(names), "passages": len(store.passages), "shards": len(shards)}
    print(f"search: {len(names)} queries over {len(store.passages)} passages")


if __name__ == "__main__":
    run(main)

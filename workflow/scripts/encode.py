"""Encode one shard of a collection's passages into a FAISS index."""

import argparse
from pathlib import Path

from encore.cli_support import json_object, run
from encore.modeling import folder
from encore.provenance.manifest import record
from encore.retrieval.encode import Part, encode, write_shard
from encore.tokens import TokenStore
from encore.training import machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json_object, help="length, numerics")
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--tokens", required=True, type=Path)
    parser.add_argument("--shard", default="000-of-001", help="which of how many, as in 000-of-001")
    parser.add_argument("--output", required=True, type=Path)
    args = parser.parse_args()
    part, numerics = Part.parse(args.shard), args.spec["numerics"]
    with record(args.output, stage="encode", spec=args.spec, inputs=[args.model, args.tokens]) as facts:
        passages = TokenStore.open(args.tokens).passages
        encoder = folder.load(args.model).to(machine.prepare(numerics)).eval()
        with machine.precision(numerics, next(encoder.parameters()).device):
            vectors = encode(encoder, passages, part, args.spec["length"])
        write_shard(args.output, [passages.names[row] for row in part.rows(len(passages))], vectors)
        facts["results"] = {"shard": args.shard, "passages": len(vectors), "dimension": vectors.shape[1]}


if __name__ == "__main__":
    run(main)

"""Encode one shard of a collection's passages into a FAISS index."""

import argparse
import shutil
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="length and numerics: a JSON file")
    parser.add_argument("--model", required=True, type=artifact)
    parser.add_argument("--tokens", required=True, type=artifact, help="token store of the collection")
    parser.add_argument("--shard", default="000-of-001", help="which shard of how many: 000-of-001")
    parser.add_argument("--state", required=True, type=Path, help="vectors that are done so far, until all are")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()

    with record(args.output, stage="encode", spec=args.spec, inputs=[args.model, args.tokens]) as facts:
        from encore.retrieval.encode import make_shard

        facts["results"] = make_shard(args.spec, args.model, args.tokens, args.shard, args.output, args.state)
    shutil.rmtree(args.state, ignore_errors=True)


if __name__ == "__main__":
    run(main)

"""Tokenise a collection into a token store."""

import argparse

from encore.storage.program import artifact, run, spec_file

from encore.data.collection import Collection
from encore.data.tokens import write_store
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file)
    parser.add_argument("--collection", required=True, type=artifact)
    parser.add_argument("--tokenizer", required=True, type=artifact)
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    with record(args.output, stage="tokens", spec=args.spec, inputs=[args.collection, args.tokenizer]) as facts:
        counts = facts["results"] = write_store(Collection(args.collection), args.tokenizer, args.output)
    for name, count in counts.items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    run(main)

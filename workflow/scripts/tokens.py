"""Tokenise a collection into a token store, or join the stores of the collections that it is made of."""

import argparse
import os

from encore.storage.program import artifact, run, spec_file

from encore.data.collection import Collection
from encore.data.tokens import write_store
from encore.datasets.joined_tokens import join_stores
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file)
    parser.add_argument("--collection", type=artifact, nargs="?", help="whose texts are read")
    parser.add_argument("--parts", type=artifact, nargs="*", default=[], help="of kind concat: its collections instead")
    parser.add_argument("--part-tokens", type=artifact, nargs="*", default=[], help="and their token stores")
    parser.add_argument("--tokenizer", required=True, type=artifact)
    parser.add_argument("--processes", type=int, default=1, help="that share the texts")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the cores are the processes'
    texts = [args.collection] if args.collection else [*args.parts, *args.part_tokens]
    with record(args.output, stage="tokens", spec=args.spec, inputs=[*texts, args.tokenizer]) as facts:
        if args.collection:
            prompts = args.spec.get("prompts", {})
            counts = write_store(Collection(args.collection), args.tokenizer, args.output, args.processes, prompts)
        else:
            counts = join_stores(args.parts, args.part_tokens, args.output)
        facts["results"] = counts
    for name, count in counts.items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    run(main)

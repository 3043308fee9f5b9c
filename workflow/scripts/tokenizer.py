"""Train a WordPiece tokenizer on a collection's bodies and training queries, or take a checkpoint's own."""

import argparse
from pathlib import Path

from encore.storage.program import artifact, run, spec_file

from encore.config import checkpoints
from encore.data import checkpoint_vocabulary, vocabulary
from encore.data.article_texts import VocabularyTexts
from encore.data.collection import Collection
from encore.errors import EncoreError
from encore.storage.manifest import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=spec_file, help="vocabulary (a size), or whose it is")
    parser.add_argument("--collection", type=artifact, nargs="?", help="folder of the texts to train on")
    parser.add_argument("--checkpoint", type=artifact, nargs="?", help="fetched files of a checkpoint, to take its own")
    parser.add_argument("--source", type=Path, nargs="?", help="or the user's folder of them")
    parser.add_argument("--output", required=True, type=artifact)
    args = parser.parse_args()
    checkpoint = checkpoints.given(args.spec, args.checkpoint, args.source)
    if checkpoint is None and args.collection is None:
        raise EncoreError("a new vocabulary is trained on texts; give --collection")
    inputs = [folder for folder in (args.collection, args.checkpoint) if folder]
    with record(args.output, stage="tokenizer", spec=args.spec, inputs=inputs) as facts:
        if checkpoint:
            tokenizer = checkpoint_vocabulary.save_checkpoint_tokenizer(checkpoint, args.output)
        else:
            collection = Collection(args.collection)
            pieces = vocabulary.train(VocabularyTexts(collection), args.spec["vocabulary"], collection.language)
            tokenizer = vocabulary.build_tokenizer(pieces, collection.language)
            vocabulary.save_tokenizer(tokenizer, args.output)
        facts["results"] = {"pieces": tokenizer.get_vocab_size()}


if __name__ == "__main__":
    run(main)

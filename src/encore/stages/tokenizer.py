"""Train a WordPiece vocabulary on a collection, or take a checkpoint's own."""

from pathlib import Path
from typing import Any

from encore.config import checkpoints
from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """How many pieces, or the content of the user's checkpoint."""

    vocabulary: int | None = None
    content: Any = None
    sha256: dict[str, str] = {}  # of files of the checkpoint, by name


class Inputs(Roles):
    """The texts to train on, or a fetched checkpoint."""

    collection: Path | None = None
    checkpoint: Path | None = None


class Tokenizer(Stage[Spec, Inputs]):
    """A folder that Hugging Face's tokenizers read."""

    def make(self, job: Job) -> Facts:
        from encore.data import checkpoint_vocabulary, vocabulary
        from encore.data.article_texts import VocabularyTexts
        from encore.data.collection import Collection

        checkpoint = checkpoints.given(self.spec.dumped(), self.inputs.checkpoint, job.source)
        if checkpoint:
            tokenizer = checkpoint_vocabulary.save_checkpoint_tokenizer(checkpoint, job.output)
        else:
            assert self.inputs.collection is not None
            assert self.spec.vocabulary is not None
            collection = Collection(self.inputs.collection)
            pieces = vocabulary.train(VocabularyTexts(collection), self.spec.vocabulary, collection.language)
            tokenizer = vocabulary.build_tokenizer(pieces, collection.language)
            vocabulary.save_tokenizer(tokenizer, job.output)
        return {"results": {"pieces": tokenizer.get_vocab_size()}}


STAGE = Tokenizer

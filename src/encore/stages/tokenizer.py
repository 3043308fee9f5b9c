"""Train a WordPiece vocabulary on a collection, or take a checkpoint's own."""

from pathlib import Path
from typing import Any

from encore.config import checkpoints
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import PLAIN, Needs, Size

WORD = 650  # bytes of memory of a different word


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

    def needs(self, size: Size) -> Needs:
        """Memory is that of different words, of which a text has 20 n^0.6 in n tokens (Heaps' law)."""
        tokens = size.collection.tokens  # 550,000 in a second of passages in docs/scales.md, 1.8 million of articles
        return Needs(memory=PLAIN + WORD * words_in(tokens), core_seconds=tokens / 600e3)

    def make(self, job: Job) -> Facts:
        from encore.data import checkpoint_vocabulary, vocabulary
        from encore.data.article_texts import VocabularyTexts
        from encore.data.collection import Collection

        checkpoint = checkpoints.given(self.spec.dumped(), self.inputs.checkpoint, job.source, job.state / "checkpoint")
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


def words_in(tokens: float) -> float:
    """How many different words a text has: 2.7 million in 352 million, as in Anserini's MS MARCO."""
    return 20.0 * tokens**0.6


STAGE = Tokenizer

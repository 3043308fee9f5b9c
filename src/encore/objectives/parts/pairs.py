"""Pairs of a sentence and a document, contrasted within the batch: ICT, BFS and WLP (Chang et al. 2020)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from encore.config.entries import PretrainStep
from encore.config.validation import MaskedShare
from encore.errors import EncoreError
from encore.models import flops
from encore.models import inputs as texts
from encore.objectives.base import Arrays, ForwardOutput, Objective
from encore.objectives.parts.chunks import Chunks
from encore.objectives.parts.masked_texts import Masked, choose_pieces, corrupt, count_to_mask, masked_lm, places
from encore.training.randomness import number
from encore.training.task import part_numbers, text_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor, nn

    from encore.data.tokens import TokenStore
    from encore.models.encoder import Encoder


class PairDocument(NamedTuple):
    """The input of the document tower: ``title [SEP] passage``, or the passage alone.

    ``title`` is the number of pieces before the passage, the [SEP] included.
    """

    pieces: np.ndarray
    title: int


class Passages:
    """The sections of a collection's articles and the passages that they are packed into.

    With titles, each passage leaves room for its article's title and a [SEP]: at most a quarter of the length.
    Packing takes seconds on a large collection, so tasks that are trained together share these.
    """

    def __init__(self, store: TokenStore, length: int, titles: bool) -> None:
        self.store = store
        self.article = np.repeat(np.arange(len(store.articles) - 1), np.diff(store.articles))  # of each section
        pieces = np.asarray(store.titles.lengths, dtype=np.int64)
        self._title_rooms = np.where(titles & (pieces > 0), np.minimum(pieces + 1, max(length // 4, 2)), 0)
        self.chunks = Chunks(store.sentences, store.sections, length - 2 - self._title_rooms[self.article])
        self.filled = np.isin(np.arange(len(self.article)), self.chunks.section)  # sections that have a chunk

    def sentence(self, section: int, rng: np.random.Generator) -> int:
        """The number of a sentence of a section, drawn from those with a piece."""
        sentences = self.chunks.filled(*self.store.sections[section : section + 2])
        return int(sentences[rng.integers(len(sentences))])

    def lengths(self, chunks: np.ndarray) -> np.ndarray:
        """Pieces of the documents of some chunks, [n]."""
        return self.chunks.lengths_of(chunks) + self._title_rooms[self.article[self.chunks.section[chunks]]]

    def document(self, chunk: int, removed: int | None = None) -> PairDocument:
        """A chunk with the title of its article, if there is one.

        Args:
            removed: the sentence of the chunk that the document lacks.
        """
        article = int(self.article[self.chunks.section[chunk]])
        passage = self.chunks[chunk] if removed is None else self.chunks.without(chunk, removed)
        room = int(self._title_rooms[article]) - 1
        if room < 0:
            return PairDocument(passage, 0)
        title = np.append(self.store.titles[article][:room], self.store.special.sep)
        return PairDocument(np.concatenate([title, passage]), len(title))


class PairFields(PretrainStep):
    """Fields of every two-tower objective."""

    contrasts_texts: ClassVar[bool] = True

    temperature: float = Field(1.0, gt=0, description="The number that scores are divided by.")
    titles: bool = Field(True, description="Whether documents are `title [SEP] passage` where articles have titles.")
    segments: bool = Field(False, description="Whether title and passage have the segments 0 and 1.")
    mlm_weight: float = Field(
        0.0, ge=0, description="The weight of MLM on the documents; the contrast has 1, and so has MLM in COSTA's ICT."
    )
    mask_ratio: MaskedShare = Field(
        0.15, description="The share of a document's tokens that are masked if `mlm_weight` is above 0."
    )


class PairChoice(NamedTuple):
    """The texts of a pair: a query's sentence and a document's chunk, perhaps with that sentence removed."""

    sentence: int
    chunk: int
    removed: bool = False


class TextPair(NamedTuple):
    """An example: the pieces of a query, its document, and the document after masking, where there is MLM."""

    query: np.ndarray
    document: np.ndarray
    title: int = 0
    masked: Masked | None = None

    @property
    def read(self) -> np.ndarray:
        """The pieces that the document tower reads."""
        return self.document if self.masked is None else self.masked.ids


F = TypeVar("F", bound=PairFields)


class Pairs(Objective[F]):
    """Base of the two-tower objectives; a subclass says what pairs are drawn from (``find_pairs``, ``choose``).

    ``loss = -mean log( exp(q.d / t) / sum over the batch's documents ) + w * L_MLM``; copies of a document are not its
    negatives. The correction of a sampled softmax (log Q) is left out: documents are nearly unique, so it cancels.
    With MLM (COSTA's ICT; w is 0 otherwise) the one pass over the masked documents gives both terms.
    """

    needed: ClassVar[str]  # texts without which there is no pair, in words

    def __init__(
        self, fields: F, store: TokenStore, prepared: Path | None = None, passages: Passages | None = None
    ) -> None:
        super().__init__(fields, store, prepared)
        self.passages = passages or Passages(store, fields.length, fields.titles)
        self.chunks = self.passages.chunks
        self.pairs = self.find_pairs()
        if len(self.pairs) == 0:
            raise EncoreError(
                f"objective {fields.objective} needs {self.needed}, and the collection has none; take another one"
            )

    def __len__(self) -> int:
        return len(self.pairs)

    @abstractmethod
    def find_pairs(self) -> np.ndarray:
        """The source of each example, [n] or [n, 2]: a chunk, or a link."""

    @classmethod
    def needs_states(cls, fields: F) -> bool:
        """Only MLM reads the states of tokens."""
        return fields.mlm_weight > 0

    @abstractmethod
    def choose(self, index: int, rng: np.random.Generator) -> PairChoice:
        """The texts of an example, by number; none is read."""

    def example(self, index: int, rng: np.random.Generator) -> TextPair:
        """A query and its document, which is masked where there is MLM."""
        sentence, chunk, removed = self.choose(index, rng)
        document = self.passages.document(chunk, sentence if removed else None)
        masked = self._masked(document, rng) if self.fields.mlm_weight else None
        return TextPair(self.store.sentences[sentence], document.pieces, document.title, masked)

    def sizes(self, indices: np.ndarray, chance: Callable[[int], np.random.Generator]) -> np.ndarray:
        """Word pieces of each document, from the lengths of what is chosen for it."""
        chosen = [self.choose(index, chance(index)) for index in indices.tolist()]
        sentences, chunks, removed = np.array(chosen, dtype=np.int64).reshape(-1, 3).T
        offsets = self.store.sentences.offsets
        return self.passages.lengths(chunks) - removed * (offsets[sentences + 1] - offsets[sentences])

    def collate(self, examples: list[Any]) -> Arrays:
        """The pairs, from short to long queries; these come in parts, each padded to its own longest.

        Returns:
            ``query_ids_<i>``, ``query_mask_<i>`` for each part of the B queries; ``document_ids``, ``document_mask``
            [B, L]; ``kind`` [B] int64, a number of the document's content; with segments, ``document_segments`` [B, L]
            int64; with MLM, ``masked`` [M] int64, masked positions in the flattened [B * L], and ``labels`` [M].
        """
        special = self.store.special
        pairs = sorted(examples, key=lambda pair: len(pair.query))
        ids, mask = texts.pad([pair.read for pair in pairs], self.fields.length, special)
        kind = np.array([number(0, *pair.document[: self.fields.length - 2].tolist()) for pair in pairs])
        batch = {"document_ids": ids, "document_mask": mask, "kind": kind}
        for place, part in enumerate(texts.in_parts(np.arange(len(pairs)))):
            padded = texts.pad([pairs[row].query for row in part], self.fields.query_length, special)
            batch[f"query_ids_{place}"], batch[f"query_mask_{place}"] = padded
        if self.fields.segments:
            batch["document_segments"] = passage_segments(np.array([pair.title for pair in pairs]), mask)
        if self.fields.mlm_weight:
            batch |= places([pair.masked for pair in pairs], ids.shape[1])
        return batch

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The vocabulary head where there is MLM; the linear head of the paper is the encoder's own."""
        from torch import nn

        from encore.models.heads import MlmHead

        return nn.ModuleDict({"mlm": MlmHead(encoder.config)} if self.fields.mlm_weight else {})

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss of MLM, if any; ``queries`` and ``documents`` [B, D] and ``kind`` [B] for the contrast."""
        import torch

        from encore.models.packing import in_parts

        tower = encoder.query_tower
        queries = torch.cat([tower.embed(*part) for part in tower.joined(text_parts(batch, "query"))])
        ids, mask, segments = batch["document_ids"], batch["document_mask"], batch.get("document_segments")
        if not self.fields.mlm_weight:
            documents = in_parts(encoder.embed, ids, mask, segments)
            return ForwardOutput({}, {"queries": queries, "documents": documents, "kind": batch["kind"]})
        hidden = in_parts(encoder, ids, mask, segments)
        documents = encoder.pool(hidden, ids, mask)
        means = {"mlm": masked_lm(encoder, heads, hidden, batch)}
        return ForwardOutput(means, {"queries": queries, "documents": documents, "kind": batch["kind"]})

    def batch_loss(self, embeddings: dict[str, Tensor]) -> dict[str, Tensor]:
        """InfoNCE of the queries over the batch's documents (Chang et al. 2020), and how often it is right.

        Args:
            embeddings: ``queries``, ``documents`` [B, D]; ``kind`` [B] int64, equal for copies of a document.
        """
        import torch

        from encore.training import losses

        queries, documents, kind = embeddings["queries"], embeddings["documents"], embeddings["kind"]
        own = torch.arange(len(queries), device=queries.device)
        loss = losses.info_nce(queries, documents, own, self.fields.temperature, kind[:, None] == kind[None, :])
        first = ((queries @ documents.T).detach().argmax(dim=1) == own).float().mean()
        return {"contrast": loss, "accuracy": first}

    def loss_weights(self, progress: float) -> dict[str, float]:
        """The contrast has weight 1, MLM, if any, ``mlm_weight``."""
        return {"contrast": 1.0, **({"mlm": self.fields.mlm_weight} if self.fields.mlm_weight else {})}

    def loss_denominators(self, batch: Arrays) -> dict[str, int]:
        """Masked pieces M for MLM, if any; the contrast is a mean over examples."""
        return {"mlm": len(batch["masked"])} if self.fields.mlm_weight else {}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Three forward passes' worth: the queries, the documents, their scores, the vocabulary head if any."""
        pairs, queries = len(batch["kind"]), [batch[f"query_ids_{i}"].shape for i in part_numbers(batch, "query")]
        forward = sum(flops.forward(encoder.config, *shape) for shape in queries)
        forward += flops.forward_in_parts(encoder.config, batch["document_ids"], batch.get("document_mask"))
        scores = flops.product(pairs, encoder.dimension, pairs)
        head = flops.mlm_head(encoder.config, len(batch["masked"])) if self.fields.mlm_weight else 0.0
        return flops.TRAINING * (forward + scores + head)

    def _masked(self, document: PairDocument, rng: np.random.Generator) -> Masked:
        """The document with 15 % of its pieces masked, never the [SEP] behind its title."""
        ids, title = document
        count = count_to_mask(len(ids), self.fields.mask_ratio)
        chosen = choose_pieces(len(ids) - bool(title), count, rng)
        chosen = chosen + (chosen >= title - 1) if title else chosen
        return corrupt(ids, chosen, self.store.vocabulary, self.store.special.mask, rng)


def passage_segments(titles: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Segments [B, L]: 0 for [CLS], a title and its [SEP], 1 for what comes after; a passage without title is all 0.

    Args:
        titles: [B] pieces of each title, its [SEP] included.
        mask: [B, L] bool, false at padding.
    """
    behind = np.arange(mask.shape[1]) > titles[:, None]
    return (behind & mask & (titles > 0)[:, None]).astype(np.int64)

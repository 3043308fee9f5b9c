"""What ICT, BFS and WLP share: pairs of a sentence and a document, contrasted within the batch (Chang et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from encore.config import PretrainStep
from encore.modeling import operations, texts
from encore.objectives.base import Arrays, Objective, Pass
from encore.objectives.chunks import document_chunks, title_rooms
from encore.training.randomness import number

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor, nn

    from encore.modeling.encoder import Encoder
    from encore.tokens import TokenStore


PARTS = 4  # of the queries of a batch: batches are made of documents of like length, whose queries are not


class PairFields(PretrainStep):
    """Fields of every two-tower objective."""

    temperature: float = Field(1.0, gt=0, description="scores are divided by it")
    titles: bool = Field(True, description="documents read `title [SEP] passage` where articles have titles")


class Pair(NamedTuple):
    """An example: the pieces of a query and of its document."""

    query: np.ndarray
    document: np.ndarray


F = TypeVar("F", bound=PairFields)


class Pairs(Objective[F]):
    """Base of the two-tower objectives; a subclass says which pairs there are (``__len__``, ``example``).

    ``loss = -mean log( exp(q.d / t) / sum over the batch's documents )``; copies of a document are not its negatives.
    The correction of a sampled softmax (log Q) is left out: documents are nearly unique, so it cancels.
    """

    def __init__(self, fields: F, store: TokenStore, prepared: Path | None = None) -> None:
        super().__init__(fields, store, prepared)
        self.chunks = document_chunks(store, fields.length, fields.titles)
        self.article = np.repeat(np.arange(len(store.articles) - 1), np.diff(store.articles))  # of each section
        self._full = np.asarray(store.sentences.lengths) > 0
        self.filled = np.isin(np.arange(len(self.article)), self.chunks.section)  # sections that have a chunk
        self._title_rooms = title_rooms(store, fields.length)

    def query(self, section: int, rng: np.random.Generator) -> np.ndarray:
        """A sentence of a section, drawn from those with a piece."""
        sentences = np.arange(*self.store.sections[section : section + 2])
        return self.store.sentences[int(rng.choice(sentences[self._full[sentences]]))]

    def document(self, section: int, passage: np.ndarray) -> np.ndarray:
        """The input of the document tower: ``title [SEP] passage``, or the passage alone."""
        article = int(self.article[section])
        room = int(self._title_rooms[article]) - 1
        if not self.fields.titles or room < 0:
            return passage
        return np.concatenate([self.store.titles[article][:room], [self.store.special.sep], passage])

    def size(self, example: Any) -> int:
        return len(example.document)

    def collate(self, examples: list[Any]) -> Arrays:
        """The pairs, from short to long queries; these come in parts, each padded to its own longest.

        Returns:
            ``query_ids_<i>``, ``query_mask_<i>`` for each part of the B queries; ``document_ids``, ``document_mask``
            [B, L]; ``kind`` [B] int64, a number of the document's content.
        """
        special = self.store.special
        pairs = sorted(examples, key=lambda pair: len(pair.query))
        ids, mask = texts.pad([pair.document for pair in pairs], self.fields.length, special)
        kind = np.array([number(0, *pair.document[: self.fields.length - 2].tolist()) for pair in pairs])
        batch = {"document_ids": ids, "document_mask": mask, "kind": kind}
        for place, part in enumerate(np.array_split(np.arange(len(pairs)), min(PARTS, len(pairs)))):
            padded = texts.pad([pairs[row].query for row in part], self.fields.query_length, special)
            batch[f"query_ids_{place}"], batch[f"query_mask_{place}"] = padded
        return batch

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """None: the linear head of the paper is the encoder's own."""
        from torch import nn

        return nn.ModuleDict()

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> Pass:
        import torch

        parts = range(sum(name.startswith("query_ids_") for name in batch))
        tower = encoder.query_tower
        queries = torch.cat([tower.embed(batch[f"query_ids_{i}"], batch[f"query_mask_{i}"]) for i in parts])
        documents = encoder.embed(batch["document_ids"], batch["document_mask"])
        return Pass({}, {"queries": queries, "documents": documents, "kind": batch["kind"]})

    def contrast(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        import torch

        from encore import losses

        queries, documents, kind = rows["queries"], rows["documents"], rows["kind"]
        own = torch.arange(len(queries), device=queries.device)
        loss = losses.info_nce(queries, documents, own, self.fields.temperature, kind[:, None] == kind[None, :])
        first = ((queries @ documents.T).detach().argmax(dim=1) == own).float().mean()
        return {"contrast": loss, "accuracy": first}

    def weights(self, progress: float) -> dict[str, float]:
        return {"contrast": 1.0}

    def operations(self, encoder: Encoder, batch: Arrays) -> float:
        """Three forward passes' worth: the queries, the documents, their scores."""
        inputs = [array.shape for name, array in batch.items() if "_ids" in name]
        pairs = len(batch["kind"])
        forward = sum(operations.forward(encoder.shape, *shape) for shape in inputs)
        return operations.TRAINING * (forward + operations.product(pairs, encoder.dimension, pairs))

"""Fine-tuning on judged queries: a positive, some negatives, and every other passage of the batch.

The loss of a query is the cross-entropy of its positive among all passages of the batch (InfoNCE; the released code of
COSTA and of BoW: list-wise over the batch). A passage of the batch that is relevant for a query is no negative of it,
so it is left out of that query's denominator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from encore import losses
from encore.collections.common import Collection, topics
from encore.config import FinetuneStep
from encore.errors import EncoreError
from encore.finetuning.negatives import Negatives
from encore.finetuning.positives import highest
from encore.modeling import operations, texts
from encore.tokens import Sequences, TokenStore
from encore.training.task import Arrays, Pass, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.modeling.encoder import Encoder

PARTS = 4  # passages of a batch are sorted by length and embedded in so many parts, each padded to its own longest
ROWS = ("passages", "relevant")  # of a batch's arrays, what the contrast needs beside vectors


@dataclass(frozen=True)
class Query:
    """A training query, in rows of the token store."""

    row: int
    positives: tuple[int, ...]  # passages of its highest grade
    relevant: frozenset[int]  # passages of any grade above 0
    judged: frozenset[int]
    negatives: tuple[int, ...]


@dataclass(frozen=True)
class Example:
    """A query with the passages that it brings to a batch, its positive first."""

    query: Query
    passages: list[int]


class Contrastive(Task):
    """The fine-tuning task of one step on one token store."""

    def __init__(self, step: FinetuneStep, queries: list[Query], store: TokenStore) -> None:
        self.step = step
        self.queries = queries
        self.store = store
        self.most_relevant = max(len(query.relevant) for query in queries)

    def __len__(self) -> int:
        return len(self.queries)

    def example(self, index: int, rng: np.random.Generator) -> Example:
        """A positive and ``per_query`` negatives, both drawn; where negatives are too few, any unjudged passages."""
        query = self.queries[index]
        positive = int(rng.choice(query.positives))
        negatives = rng.permutation(np.array(query.negatives, dtype=np.int64))[: self.step.per_query].tolist()
        while len(negatives) < self.step.per_query:
            passage = int(rng.integers(len(self.store.passages)))
            if passage not in query.judged:
                negatives.append(passage)
        return Example(query, [positive, *negatives])

    def collate(self, examples: list[Example]) -> Arrays:
        """A batch of B queries with P passages each, all passages embedded from short to long.

        Returns:
            ``query_ids``, ``query_mask`` [B, L]; ``passage_ids_<i>``, ``passage_mask_<i>`` for each part of the B * P
            passages; ``places`` [B, P], where each stands among these; ``passages`` [B, P] and ``relevant`` [B, R],
            rows of the store, the latter padded with -1.
        """
        own = np.array([example.passages for example in examples])
        order = np.argsort(self.store.passages.lengths[own.ravel()], kind="stable")
        batch = {"places": np.argsort(order).reshape(own.shape), "passages": own, "relevant": self._relevant(examples)}
        rows = [example.query.row for example in examples]
        batch["query_ids"], batch["query_mask"] = self._pad(self.store.queries, rows, self.step.query_length)
        for number, part in enumerate(np.array_split(own.ravel()[order], min(PARTS, own.size))):
            padded = self._pad(self.store.passages, part, self.step.length)
            batch[f"passage_ids_{number}"], batch[f"passage_mask_{number}"] = padded
        return batch

    def _relevant(self, examples: list[Example]) -> np.ndarray:
        """[B, R]: R is the same in every batch, so that the rows of parts fit together."""
        rows = np.full((len(examples), self.most_relevant), -1)
        for row, example in enumerate(examples):
            rows[row, : len(example.query.relevant)] = sorted(example.query.relevant)
        return rows

    def _pad(self, sequences: Sequences, rows: Iterable[int], length: int) -> tuple[np.ndarray, np.ndarray]:
        return texts.pad([sequences[row] for row in rows], length, self.store.special)

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> Pass:
        import torch

        queries = encoder.query_tower.embed(batch["query_ids"], batch["query_mask"])
        parts = [encoder.embed(batch[f"passage_ids_{i}"], batch[f"passage_mask_{i}"]) for i in _parts(batch)]
        vectors = torch.cat(parts)[batch["places"]]
        return Pass({}, {"queries": queries, "vectors": vectors, **{name: batch[name] for name in ROWS}})

    def contrast(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """InfoNCE over the batch: each query's first passage against all others that are not relevant for it.

        Scores are computed in fp32 at least, whatever the encoder ran in.
        """
        import torch

        queries, vectors = (losses.wide(rows[name]) for name in ("queries", "vectors"))
        passages, relevant = rows["passages"], rows["relevant"]
        positive = torch.arange(len(passages), device=passages.device) * passages.shape[1]
        ignored = (relevant[:, :, None] == passages.flatten()).any(dim=1)
        with torch.autocast(queries.device.type, enabled=False):
            loss = losses.info_nce(queries, vectors.flatten(0, 1), positive, self.step.temperature, ignored)
        return {"contrast": loss}

    def weights(self, progress: float) -> dict[str, float]:
        return {"contrast": 1.0}

    def operations(self, encoder: Encoder, batch: Arrays) -> float:
        """Forward and backward of all queries and passages, padding included, and of their scores."""
        names = ["query_ids", *(f"passage_ids_{i}" for i in _parts(batch))]
        forward = sum(operations.forward(encoder.shape, *batch[name].shape) for name in names)
        scores = operations.product(len(batch["passages"]), encoder.dimension, batch["passages"].size)
        return operations.TRAINING * (forward + scores)


def _parts(batch: Mapping[str, Any]) -> range:
    return range(sum(name.startswith("passage_ids_") for name in batch))


def training_queries(
    step: FinetuneStep, collection: Collection, store: TokenStore, negatives: Negatives
) -> list[Query]:
    """The judged queries of the training role, or the step's sample of them.

    Raises:
        EncoreError: nothing is judged relevant, or a query or document is not in the token store.
    """
    judgments = collection.qrels("train")
    names = topics(collection, "train", queries=step.queries, sample=step.sample)
    rows = {name: row for row, name in enumerate(store.queries.names)}
    passages = {name: row for row, name in enumerate(store.passages.names)}
    try:
        found = [_query(rows[name], judgments[name], negatives.get(name, {}), passages) for name in names]
    except KeyError as error:
        raise EncoreError(
            f"{error} is judged or a negative, but not in the token store; make the tokens again"
        ) from error
    found = [query for query in found if query.relevant and len(query.judged) < len(passages)]
    if not found:
        raise EncoreError(
            f"no query of {collection.folder} has a relevant passage in the training role; nothing to learn"
        )
    return found


def _query(row: int, judged: Mapping[str, int], negatives: Mapping[str, int], passages: Mapping[str, int]) -> Query:
    return Query(
        row=row,
        positives=tuple(sorted(passages[document] for document in highest(judged))),
        relevant=frozenset(passages[document] for document, grade in judged.items() if grade > 0),
        judged=frozenset(passages[document] for document in judged),
        negatives=tuple(passages[document] for document in negatives),
    )

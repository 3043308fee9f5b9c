"""The base of every fine-tuning task: judged queries with their passages, and batches of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from encore.config.finetuning import FinetuneStep
from encore.data.tokens import Sequences, TokenStore
from encore.finetuning.clusters import clustered, order_by_cluster
from encore.finetuning.queries import Example, Query
from encore.models import flops, inputs
from encore.models.inputs import Special, in_parts
from encore.training.task import Arrays, Task, part_numbers, text_parts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.encoder import Encoder


class RetrievalTask(Task):
    """Judged queries, each with a positive and negatives; a subclass adds the loss."""

    term: ClassVar[str] = "contrast"  # the only one of the loss

    def __init__(self, step: FinetuneStep, queries: list[Query], store: TokenStore) -> None:
        self.step = step
        self.queries = queries
        self.store = store
        self.reading: Special = store.special  # how texts are framed; the model's shape, where that says more
        self.clusters: np.ndarray | None = None  # of each query, if batches are of one cluster
        self.most_relevant = max(len(query.relevant) for query in queries)

    def __len__(self) -> int:
        return len(self.queries)

    def order(self, count: int, batch: int, seed: int, epoch: int) -> np.ndarray:
        """The batches of an epoch, drawn by chance or by cluster."""
        if self.clusters is None:
            return super().order(count, batch, seed, epoch)
        return order_by_cluster(self.clusters, batch, seed, epoch)

    def cluster_by(self, encoder: Encoder, count: int, chance: int) -> None:
        """Let batches be of one cluster each, of so many, by an encoder's vectors of the queries."""
        rows, length = np.array([query.row for query in self.queries]), self.step.query_length
        self.clusters = clustered(encoder, self.store, rows, length=length, count=count, chance=chance)

    def heads(self, shape: EncoderConfig) -> nn.ModuleDict:
        """New modules that the task trains besides an encoder of this shape; none by default."""
        from torch import nn

        return nn.ModuleDict()

    def example(self, index: int, rng: np.random.Generator) -> Example:
        """A positive and the step's negatives, both drawn; where negatives are too few, any unjudged passages."""
        query = self.queries[index]
        positive = int(rng.choice(query.positives))
        own, count = np.array(query.negatives, dtype=np.int64), self.step.negatives_per_query
        drawn = rng.choice(own, count) if self.step.replacement and len(own) else rng.permutation(own)[:count]
        negatives: list[int] = drawn.tolist()
        while len(negatives) < count:
            passage = int(rng.integers(len(self.store.passages)))
            if passage not in query.judged:
                negatives.append(passage)
        return Example(query, [positive, *negatives])

    def tokens(self, examples: list[Example], sizes: np.ndarray) -> np.ndarray:
        """Tokens of each query and its passages together, without a model's own markers, [n]."""
        queries = self.store.queries.lengths_of([example.query.row for example in examples])
        passages = self.store.passages.lengths_of([example.passages for example in examples])
        read = np.minimum(passages + 2, self.step.length).sum(axis=1)
        return np.minimum(queries + 2, self.step.query_length) + read

    def collate(self, examples: list[Example]) -> Arrays:
        """A batch of B queries with P passages each, all passages embedded from short to long.

        Returns:
            ``query_ids``, ``query_mask`` [B, L]; ``passage_ids_<i>``, ``passage_mask_<i>`` for each part of the B * P
            passages; ``places`` [B, P], the place of each among these; ``passages`` [B, P] and ``relevant`` [B, R],
            rows of the store, the latter padded with -1.
        """
        own = np.array([example.passages for example in examples])
        order = np.argsort(self.store.passages.lengths_of(own.ravel()), kind="stable")
        relevant = np.full((len(examples), self.most_relevant), -1)  # as wide in every batch, for parts to fit
        for row, example in enumerate(examples):
            relevant[row, : len(example.query.relevant)] = sorted(example.query.relevant)
        batch = {"places": np.argsort(order).reshape(own.shape), "passages": own, "relevant": relevant}
        rows = [example.query.row for example in examples]
        batch["query_ids"], batch["query_mask"] = self._pad(self.store.queries, rows, self.step.query_length)
        for number, part in enumerate(in_parts(own.ravel()[order])):
            padded = self._pad(self.store.passages, part, self.step.length)
            batch[f"passage_ids_{number}"], batch[f"passage_mask_{number}"] = padded
        return batch

    def embed(self, encoder: Encoder, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Vectors of a batch's queries [B, D] and passages [B, P, D], each query's positive first."""
        import torch

        queries = encoder.query_tower.embed(batch["query_ids"], batch["query_mask"])
        embedded = [encoder.embed(*part) for part in encoder.joined(text_parts(batch, "passage"))]
        return queries, torch.cat(embedded)[batch["places"]]

    def loss_weights(self, progress: float) -> dict[str, float]:
        """One term, with weight 1."""
        return {self.term: 1.0}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Forward and backward of all queries and passages, padding included, and of their scores."""
        names = ["query_ids", *(f"passage_ids_{i}" for i in part_numbers(batch, "passage"))]
        forward = sum(flops.forward(encoder.config, *batch[name].shape) for name in names)
        scores = flops.product(len(batch["passages"]), encoder.dimension, self.scored(batch))
        return flops.TRAINING * (forward + scores)

    def scored(self, batch: Arrays) -> int:
        """The number of passages that each query is scored against."""
        return int(batch["passages"].size)

    def _pad(self, sequences: Sequences, rows: Iterable[int], length: int) -> tuple[np.ndarray, np.ndarray]:
        return inputs.read_inputs(sequences, rows, length, self.reading)

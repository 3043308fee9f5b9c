"""Training the encoder of queries alone, against all passages as they were embedded before (ADORE, LTRe).

At every step each query is answered from the whole collection with its vector of the moment. The first ``depth``
passages, ranked, are its positives and negatives; if no positive is among them, all of them follow at the end (the
released code of ADORE, jingtaozhan/DRhard). Passages keep their vectors, so the index serves the trained model too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from encore.config.finetuning import FinetuneStep
from encore.data.tokens import TokenStore
from encore.finetuning.queries import Example, Query
from encore.finetuning.retrieval_task import RetrievalTask
from encore.models import flops
from encore.training.task import Arrays, ForwardOutput

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder


class WholeIndex(RetrievalTask):
    """Each query against the best passages of the collection, by vectors that stay as they are."""

    term = "ranking"
    passages = np.empty((0, 0), np.float32)  # none where operations are counted without a collection
    _held: Tensor | None = None  # the passages' vectors, on the model's device

    def __init__(self, step: FinetuneStep, queries: list[Query], store: TokenStore, passages: np.ndarray) -> None:
        """``passages``: float32 [passages, D], of every passage of the store."""
        super().__init__(step, queries, store)
        self.most = {name: max(len(getattr(query, name)) for query in queries) for name in ("positives", "judged")}
        self.passages = passages

    def example(self, index: int, rng: np.random.Generator) -> Example:
        """A query alone: nothing is drawn."""
        return Example(self.queries[index], [])

    def tokens(self, examples: list[Example], sizes: np.ndarray) -> np.ndarray:
        """Tokens of each query, without a model's own markers, [n]."""
        lengths = self.store.queries.lengths_of([example.query.row for example in examples])
        return np.minimum(lengths + 2, self.step.query_length)

    def collate(self, examples: list[Example]) -> Arrays:
        """A batch of B queries: ``query_ids``, ``query_mask`` [B, L]; ``positives`` [B, R] and ``judged`` [B, J].

        The last two are rows of the store, padded with -1, in as many columns in every batch.
        """
        rows = [example.query.row for example in examples]
        ids, mask = self._pad(self.store.queries, rows, self.step.query_length)
        batch = {"query_ids": ids, "query_mask": mask}
        for name, most in self.most.items():
            batch[name] = np.full((len(examples), most), -1)
            for row, example in enumerate(examples):
                own = sorted(getattr(example.query, name))
                batch[name][row, : len(own)] = own
        return batch

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss, a scalar and a mean over queries; scores are in fp32 at least, whatever the encoder ran in."""
        import torch

        from encore.models.precision import at_least_float32
        from encore.training import losses

        queries = at_least_float32(encoder.query_tower.embed(batch["query_ids"], batch["query_mask"]))
        passages = self._on(queries)
        with torch.autocast(queries.device.type, enabled=False):
            rows, right, wrong = ranked(
                queries.detach() @ passages.T, self.step.depth, batch["positives"], batch["judged"]
            )
            scores = (passages[rows] @ queries[:, :, None]).squeeze(-1) / self.step.temperature
            gains = None
            if self.step.loss == "lambda":
                gains = 1 / torch.arange(1, scores.shape[1] + 1, dtype=scores.dtype, device=scores.device)
                gains[self.step.depth :] = 0  # as far as ranks are looked at
            return ForwardOutput({self.term: losses.ranked_pairs(scores, right, wrong, gains)}, {})

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Forward and backward of the queries, and their products with all passages."""
        read = flops.TRAINING * flops.forward(encoder.config, *batch["query_ids"].shape)
        return read + flops.product(len(batch["query_ids"]), encoder.dimension, len(self.passages))

    def _on(self, queries: Tensor) -> Tensor:
        """The passages' vectors where the queries' are."""
        import torch

        if self._held is None or self._held.device != queries.device:
            self._held = torch.from_numpy(self.passages).to(queries.device)
        return self._held.to(queries.dtype)


def ranked(scores: Tensor, depth: int, positives: Tensor, judged: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The first passages of each query by their scores, then its positives if none is among them.

    Args:
        scores: [B, passages].
        depth: ranks that are looked at, or all where there are fewer.
        positives: [B, R] int64, passages that answer a query, padded with -1.
        judged: [B, J] int64, passages that are no negatives of a query, padded with -1; its positives are among them.

    Returns:
        Passages [B, depth + R] int64, and which of them are right and wrong, bool; padding is neither.
    """
    import torch

    first = scores.topk(min(depth, scores.shape[1])).indices
    found = (first[:, :, None] == positives[:, None]).any(dim=-1)
    known = (first[:, :, None] == judged[:, None]).any(dim=-1)
    added = (positives >= 0) & ~found.any(dim=1, keepdim=True)
    rows = torch.cat([first, positives.clamp(min=0)], dim=1)
    return rows, torch.cat([found, added], dim=1), torch.cat([~known, torch.zeros_like(added)], dim=1)

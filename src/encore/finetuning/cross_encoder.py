"""Fine-tuning of a cross-encoder: each query's positive against the negatives that it brings itself.

Passages of other queries would each need a separate pass with this query, so they take no part: the loss is the
softmax cross-entropy over a query's own passages (RankNet's loss where there is one negative, as of the teachers of
Hofstätter et al. 2020, which KD-T1 and KD-T2 in TCT-ColBERT's Table 2 learned from), or, with ``loss: pointwise``, the
binary cross-entropy of each passage (Nogueira and Cho 2019), whose score is then the logit of a probability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from encore.finetuning.queries import Example
from encore.finetuning.retrieval_task import RetrievalTask
from encore.models import flops
from encore.models.inputs import in_parts
from encore.training.task import Arrays, ForwardOutput, part_numbers, text_parts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.encoder import Encoder


class CrossEncoder(RetrievalTask):
    """Each query read together with each of its passages."""

    def heads(self, shape: EncoderConfig) -> nn.ModuleDict:
        """The linear map [1, H] from a pair's state to its score."""
        from encore.models import cross_encoder

        return cross_encoder.score_head(shape)

    def tokens(self, examples: list[Example], sizes: np.ndarray) -> np.ndarray:
        """Tokens of all pairs of each query, [n]."""
        queries = self.store.queries.lengths_of([example.query.row for example in examples])
        passages = self.store.passages.lengths_of([example.passages for example in examples])
        read = np.minimum(queries + 2, self.step.query_length)[:, None] + np.minimum(passages + 1, self.step.length)
        return read.sum(axis=1)

    def collate(self, examples: list[Example]) -> Arrays:
        """A batch of B queries with P passages each, all pairs read from short to long.

        Returns:
            ``pair_ids_<i>``, ``pair_mask_<i>``, ``pair_segments_<i>`` for each part of the B * P pairs; ``places``
            [B, P], the place of each among these.
        """
        from encore.models import cross_encoder

        queries, passages = self.store.queries, self.store.passages
        found = [(example.query.row, passage) for example in examples for passage in example.passages]
        own, read = np.array(found).T
        order = np.argsort(queries.lengths_of(own) + passages.lengths_of(read), kind="stable")
        batch: Arrays = {"places": np.argsort(order).reshape(len(examples), -1)}
        for number, part in enumerate(in_parts(order)):
            query_tokens, known = (
                [queries[found[place][0]] for place in part],
                [passages[found[place][1]] for place in part],
            )
            arrays = cross_encoder.pair_inputs(
                query_tokens, known, self.step.query_length, self.step.length, self.store.special
            )
            batch |= {f"pair_{name}_{number}": array for name, array in zip(_NAMES, arrays, strict=True)}
        return batch

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The contrast, a scalar, of scores [B, P]; computed in fp32 at least, whatever the encoder ran in."""
        import torch

        from encore.models import cross_encoder
        from encore.models.precision import at_least_float32
        from encore.training import losses

        linear = heads[cross_encoder.NAME]
        parts = encoder.joined(text_parts(batch, "pair", _NAMES))
        found = [cross_encoder.score(encoder, linear, *part) for part in parts]
        scores = at_least_float32(torch.cat(found))[batch["places"]]
        with torch.autocast(scores.device.type, enabled=False):
            if self.step.loss == "pointwise":
                return ForwardOutput({"contrast": losses.pointwise(scores)}, {})
            positive = torch.zeros(len(scores), dtype=torch.int64, device=scores.device)
            return ForwardOutput({"contrast": losses.choice(scores / self.step.temperature, positive)}, {})

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Forward and backward of all pairs, padding included."""
        parts = part_numbers(batch, "pair")
        forward = sum(flops.forward(encoder.config, *batch[f"pair_ids_{number}"].shape) for number in parts)
        return flops.TRAINING * (forward + flops.product(batch["places"].size, encoder.config.hidden, 1))


_NAMES = ("ids", "mask", "segments")

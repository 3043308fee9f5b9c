"""coCondenser: Condenser, and spans of one document closer to each other than to others (Gao and Callan, ACL 2022)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from encore.errors import EncoreError
from encore.models import flops
from encore.objectives.base import Arrays, ForwardOutput
from encore.objectives.condenser import Condenser, CondenserFields
from encore.objectives.parts.masked_texts import MaskedText

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.data.tokens import TokenStore
    from encore.models.encoder import Encoder

SPANS = 2


class CocondenserFields(CondenserFields):
    """Fields of coCondenser."""

    contrasts_texts: ClassVar[bool] = True
    contrast_weight: float = Field(1.0, ge=0, description="The weight of the contrast of spans.")


class Cocondenser(Condenser[CocondenserFields]):
    """Condenser's losses on both spans, and ``-log( exp(<h_1, h_2>) / sum_{k != 1} exp(<h_1, h_k>) )`` (Eq. 6, 7).

    k runs over all spans of the batch; products have neither norm nor temperature. A span is a text as other
    objectives read it; the second is drawn from the others of the same article, or of the same section where
    ``packing`` says so. The released code draws both from a document, which is read once an epoch.
    """

    Fields = CocondenserFields
    views = SPANS
    impl = 2  # 2: batches are random samples

    def __init__(self, fields: CocondenserFields, store: TokenStore, prepared: Path | None = None) -> None:
        super().__init__(fields, store, prepared)
        self.document = self.chunks.section[self.usable]  # ascending
        first, counts = (np.unique(self.document, return_index=True, return_counts=True)[place] for place in (1, 2))
        self.first, self.count = np.repeat(first, counts), np.repeat(counts, counts)
        self.paired = np.flatnonzero(self.count > 1)
        if len(self.paired) == 0:
            raise EncoreError(
                "objective cocondenser needs two texts of one article, and the collection has none; lower `length` or "
                "take other texts"
            )

    def __len__(self) -> int:
        return len(self.paired)

    def counts(self) -> dict[str, float]:
        """Those of the texts, of those that share an article."""
        return {**super().counts(), "texts": len(self)}

    def other(self, text: int, rng: np.random.Generator) -> int:
        """The number of another text of the same article."""
        place = int(rng.integers(self.count[text] - 1))
        place += self.first[text] + place >= text
        return int(self.first[text]) + place

    def example(self, index: int, rng: np.random.Generator) -> list[MaskedText]:
        """Two texts of an article, each masked."""
        text = int(self.paired[index])
        return [self.text(other, rng) for other in (text, self.other(text, rng))]

    def sizes(self, indices: np.ndarray, chance: Callable[[int], np.random.Generator]) -> np.ndarray:
        """Word pieces of the first text of each pair."""
        return self.lengths[self.paired[indices]]

    def tokens(self, examples: list[list[MaskedText]], sizes: np.ndarray) -> np.ndarray:
        """Word pieces of both texts."""
        return np.array([sum(len(text.ids) for text in pair) for pair in examples])

    def collate(self, examples: list[list[MaskedText]]) -> Arrays:
        """The arrays of MLM, [2B, L]: the two texts of an article are neighbours."""
        return super().collate([text for example in examples for text in example])

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """Condenser's losses, and ``spans`` [B, 2, H], the representations of both texts."""
        output = super().forward(encoder, heads, batch)
        return ForwardOutput(output.losses, {"spans": output.embeddings["texts"].unflatten(0, (-1, SPANS))})

    def batch_loss(self, embeddings: dict[str, Tensor]) -> dict[str, Tensor]:
        """The contrast of ``spans`` [B, 2, H], a mean over all 2B (Eq. 6)."""
        from encore.training import losses

        spans = embeddings["spans"].flatten(0, 1)
        return {"contrast": losses.nt_xent(spans @ spans.T, 1.0)}

    def loss_weights(self, progress: float) -> dict[str, float]:
        """Condenser's, and ``contrast_weight``."""
        return {**super().loss_weights(progress), "contrast": self.fields.contrast_weight}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The operations of Condenser on all texts, and of their similarities."""
        texts = len(batch["ids"])
        return super().flops(encoder, batch) + flops.TRAINING * flops.product(texts, encoder.config.hidden, texts)


OBJECTIVE = Cocondenser

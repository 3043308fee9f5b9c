"""COSTA: a text's representation is drawn towards the spans of the text, at four granularities (SIGIR'22, section 3).

The paper's equations are reconstructed; its pre-training code was never published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from encore.config.validation import Positive
from encore.models import flops
from encore.objectives.base import Arrays, ForwardOutput
from encore.objectives.parts.lexicon import content_pieces
from encore.objectives.parts.masked_texts import Masked, MaskedText, MaskedTexts, MaskingFields

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor, nn

    from encore.data.tokens import TokenStore
    from encore.models.encoder import Encoder

Granularity = Literal["word", "phrase", "sentence", "paragraph"]
BOUNDS: dict[str, tuple[int, int]] = {"phrase": (4, 16), "sentence": (16, 64), "paragraph": (64, 128)}  # in pieces
ALPHA, BETA = 4.0, 2.0  # of the beta distribution: long spans are likelier than short ones


def beta_spans(n: int, shortest: int, longest: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Spans with lengths between ``shortest`` and ``longest`` (COSTA, Eq. 1 to 3; Giorgi et al. 2021).

    ``length = floor(p * (longest - shortest) + shortest)`` with ``p ~ Beta(4, 2)``;
    ``start ~ Uniform{0, ..., n - length}``. ``longest`` is lowered to ``n``; a text shorter than ``shortest`` has none.

    Returns:
        [count, 2] int64, or [0, 2]; spans may overlap.
    """
    if n < shortest:
        return np.zeros((0, 2), dtype=np.int64)
    lengths = beta_lengths(shortest, min(longest, n), count, rng)
    starts = rng.integers(0, n - lengths, endpoint=True)
    return np.stack([starts, starts + lengths], axis=1)


def beta_lengths(shortest: int, longest: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Lengths of spans, [count] int64; only a share of 1, which has no probability, would give ``longest``."""
    return np.floor(rng.beta(ALPHA, BETA, size=count) * (longest - shortest) + shortest).astype(np.int64)


def word_spans(starts: np.ndarray, n: int, usable: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Different words of a text, each with all its pieces; fewer than ``count`` where the text has fewer.

    Args:
        starts: [words] first position of each word.
        usable: [words] bool, false for stop-words and punctuation.

    Returns:
        [at most count, 2] int64.
    """
    words = np.stack([starts, np.append(starts[1:], n)], axis=1)[usable].astype(np.int64)
    return words[rng.permutation(len(words))[:count]]


class CostaFields(MaskingFields):
    """Fields of COSTA."""

    contrasts_texts: ClassVar[bool] = True
    min_tokens: Positive = Field(
        64, description="The fewest word pieces of a text that is used; at 64 each text has a paragraph span."
    )
    spans: Positive = Field(5, description="The number of spans of each granularity.")
    granularities: tuple[Granularity, ...] = Field(("word", "phrase", "sentence", "paragraph"), min_length=1)
    projector: Literal["nonlinear", "linear", "none"] = Field(
        "nonlinear", description="The projector of whole texts; spans have none."
    )
    temperature: float = Field(0.1, gt=0, description="The number that similarities are divided by.")
    similarity: Literal["cosine", "dot"] = Field("cosine", description="The similarity of a whole text and a span.")
    gwc_weight: float = Field(0.1, ge=0, description="The weight lambda of the contrast; MLM has 1.")

    @field_validator("granularities")
    @classmethod
    def _different(cls, granularities: tuple[str, ...]) -> tuple[str, ...]:
        """A granularity named twice would have twice the spans, which is what ``spans`` is for."""
        if len(set(granularities)) < len(granularities):
            raise ValueError("each granularity may be named once; raise `spans` for more spans of each")
        return granularities


class SpannedText(NamedTuple):
    """An example: a text before and after masking, and its spans [K, 2] in pieces."""

    ids: np.ndarray
    masked: Masked
    spans: np.ndarray


class Costa(MaskedTexts[CostaFields]):
    """``loss = L_MLM + lambda * L_GWC``; L_GWC is the group-wise contrast of Eq. 8, a mean over the whole texts.

    An anchor is a whole text ``z_i = g(h_i)``; its positives are its own spans, each the mean of its last-layer states
    (Eq. 7, no projector); its negatives are all other texts and their spans. One pass over the masked text gives all.
    """

    Fields = CostaFields
    impl = 3  # 2: [UNK] is not a word span; 3: batches are random samples

    def __init__(self, fields: CostaFields, store: TokenStore, prepared: Path | None = None) -> None:
        super().__init__(fields, store, prepared)
        self.content = content_pieces(store.pieces)

    def example(self, index: int, rng: np.random.Generator) -> SpannedText:
        """A text, masked, and at most ``spans`` spans of each granularity."""
        text: MaskedText = self.text(index, rng)
        spans = [self._spans(granularity, text.ids, rng) for granularity in self.fields.granularities]
        return SpannedText(text.ids, text.masked, np.concatenate(spans))

    def collate(self, examples: list[SpannedText]) -> Arrays:
        """Arrays of MLM; ``spans`` [B, K, 2] int64, positions in ``ids``; ``drawn`` [B, K] bool (false: padding)."""
        most = self.fields.spans * len(self.fields.granularities)
        spans = np.zeros((len(examples), most, 2), dtype=np.int64)
        drawn = np.zeros((len(examples), most), dtype=bool)
        for row, example in enumerate(examples):
            spans[row, : len(example.spans)] = example.spans + 1  # 1: [CLS]
            drawn[row, : len(example.spans)] = True
        return {**super().collate(examples), "spans": spans, "drawn": drawn}

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The vocabulary head, and the projector g of whole texts."""
        from encore.models.heads import projector

        heads = super().heads(encoder)
        heads["projector"] = projector(self.fields.projector, encoder.config.hidden)
        return heads

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss of MLM; ``texts`` [B, H], ``spans`` [B, K, H] and ``drawn`` [B, K] bool for the contrast."""
        hidden = self.states(encoder, batch)
        mlm = self.masked_lm(encoder, heads, hidden, batch)
        texts = heads["projector"](encoder.pooled(hidden, batch["ids"], batch["mask"]))
        spans = span_means(hidden, batch["spans"])
        return ForwardOutput({"mlm": mlm}, {"texts": texts, "spans": spans, "drawn": batch["drawn"]})

    def batch_loss(self, embeddings: dict[str, Tensor]) -> dict[str, Tensor]:
        """Eq. 8 for whole texts [N, H] and their spans [N, K, H]."""
        import torch
        import torch.nn.functional as F

        from encore.training import losses

        texts, candidates = embeddings["texts"], torch.cat([embeddings["texts"], embeddings["spans"].flatten(0, 1)])
        if self.fields.similarity == "cosine":
            texts, candidates = F.normalize(texts, dim=-1), F.normalize(candidates, dim=-1)
        positive, allowed = groups(embeddings["drawn"])
        return {"gwc": losses.sup_con(texts, candidates, positive, allowed, self.fields.temperature)}

    def loss_weights(self, progress: float) -> dict[str, float]:
        """MLM has weight 1, the group-wise contrast ``gwc_weight``, at all times."""
        return {"mlm": 1.0, "gwc": self.fields.gwc_weight}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The operations of MLM, the projector, the means of the spans and the similarities of the contrast."""
        texts, spans = batch["drawn"].shape
        width = encoder.config.hidden
        projector = flops.PRODUCTS[self.fields.projector] * flops.product(texts, width, width)
        means = texts * flops.product(spans, batch["ids"].shape[1], width)
        similarities = flops.product(texts, width, texts * (1 + spans))
        return super().flops(encoder, batch) + flops.TRAINING * (projector + means + similarities)

    def _spans(self, granularity: Granularity, ids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """[at most ``spans``, 2]."""
        if granularity != "word":
            return beta_spans(len(ids), *BOUNDS[granularity], self.fields.spans, rng)
        starts = self.store.word_starts(ids)
        whole = np.diff(np.append(starts, len(ids))) > 1  # words of several pieces are not stop-words
        return word_spans(starts, len(ids), whole | self.content[ids[starts]], self.fields.spans, rng)


def span_means(hidden: Tensor, spans: Tensor) -> Tensor:
    """Mean state of each span (Eq. 7): [B, L, H] and [B, K, 2] give [B, K, H]; 0 for an empty span."""
    import torch

    place = torch.arange(hidden.shape[1], device=hidden.device)
    inside = (place >= spans[..., :1]) & (place < spans[..., 1:])
    share = inside.to(hidden.dtype) / inside.sum(dim=-1, keepdim=True).clamp(min=1)
    return share @ hidden


def groups(drawn: Tensor) -> tuple[Tensor, Tensor]:
    """P(i) and A(i) of Eq. 8 over N whole texts followed by their N * K spans, each [N, N + N * K] bool.

    A text's positives are its own spans; it is contrasted with everything but itself. Padding belongs to nothing.
    """
    import torch

    n, k = drawn.shape
    own = torch.eye(n, dtype=torch.bool, device=drawn.device)
    spans = drawn.flatten().expand(n, -1)
    positive = torch.cat([torch.zeros_like(own), own.repeat_interleave(k, dim=1) & spans], dim=1)
    return positive, torch.cat([~own, spans], dim=1)


OBJECTIVE = Costa

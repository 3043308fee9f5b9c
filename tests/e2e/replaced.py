"""A new objective that is not built on another: pieces that were replaced are told from the text's (ELECTRA).

Clark et al. (ICLR 2020), with replacements drawn from the vocabulary in place of a generator's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from encore.config.entries import PretrainStep
from encore.config.validation import Share
from encore.data.tokens import TokenStore
from encore.models import flops, inputs
from encore.objectives.base import Arrays, ForwardOutput, Objective
from encore.objectives.parts.chunks import PackingFields, text_chunks

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder


class ReplacedFields(PackingFields, PretrainStep):
    """Fields of the detection of replaced pieces."""

    replaced_share: Share = Field(0.15, description="The share of a text's pieces that are replaced.")


class ReplacedText(NamedTuple):
    """An example: a text's pieces after replacement, and which of them were replaced, [n] both."""

    shown: np.ndarray
    replaced: np.ndarray


class Replaced(Objective[ReplacedFields]):
    """``loss = -mean [ y log sigmoid(z) + (1 - y) log(1 - sigmoid(z)) ]`` over all tokens, y: was it replaced?"""

    Fields = ReplacedFields

    def __init__(self, fields: ReplacedFields, store: TokenStore, prepared: Path | None = None) -> None:
        super().__init__(fields, store, prepared)
        self.chunks, self.usable = text_chunks(store, fields.length, fields)

    def __len__(self) -> int:
        return len(self.usable)

    def example(self, index: int, rng: np.random.Generator) -> ReplacedText:
        """A text some of whose pieces are replaced by pieces drawn from the vocabulary."""
        pieces = self.chunks.read(self.usable[index], rng).astype(np.int64)
        chosen = rng.random(len(pieces)) < self.fields.replaced_share
        shown = np.where(chosen, rng.integers(self.store.vocabulary, size=len(pieces)), pieces)
        return ReplacedText(shown, shown != pieces)

    def sizes(self, indices: np.ndarray, chance: Callable[[int], np.random.Generator]) -> np.ndarray:
        """Word pieces of each text."""
        return self.chunks.lengths_of(self.usable[indices])

    def collate(self, examples: list[ReplacedText]) -> Arrays:
        """``ids``, ``mask`` [B, L]; ``places`` [N] int64, of pieces in the flat [B * L]; ``replaced`` [N] bool."""
        ids, mask = inputs.pad([example.shown for example in examples], self.fields.length, self.store.special)
        replaced = np.zeros_like(mask)
        for row, example in enumerate(examples):
            replaced[row, 1 : 1 + len(example.replaced)] = example.replaced
        places = np.flatnonzero(mask)
        return {"ids": ids, "mask": mask, "places": places, "replaced": replaced.reshape(-1)[places]}

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """A linear map [1, H] from a token's state to its logit z."""
        from torch import nn

        from encore.models.heads import initialise

        return nn.ModuleDict({"replaced": initialise(nn.Linear(encoder.config.hidden, 1))})

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss, a mean over the tokens that are not padding."""
        import torch.nn.functional as F

        from encore.models.heads import at

        logits = heads["replaced"](at(encoder(batch["ids"], batch["mask"]), batch["places"])).squeeze(-1)
        labels = batch["replaced"].to(logits.dtype)
        return ForwardOutput({"replaced": F.binary_cross_entropy_with_logits(logits, labels)}, {})

    def loss_weights(self, progress: float) -> dict[str, float]:
        """One term, with weight 1."""
        return {"replaced": 1.0}

    def loss_denominators(self, batch: Arrays) -> dict[str, int]:
        """The tokens that are not padding."""
        return {"replaced": int(batch["mask"].sum())}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Three forward passes' worth: the encoder and the linear map over all positions."""
        rows, length = batch["ids"].shape
        head = flops.product(rows * length, encoder.config.hidden, 1)
        return flops.TRAINING * (flops.forward(encoder.config, rows, length) + head)


OBJECTIVE = Replaced

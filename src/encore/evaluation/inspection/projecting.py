"""A representation's logits over the vocabulary (BoW, Eq. 11): through BERT's vocabulary head, or its embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from encore.models import checkpoint
from encore.models.heads import MlmHead


@dataclass(frozen=True)
class Projection:
    """``head`` over ``embeddings`` [V, H]; where there is no head, the product with the embeddings alone."""

    embeddings: Tensor
    head: MlmHead | None

    @property
    def name(self) -> str:
        """``head`` or ``embeddings``: what the representation is multiplied with."""
        return "head" if self.head is not None else "embeddings"

    @torch.no_grad()
    def __call__(self, vectors: Tensor) -> Tensor:
        """[B, H] -> logits [B, V]."""
        if self.head is None:
            return vectors @ self.embeddings.T
        logits: Tensor = self.head(vectors, self.embeddings)
        return logits


def projection(model: Path, device: torch.device) -> Projection:
    """The vocabulary head of a model folder with its word embeddings; without a whole one, these alone."""
    encoder = checkpoint.load_encoder(model)
    heads = nn.ModuleDict({"mlm": MlmHead(encoder.config)})
    whole = set(checkpoint.restore_heads(heads, model)) == set(heads.state_dict())
    head = heads["mlm"].to(device).eval() if whole else None
    return Projection(encoder.word_embeddings.detach().to(device), head)  # type: ignore[arg-type]

"""Scores of (query, passage) pairs by a trained model of any kind: what rerankers and teachers are made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.scoring.resume import Report, ScoreState, no_report
from encore.models import checkpoint, embed

if TYPE_CHECKING:
    import torch


class Scorer(Protocol):
    """A model over the texts of a token store."""

    def to(self, device: torch.device) -> Self:
        """Move it; it begins on the CPU."""
        ...

    def score(
        self, queries: np.ndarray, passages: np.ndarray, report: Report = no_report, state: ScoreState | None = None
    ) -> np.ndarray:
        """Scores float32 [n] of n pairs, given as rows of the store; equal input gives equal bytes on one device.

        What ``state`` has is not scored again.
        """
        ...


def open_scorer(model: Path, store: TokenStore) -> Scorer:
    """Open a model folder by what it says of itself: a vector a text, late interaction, or a cross-encoder.

    Raises:
        EncoreError: the store's ids are those of another vocabulary, or the folder is damaged.
    """
    from encore.finetuning.scoring.cross_encoder import CrossEncoderScorer
    from encore.finetuning.scoring.late_interaction import LateInteractionScorer
    from encore.finetuning.scoring.vector import VectorScorer

    kinds: dict[str, Callable[..., Scorer]] = {
        "vector": VectorScorer,
        "late-interaction": LateInteractionScorer,
        "cross-encoder": CrossEncoderScorer,
    }
    use, encoder = checkpoint.load_use(model), embed.load_for_tokens(model, store).eval()
    if use.scorer.get("kind") not in kinds:
        raise EncoreError(f"{model} scores by {use.scorer.get('kind')!r}, which is unknown; make the model again")
    return kinds[use.scorer["kind"]](encoder, checkpoint.load_heads(model), use, store)

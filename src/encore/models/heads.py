"""Modules besides the encoder: heads that objectives train and fine-tuning drops, and the projector of vectors."""

from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encore.models.config import EncoderConfig, Projector

STANDARD_DEVIATION = 0.02  # of BERT's initial weights
M = TypeVar("M", bound=nn.Module)


class Transform(nn.Module):
    """BERT's dense layer, GELU and LayerNorm in front of the vocabulary."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.hidden)
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=config.epsilon)

    def forward(self, states: Tensor) -> Tensor:
        """States [..., H] -> [..., H]."""
        normed: Tensor = self.LayerNorm(F.gelu(self.dense(states)))
        return normed


class MlmHead(nn.Module):
    """BERT's masked-language-model head (Devlin et al., 2019), parameters as in Hugging Face's ``cls.predictions``.

    The word embeddings are an argument, not a parameter: they stay the encoder's own and are saved once. The bias
    starts at 0; a start that has counted its corpus replaces it by the log-unigram (``start.py``).
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.transform = Transform(config)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))
        initialise(self)

    def forward(self, states: Tensor, word_embeddings: Tensor) -> Tensor:
        """Logits [N, V] for states [N, H] and word embeddings [V, H].

        States are gathered by ``at`` before they come here, since the head costs more than a small encoder.
        """
        return F.linear(self.transform(states), word_embeddings, self.bias)


class WordDecoder(nn.Module):
    """CPDAE's decoder: BERT's transform of a representation, then a logit for every piece by separate weights.

    The output's bias starts where few pieces are expected, since a text has few of them (``bias``).
    """

    def __init__(self, config: EncoderConfig, bias: float) -> None:
        super().__init__()
        self.transform = Transform(config)
        self.output = nn.Linear(config.hidden, config.vocabulary)
        initialise(self)
        nn.init.constant_(self.output.bias, bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits [N, V] for pooled vectors [N, H]."""
        logits: Tensor = self.output(self.transform(vectors))
        return logits


def at(hidden: Tensor, positions: Tensor) -> Tensor:
    """States [N, H] at some places of a batch [B, L, H]; ``positions`` int64 [N] are row * L + column."""
    return hidden.flatten(0, 1).index_select(0, positions)


def initialise(module: M) -> M:
    """Draw all weights as BERT does: normal with deviation 0.02, biases 0, LayerNorm 1 and 0, padding 0."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=STANDARD_DEVIATION)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.Embedding) and part.padding_idx is not None:
            nn.init.zeros_(part.weight.data[part.padding_idx])
    return module


def projector(kind: Projector, hidden: int) -> nn.Module:
    """A map [*, H] -> [*, H]. GELU and the hidden size are ours, the paper says "non-linear"."""
    match kind:
        case "nonlinear":
            return nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, hidden))
        case "linear":
            return nn.Linear(hidden, hidden)
        case "none":
            return nn.Identity()

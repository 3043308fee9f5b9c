"""SimLM's modules besides the encoder: a frozen generator of replaced pieces, and a decoder of the last layers."""

from copy import deepcopy

import torch
from torch import Tensor, nn

from encore.models.decoders import with_bottleneck
from encore.models.encoder import Encoder
from encore.models.heads import MlmHead, at
from encore.models.transfer import to_device

AT_ONCE = 1 << 21  # probabilities in memory; with those of a whole batch a CPU took five times as long


class Generator(nn.Module):
    """A masked language model that is not trained and has no dropout: the encoder as it is when training starts."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.head = deepcopy(encoder), MlmHead(encoder.config)
        self.requires_grad_(False)

    def train(self, mode: bool = True) -> "Generator":
        """Stay in evaluation mode."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, ids: Tensor, mask: Tensor, positions: Tensor, chance: Tensor) -> Tensor:
        """Draw a piece for each masked position from what the model predicts there.

        Args:
            ids: int64 [B, L], the masked texts.
            mask: bool [B, L], true at real tokens.
            positions: [M] int64, the masked positions in the flattened [B * L].
            chance: [M] float64 in [0, 1), what each draw depends on.

        Returns:
            int64 [B, L], the texts with the pieces in place.
        """
        logits = self.head(at(self.encoder(ids, mask), positions), self.encoder.word_embeddings)
        rows = max(1, AT_ONCE // logits.shape[1])
        drawn = torch.cat([_draw(*part) for part in zip(logits.split(rows), chance.split(rows), strict=True)])
        return ids.flatten().index_copy(0, positions, drawn).view_as(ids)


def _draw(logits: Tensor, chance: Tensor) -> Tensor:
    """A piece for each row of logits [M, V], int64 [M]: the first with cumulative probability above ``chance`` [M]."""
    sums = logits.double().softmax(dim=-1).cumsum(dim=-1)
    drawn = torch.searchsorted(sums, (chance * sums[:, -1])[:, None], right=True).squeeze(1)
    return drawn.clamp(max=logits.shape[1] - 1)


class LastLayers(nn.Module):
    """A decoder that starts as a copy of the encoder's last layers, over ``[h, emb(t)_1, ...]``."""

    def __init__(self, encoder: Encoder, layers: int) -> None:
        super().__init__()
        self.layer = nn.ModuleList(deepcopy(layer) for layer in encoder.encoder.layer[-layers:])

    def forward(self, h: Tensor, embedded: Tensor, mask: Tensor) -> Tensor:
        """h [B, H], embedded text [B, L, H], mask bool [B, L], true at real tokens -> [B, L, H]."""
        states, seen = with_bottleneck(h, embedded), to_device(mask, h.device)[:, None, None, :]
        for layer in self.layer:
            states = layer(states, states, seen)
        return states

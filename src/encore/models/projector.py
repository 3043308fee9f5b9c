"""The map between a text's pooled vector and what is contrasted: COSTA's g (SIGIR'22, Eq. 5 and Table 6)."""

from __future__ import annotations

from torch import nn

from encore.models.config import Projector


def projector(kind: Projector, hidden: int) -> nn.Module:
    """A map [*, H] -> [*, H]. GELU and the hidden size are ours, the paper says "non-linear"."""
    match kind:
        case "nonlinear":
            return nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, hidden))
        case "linear":
            return nn.Linear(hidden, hidden)
        case "none":
            return nn.Identity()

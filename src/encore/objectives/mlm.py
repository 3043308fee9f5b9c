"""Masked language modelling (Devlin et al. 2019), the further pre-training of the two-tower and BoW papers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from encore.objectives.base import ForwardOutput
from encore.objectives.parts.masked_texts import MaskedTexts, MaskingFields

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder


class Mlm(MaskedTexts[MaskingFields]):
    """``loss = -mean log p(masked piece | masked text)``; 15 % of the tokens, 80/10/10."""

    Fields = MaskingFields

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss over masked pieces."""
        hidden = encoder(batch["ids"], batch["mask"])
        return ForwardOutput({"mlm": self.masked_lm(encoder, heads, hidden, batch)}, {})


OBJECTIVE = Mlm

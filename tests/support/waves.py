"""Weights and inputs that look random but are the same anywhere, for numbers that released code computed once."""

import math
import zlib
from typing import Any

import torch
from torch import Tensor, nn

from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from tests.support import small_store
from tests.support.small_objective import make
from tests.support.whole_loss import whole_loss

SHAPE = EncoderConfig(vocabulary=11, hidden=16, heads=4, intermediate=64, max_length=8, dropout=0.0, layers=2)
MASKED = torch.tensor([[2, 5, 6, 4, 8, 3], [2, 4, 9, 10, 3, 0], [2, 7, 4, 3, 0, 0], [2, 4, 5, 3, 0, 0]])
TEXT = torch.tensor([[2, 5, 6, 4, 8, 3], [2, 4, 9, 10, 3, 0], [2, 7, 5, 3, 0, 0], [2, 6, 5, 3, 0, 0]])
INNER = torch.tensor([1, 2, 3, 4, 7, 8, 9, 13, 14, 19, 20])  # all but [CLS], [SEP] and padding
READ = {
    "ids": MASKED,
    "mask": MASKED != 0,
    "masked": torch.tensor([3, 7, 14, 19]),
    "labels": torch.tensor([7, 6, 10, 5]),
}
REBUILT = {"decoded": INNER, "decoded_labels": TEXT.flatten()[INNER]}


def wave(*size: int, key: str) -> Tensor:
    """float64 of this size, in [-1, 1]."""
    places = torch.arange(math.prod(size), dtype=torch.float64)
    return torch.sin(0.7 * places + zlib.crc32(key.encode()) % 1000).reshape(size)


def filled(module: nn.Module) -> Any:
    """A module in float64 with such weights, by their names."""
    for name, parameter in module.named_parameters():
        one = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
        parameter.data = 0.3 * wave(*parameter.shape, key=name) + one
    return module.double()


def loss_and_slope(name: str, batch: dict[str, Tensor], texts: Any = ([[[20, 21, 22]]],), **fields: Any) -> list[float]:
    """An objective's loss of a batch, and how it changes as the word embeddings move in a direction."""
    objective, model = make(name, small_store.store(list(texts)), **fields), Encoder(SHAPE)
    heads = filled(objective.heads(model))
    loss, words = whole_loss(objective, filled(model), heads, batch)["loss"], model.embeddings.word_embeddings.weight
    (gradient,) = torch.autograd.grad(loss, words)
    return [loss.item(), (gradient * wave(*words.shape, key="direction")).sum().item()]

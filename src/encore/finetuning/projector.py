"""Fine-tuning with the projector of pre-training (COSTA, Table 6), which then belongs to the model."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from encore.errors import EncoreError
from encore.models.config import Projector
from encore.models.encoder import Encoder
from encore.models.projector import projector
from encore.training.randomness import number

NAME = "projector."  # how the parameters of a pre-trained one begin


def project(encoder: Encoder, kind: Projector, heads: Mapping[str, Tensor], seed: int) -> None:
    """Give each tower of an encoder a projector, unless it has that one already or none is asked for.

    Args:
        heads: what was trained besides the encoder; a projector of this kind among them gives the weights, without one
            they are drawn from the seed.

    Raises:
        EncoreError: the encoder has a projector of another kind.
    """
    present = encoder.config.projector
    if kind in ("none", present):
        return
    if present != "none":
        raise EncoreError(
            f"the model has a {present} projector, the step wants a {kind} one; write `projector: {present}`"
        )
    torch.manual_seed(number(seed, "projector"))
    made = projector(kind, encoder.config.hidden)
    trained = {name.removeprefix(NAME): tensor for name, tensor in heads.items() if name.startswith(NAME)}
    if _shapes(trained) == _shapes(made.state_dict()):
        made.load_state_dict(trained)
    for tower in {encoder, encoder.query_tower}:
        tower.projector = copy.deepcopy(made)
        tower.config = replace(tower.config, projector=kind)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}

"""The modules that a scorer has besides its encoder, from the heads of a model folder."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from encore.errors import EncoreError


def with_weights(modules: nn.ModuleDict, heads: Mapping[str, Tensor]) -> nn.ModuleDict:
    """Give modules the weights of the heads that are named as theirs.

    Raises:
        EncoreError: one is missing or of another shape.
    """
    own = modules.state_dict()
    for name, tensor in own.items():
        if name not in heads or heads[name].shape != tensor.shape:
            raise EncoreError(f"the model has no {name!r} of shape {tuple(tensor.shape)}; make it again")
    modules.load_state_dict({name: heads[name] for name in own})
    return modules.eval()

"""AdamW (Loshchilov and Hutter 2019), decaying matrices only.

It runs the kernel of ``torch.optim.AdamW(fused=True)`` and ends with the same bytes. Making that class imports torch's
compiler, about a second for each of many short jobs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class AdamW:
    """AdamW for the parameters of a model that require a gradient.

    Moments have the shape and name of their parameter; one that has had no gradient yet has none and stays as it is.
    """

    def __init__(self, model: nn.Module, weight_decay: float) -> None:
        self.parameters = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self.weight_decay = weight_decay
        self.state: dict[str, dict[str, Tensor]] = {}

    def decay(self, name: str) -> float:
        """Matrices decay; biases and LayerNorm's vectors do not."""
        return self.weight_decay if self.parameters[name].ndim > 1 else 0.0

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move all parameters that have a gradient, at this learning rate (Loshchilov and Hutter 2019, Algorithm 2)."""
        groups: dict[float, list[str]] = {}
        for name, parameter in self.parameters.items():
            if parameter.grad is not None:
                groups.setdefault(self.decay(name), []).append(name)
        for weight_decay, names in groups.items():
            self._move(names, weight_decay, rate)

    def _move(self, names: list[str], weight_decay: float, rate: float) -> None:
        parameters: list[Tensor] = [self.parameters[name] for name in names]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        moments = [self.state.setdefault(name, _moments(self.parameters[name])) for name in names]
        first, second, steps = ([one[part] for one in moments] for part in ("first", "second", "steps"))
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            parameters,
            gradients,
            first,
            second,
            [],
            steps,
            lr=rate,
            beta1=BETAS[0],
            beta2=BETAS[1],
            weight_decay=weight_decay,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def state_dict(self) -> dict[str, Any]:
        """The moments by the name of the parameter, as a checkpoint holds them."""
        return self.state

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take moments from a checkpoint, to the parameters' device."""
        self.state = {
            name: {part: value.to(self.parameters[name].device, copy=True) for part, value in moments.items()}
            for name, moments in saved.items()
        }


def _moments(parameter: nn.Parameter) -> dict[str, Tensor]:
    steps = torch.zeros((), dtype=torch.float32, device=parameter.device)
    return {"first": torch.zeros_like(parameter), "second": torch.zeros_like(parameter), "steps": steps}

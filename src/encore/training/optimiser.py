"""AdamW (Loshchilov and Hutter 2019), decaying matrices only.

The step is torch's own function, which ``torch.optim.AdamW(fused=True)`` calls too, so the bytes are the same. Making
that class imports torch's compiler, more than a second for each of many short jobs (docs/design.md).
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class AdamW:
    """AdamW for the parameters of a model that require a gradient, which are on their device already.

    Moments have the shape and name of their parameter; one that has no gradient stays as it is.
    """

    def __init__(self, model: nn.Module, weight_decay: float) -> None:
        self.parameters = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self.weight_decay = weight_decay
        self.state = {
            name: {
                "first": torch.zeros_like(parameter),
                "second": torch.zeros_like(parameter),
                "steps": torch.zeros((), dtype=torch.float32, device=parameter.device),
            }
            for name, parameter in self.parameters.items()
        }

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
        groups: dict[float, list[tuple[Tensor, Tensor, dict[str, Tensor]]]] = {}
        for name, parameter in self.parameters.items():
            if parameter.grad is not None:
                groups.setdefault(self.decay(name), []).append((parameter, parameter.grad, self.state[name]))
        for weight_decay, group in groups.items():
            adamw(
                [parameter for parameter, _, _ in group],
                [gradient for _, gradient, _ in group],
                exp_avgs=[moments["first"] for _, _, moments in group],
                exp_avg_sqs=[moments["second"] for _, _, moments in group],
                max_exp_avg_sqs=[],
                state_steps=[moments["steps"] for _, _, moments in group],
                fused=True,
                amsgrad=False,
                maximize=False,
                beta1=BETAS[0],
                beta2=BETAS[1],
                lr=rate,
                weight_decay=weight_decay,
                eps=EPSILON,
            )

    def state_dict(self) -> dict[str, Any]:
        """The moments by the name of the parameter, as a checkpoint holds them."""
        return self.state

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take moments from a checkpoint, to the parameters' device."""
        for name, moments in saved.items():
            for part, value in moments.items():
                self.state[name][part].copy_(value)

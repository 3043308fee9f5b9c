"""The calls of a compiled layer, by torch's own plan of what Triton would fuse, without Triton and without compiling.

Texts are packed on a processor. Tensors are joined by one call, as on a GPU; a processor takes one for each. A GPU may
take two calls for a sum over many rows, which is one here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

from encore.models import encoder as encoders
from encore.models import packing
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.packing import Packing
from encore.training import compiled
from encore.training.compiled import Compiled
from encore.training.half_precision import Copies
from tests.support.opaque_attention import opaque

NO_CALL = ("NopKernelSchedulerNode", "MultiOutput")


def of_layer(config: EncoderConfig) -> list[int]:
    """Calls of the forward and of the backward pass of a layer in bf16, with copies of its weights."""
    model = Encoder(config).train()
    mask = torch.arange(20) < torch.tensor([[20], [17]])
    copies, attention = Copies(model), opaque()
    copies.refresh()

    def choose(*_: Any) -> Any:  # no mock, which torch's compiler cannot read
        return attention

    with (
        mock.patch.object(encoders, "layout", Packing),
        mock.patch.object(packing, "attention_for", choose),
        mock.patch.object(compiled, "lacks_to_compile", str),
        _planned() as found,
        Compiled(model).in_place(),
        copies.in_place() as give_gradients,
        torch.autocast("cpu", torch.bfloat16),
    ):
        model(mask.long(), mask).square().sum().backward()
        give_gradients()
    return found


@contextlib.contextmanager
def _planned() -> Iterator[list[int]]:
    """Inside, what torch compiles does nothing; gives the calls of each graph."""
    from torch._inductor import config
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.graph import GraphLowering

    plan, found = GraphLowering._update_scheduler, list[int]()

    def counting(self: Any) -> None:
        with config.patch(cpu_backend="triton"):
            plan(self)
        kinds = [{type(node).__name__, type(node.node).__name__} for node in self.scheduler.nodes]
        found.append(sum(kind.isdisjoint(NO_CALL) for kind in kinds))
        plan(self)  # for the processor, in whose words the rest is written

    torch.compiler.reset()
    with (
        config.patch({"fx_graph_cache": False, "cpp.simdlen": 1, "force_pointwise_cat": True}),
        mock.patch.object(AsyncCompile, "cpp_pybinding", return_value=lambda *_: None),
        mock.patch.object(GraphLowering, "_update_scheduler", counting),
    ):
        yield found
    torch.compiler.reset()

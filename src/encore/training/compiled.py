"""Layers that torch's compiler has fused: what is between products takes a few calls, and fewer bytes.

Each kind of layer is one graph for texts of any number and length. A layer whose sizes are 1, or that reads other
things (a mask, the first tokens alone), is another. Dropout is then drawn by other random numbers, which follow from
the step's seed as well, with a graph and without. What is measured between the steps is not compiled.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from encore.errors import EncoreError
from encore.storage.machine import lacks_to_compile
from encore.training import vocabulary_loss
from encore.training.half_precision import BLOCKS

STEPS = 2000  # with fewer, a training ends sooner without the minute that compiling takes
GRAPHS = 32  # of one kind of layer; more are an error, not slow in silence


class Compiled:
    """The layers of a model, and the vocabulary's loss of a block of logits, each compiled when it is first called."""

    def __init__(self, model: nn.Module, deterministic: bool = False, backend: str = "inductor") -> None:
        """``deterministic``: no kernel is chosen by its time."""
        if lacking := lacks_to_compile():
            raise EncoreError(
                f"`numerics: compiled` needs {lacking}, which this machine has not; install it, or set it to false"
            )
        how: dict[str, Any] = {"dynamic": True, "fullgraph": True, "backend": backend, "recompile_limit": GRAPHS}
        how |= {"options": {"deterministic": True}} if deterministic else {}
        owners: list[tuple[Any, str]] = [
            *((block, "forward") for block in model.modules() if isinstance(block, BLOCKS)),
            (vocabulary_loss, "of_logits"),
        ]
        self._pieces = [(owner, name, torch.compile(getattr(owner, name), **how)) for owner, name in owners]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, models compute with what is compiled."""
        plain = [(owner, name, getattr(owner, name)) for owner, name, _ in self._pieces]
        for owner, name, piece in self._pieces:
            setattr(owner, name, piece)
        try:
            yield
        finally:
            for owner, name, piece in plain:
                setattr(owner, name, piece)

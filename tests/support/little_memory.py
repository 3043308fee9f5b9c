"""A function that runs out of memory above some texts at a time, as a GPU's does."""

from typing import Any

import pytest
import torch


def in_little_memory(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, most: int, argument: int = 1) -> list[int]:
    """Let ``owner.name`` fail above so many texts, which its ``argument`` holds; the sizes that it is called with."""
    whole, sizes = getattr(owner, name), list[int]()

    def narrow(*given: Any, **named: Any) -> Any:
        sizes.append(len(given[argument]))
        if sizes[-1] > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(*given, **named)

    monkeypatch.setattr(owner, name, narrow)
    return sizes

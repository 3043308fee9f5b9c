"""Arithmetic that must not be done in half precision."""

from torch import Tensor, float64


def at_least_float32(tensor: Tensor) -> Tensor:
    """A tensor [...] in single precision at least.

    bf16 could not tell close scores apart, nor sum over a whole vocabulary.
    """
    return tensor if tensor.dtype == float64 else tensor.float()

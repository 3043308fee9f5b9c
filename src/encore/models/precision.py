"""Arithmetic that must not be done in half precision."""

import torch
from torch import Tensor, float64


def at_least_float32(tensor: Tensor) -> Tensor:
    """A tensor [...] in single precision at least.

    bf16 could not tell close scores apart, nor sum over a whole vocabulary.
    """
    return tensor if tensor.dtype == float64 else tensor.float()


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add ``left`` [N, K] @ ``right`` [K, M] to ``total`` [N, M], which may be of a wider type.

    A GPU does it in one call, and does not round the product to half precision.
    """
    if total.is_cuda and total.dtype != left.dtype:
        torch.addmm(total, left, right, out_dtype=total.dtype, out=total)
    else:
        total += left @ right

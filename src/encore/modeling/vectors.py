"""Vectors of many texts: length-sorted batches, whose bounds are a function of the given texts alone."""

from __future__ import annotations

import numpy as np
import torch

from encore.errors import EncoreError
from encore.modeling import texts
from encore.modeling.encoder import Encoder
from encore.tokens import Sequences

BATCH = {"cpu": 16, "cuda": 256}  # texts in one forward pass, constants since rounding depends on them; 16 fit a cache


@torch.inference_mode()
def embed(encoder: Encoder, sequences: Sequences, rows: np.ndarray, length: int) -> np.ndarray:
    """Embed the texts of ``rows``, each cut to ``length`` tokens, special ones included.

    Returns:
        float32 [len(rows), dimension], in the order of ``rows``.

    Raises:
        EncoreError: a vector is not finite.
    """
    device = next(encoder.parameters()).device
    found = np.empty((len(rows), encoder.dimension), dtype=np.float32)
    order = np.argsort(sequences.lengths[rows], kind="stable")
    size = BATCH[device.type]
    for start in range(0, len(rows), size):
        part = order[start : start + size]
        ids, mask = texts.pad([sequences[row] for row in rows[part]], length, encoder.shape)
        vectors = encoder.embed(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device))
        found[part] = vectors.float().cpu().numpy()
    if not np.isfinite(found).all():
        raise EncoreError("the model gives vectors that are not finite; its training diverged, lower the learning rate")
    return found

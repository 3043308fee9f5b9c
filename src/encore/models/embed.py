"""Vectors of many texts: length-sorted batches, whose bounds are a function of the given texts alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from encore.data.tokens import Sequences, TokenStore
from encore.errors import EncoreError
from encore.models import checkpoint, inputs
from encore.models.encoder import Encoder

BATCH = {"cpu": 16, "cuda": 256}  # texts in one forward pass, constants since rounding depends on them; 16 fit a cache


def load_for_tokens(model: Path, store: TokenStore) -> Encoder:
    """Open a model for the texts of a token store.

    Raises:
        EncoreError: the store's ids are those of another vocabulary, or the model folder is damaged.
    """
    encoder = checkpoint.load_encoder(model)
    if encoder.config.vocabulary != store.vocabulary:
        raise EncoreError(
            f"{store.folder} and {model} have different vocabularies: the tokens are ids of {store.vocabulary} pieces, "
            f"the model knows {encoder.config.vocabulary}; make the tokens again with the model's tokenizer"
        )
    return encoder


@torch.no_grad()  # inference mode would forbid packed texts
def embed_texts(encoder: Encoder, sequences: Sequences, rows: np.ndarray, length: int) -> np.ndarray:
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
        ids, mask = inputs.read_inputs(sequences, rows[part], length, encoder.config)
        vectors = encoder.embed(torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device))
        found[part] = vectors.float().cpu().numpy()
    if not np.isfinite(found).all():
        raise EncoreError("the model gives vectors that are not finite; its training diverged, lower the learning rate")
    return found

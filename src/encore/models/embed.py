"""Vectors of many texts: length-sorted batches, whose bounds are a function of the given texts alone.

A GPU is given the texts of the next block before the vectors of the last one are waited for, and nothing else waits.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from encore.data.tokens import Sequences, TokenStore
from encore.errors import EncoreError
from encore.models import checkpoint, inputs
from encore.models.encoder import Encoder
from encore.models.packing import to_device

# Of one forward pass, constants since rounding depends on them; 16 texts fit a processor's cache.
BATCH = {"cpu": 16, "cuda": 256}  # pairs of texts, or texts of which each token has a vector
TEXTS, TOKENS = {"cpu": 16, "cuda": 1024}, {"cpu": sys.maxsize, "cuda": 2**15}  # at most, padding counted

BLOCK = 1024  # texts whose vectors are copied from a GPU at once, a multiple of TEXTS
AHEAD = {"cpu": 0, "cuda": 1}  # blocks that are begun before one is waited for


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


def embed_texts(encoder: Encoder, sequences: Sequences, rows: np.ndarray, length: int) -> np.ndarray:
    """Embed the texts of ``rows``, each cut to ``length`` tokens, special ones included.

    Returns:
        float32 [len(rows), dimension], in the order of ``rows``.

    Raises:
        EncoreError: a vector is not finite.
    """
    found = np.empty((len(rows), encoder.dimension), dtype=np.float32)
    order = np.argsort(sequences.lengths[rows], kind="stable")
    places = [order[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    blocks = embed_blocks(encoder, sequences, (rows[part] for part in places), length)
    for part, vectors in zip(places, blocks, strict=True):
        found[part] = vectors
    return found


def embed_blocks(
    encoder: Encoder, sequences: Sequences, blocks: Iterable[np.ndarray], length: int
) -> Iterator[np.ndarray]:
    """Embed the texts of some blocks of rows; the vectors of a block depend on no other.

    Args:
        blocks: int64 [at most ``BLOCK``] each.
        length: tokens that a text is cut to, special ones included.

    Returns:
        float32 [rows of the block, dimension] for each block.

    Raises:
        EncoreError: a vector is not finite.
    """
    ahead = AHEAD[next(encoder.parameters()).device.type]
    begun: deque[_Begun] = deque()
    for rows in blocks:
        begun.append(_begin(encoder, sequences, rows, length))
        if len(begun) > ahead:
            yield begun.popleft().finished()
    while begun:
        yield begun.popleft().finished()


def batches(lengths: np.ndarray, device: str) -> Iterator[slice]:
    """Cut texts into batches of at most ``TEXTS`` texts and, but for a text alone, at most ``TOKENS`` tokens.

    Args:
        lengths: int64 [n], the tokens of each text, ascending.
        device: its type.
    """
    start = 0
    while start < len(lengths):
        longest = lengths[start : start + TEXTS[device]]
        tokens = longest * np.arange(1, len(longest) + 1)  # of the batch that ends with this text
        stop = start + max(1, int(np.searchsorted(tokens, TOKENS[device], side="right")))
        yield slice(start, stop)
        start = stop


class _Begun(NamedTuple):
    """A block that the device may still be working on."""

    vectors: Tensor  # float32 [n, D] on the host, once they are copied
    order: np.ndarray  # int64 [n], the row of each in the block
    copied: torch.cuda.Event | None  # None on a CPU

    def finished(self) -> np.ndarray:
        """The vectors in the block's order, float32 [n, D]; waits for them."""
        if self.copied is not None:
            self.copied.synchronize()
        found = np.empty(self.vectors.shape, dtype=np.float32)
        found[self.order] = self.vectors.numpy()
        if not np.isfinite(found).all():
            raise EncoreError(
                "the model gives vectors that are not finite; its training diverged, lower the learning rate"
            )
        return found


@torch.no_grad()  # inference mode would forbid packed texts
def _begin(encoder: Encoder, sequences: Sequences, rows: np.ndarray, length: int) -> _Begun:
    device = next(encoder.parameters()).device
    order = np.argsort(sequences.lengths[rows], kind="stable")
    lengths = np.minimum(sequences.lengths[rows[order]] + 2, length)  # with [CLS] and [SEP]
    found = []
    for part in batches(lengths, device.type):
        arrays = inputs.read_inputs(sequences, rows[order[part]], length, encoder.config)
        ids, mask = map(torch.from_numpy, arrays)
        found.append(encoder.embed(to_device(ids, device), mask).float())
    vectors = torch.cat(found).to("cpu", non_blocking=True)
    if device.type == "cpu":
        return _Begun(vectors, order, None)
    copied = torch.cuda.Event()
    copied.record()
    return _Begun(vectors, order, copied)

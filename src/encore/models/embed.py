"""Vectors of many texts: length-sorted batches, whose bounds are a function of only the given texts.

A GPU is given the texts of the next block before the vectors of the last one are waited for, and nothing else waits.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from encore.data.tokens import Sequences, TokenStore
from encore.errors import EncoreError
from encore.models import checkpoint, inputs
from encore.models.encoder import Encoder
from encore.models.memory import MicroBatch, PartSize
from encore.models.transfer import ToHost, one_ahead, to_device

T = TypeVar("T")
# Of one forward pass, constants since rounding depends on them; 16 texts fit a processor's cache.
PASS = {"cpu": PartSize(16), "cuda": PartSize(1024, 2**15)}
BLOCK = 1024  # texts whose vectors are copied from a GPU at once


def load_for_tokens(model: Path, store: TokenStore) -> Encoder:
    """Open a model for the texts of a token store."""
    encoder = checkpoint.load_encoder(model)
    if encoder.config.vocabulary != store.vocabulary:
        raise EncoreError(
            f"{store.folder} and {model} have different vocabularies: the tokens are ids of {store.vocabulary} pieces, "
            f"the model knows {encoder.config.vocabulary}; make the tokens again with the model's tokenizer"
        )
    return encoder


def embed_texts(
    encoder: Encoder, sequences: Sequences, rows: np.ndarray, length: int, at_once: MicroBatch | None = None
) -> np.ndarray:
    """Embed the texts of ``rows``, each cut to ``length`` tokens, special ones included; others as in ``embed_blocks``.

    Returns:
        float32 [len(rows), dimension], in the order of ``rows``.
    """
    found = np.empty((len(rows), encoder.dimension), dtype=np.float32)
    order = np.argsort(sequences.lengths_of(rows), kind="stable")
    places = [order[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    blocks = embed_blocks(encoder, sequences, (rows[part] for part in places), length, at_once)
    for part, vectors in zip(places, blocks, strict=True):
        found[part] = vectors
    return found


def embed_blocks(
    encoder: Encoder,
    sequences: Sequences,
    blocks: Iterable[np.ndarray],
    length: int,
    at_once: MicroBatch | None = None,
) -> Iterator[np.ndarray]:
    """Embed the texts of some blocks of rows; the vectors of a block depend on no other, if memory does not run out.

    Args:
        blocks: int64 [at most ``BLOCK``] each.
        length: tokens that a text is cut to, special ones included.
        at_once: of all passes of a model, so that what has run out of memory once does not again.

    Returns:
        float32 [rows of the block, dimension] for each block.
    """
    device = next(encoder.parameters()).device
    at_once = at_once or MicroBatch(PASS[device.type])
    for order, vectors in one_ahead((_begin(encoder, sequences, rows, length, at_once) for rows in blocks), device):
        found = np.empty((len(order), encoder.dimension), dtype=np.float32)
        found[order] = vectors.numpy()
        if not np.isfinite(found).all():
            raise EncoreError(
                "the model gives vectors that are not finite; its training diverged, lower the learning rate"
            )
        yield found


def in_passes(
    work: Callable[[np.ndarray], T], sequences: Sequences, rows: np.ndarray, length: int, at_once: MicroBatch
) -> tuple[np.ndarray, list[T]]:
    """Texts by length, as many at a time as ``at_once`` says, less where memory runs out.

    Args:
        work: what is done with some of the rows.
        length: tokens that a text is cut to, special ones included.

    Returns:
        The order of the rows, int64 [len(rows)], and what ``work`` gave for each pass, in this order.
    """
    order = np.argsort(sequences.lengths_of(rows), kind="stable")
    lengths = np.minimum(sequences.lengths_of(rows[order]) + 2, length)  # with [CLS] and [SEP]
    return order, at_once.each(lambda part: work(rows[order[part]]), lengths)


@torch.no_grad()  # inference mode would forbid packed texts
def _begin(
    encoder: Encoder, sequences: Sequences, rows: np.ndarray, length: int, at_once: MicroBatch
) -> tuple[np.ndarray, ToHost]:
    """The vectors of a block that the device may still be working on, and the row of each in the block."""
    device = next(encoder.parameters()).device

    def embedded(some: np.ndarray) -> Tensor:
        ids, mask = map(torch.from_numpy, inputs.read_inputs(sequences, some, length, encoder.config))
        return encoder.embed(to_device(ids, device), mask).float()

    order, found = in_passes(embedded, sequences, rows, length, at_once)
    return order, ToHost(torch.cat(found))

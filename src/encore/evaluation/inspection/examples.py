"""The texts that models are asked about, and their representations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from encore.data import vocabulary
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import inputs
from encore.models.encoder import Encoder
from encore.training.randomness import generator

TOGETHER = 16  # texts in one forward pass
TOKEN_DIGITS = 6  # of numbers in an inspection; beyond them processors disagree


@dataclass(frozen=True)
class GivenTexts:
    """Token sequences that are in no store."""

    sequences: list[np.ndarray]
    name: str = "passages"

    def __getitem__(self, index: int, /) -> np.ndarray:
        return self.sequences[index]


def example(spec: dict[str, Any], store: TokenStore) -> np.ndarray:
    """The pieces of the text to show: the given one, or the first passage of a random order that is of a fit length.

    Args:
        spec: ``text``; or ``shortest`` and ``longest`` in pieces, and ``sample``, which random order.

    Raises:
        EncoreError: no passage is of such a length, or the text has no piece.
    """
    if "text" in spec:
        tokenizer = vocabulary.load_tokenizer(store.tokenizer_folder)
        ids = np.array(tokenizer.encode(spec["text"], add_special_tokens=False).ids, dtype=np.int64)
        if not len(ids):
            raise EncoreError("the text of the figure has no word; write one")
        return ids
    lengths = store.passages.lengths
    fit = np.flatnonzero((lengths >= spec["shortest"]) & (lengths <= spec["longest"]))
    if not len(fit):
        raise EncoreError(
            f"no passage has {spec['shortest']} to {spec['longest']} pieces; change `shortest` and `longest`"
        )
    chosen = generator(spec["sample"], "example").permutation(len(fit))[0]
    return store.passages[int(fit[chosen])].astype(np.int64)


def sample(count: int, wanted: int, number: int) -> np.ndarray:
    """Rows of a random sample without replacement, ascending: a function of the three numbers alone."""
    return np.sort(generator(number, "texts").permutation(count)[:wanted])


@torch.no_grad()
def representations(
    encoder: Encoder, sequences: inputs.TokenSequences, rows: Iterable[int], length: int
) -> Iterator[Tensor]:
    """The pooled representation of each text, before any linear head, in batches [B, H], in the order of ``rows``."""
    device, waiting = next(encoder.parameters()).device, list(rows)
    for first in range(0, len(waiting), TOGETHER):
        read = inputs.read_inputs(sequences, waiting[first : first + TOGETHER], length, encoder.config)
        ids, mask = (torch.from_numpy(array).to(device) for array in read)
        yield encoder.representations(ids, mask).float()


def rounded(value: float) -> float:
    """A number as probes hold it."""
    return float(f"{value:.{TOKEN_DIGITS}g}")

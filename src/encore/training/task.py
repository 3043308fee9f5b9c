"""The interface between the training loop and its tasks: pre-training objectives and fine-tuning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from encore.training.randomness import epoch_order

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder

Arrays = dict[str, np.ndarray]


class ForwardOutput(NamedTuple):
    """The models' output for some examples of a batch.

    ``losses``: scalar terms by name, each a mean over these examples, or over what ``Task.loss_denominators`` counts.
    ``embeddings``: tensors [N, ...] by name with a row an example, in one order: vectors, and what ``batch_loss`` needs
    to know of each example (ids, masks). ``batch_loss`` is given those of the whole batch, from all parts and
    processes. A name's rows have the same shape in every part, so what is ragged is padded to a constant.
    """

    losses: dict[str, Tensor]
    embeddings: dict[str, Tensor]


class Task(ABC):
    """Examples, batches of them, and the loss of a batch.

    The loss is a weighted sum of named terms. Terms of single examples come from ``forward``; terms
    that need the whole batch, such as a contrast within it, from ``batch_loss``. The training loop can therefore work
    through a batch in parts, and on several processes, and end with the gradients of the whole.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Examples in one epoch."""

    def order(self, count: int, batch: int, seed: int, epoch: int) -> np.ndarray:
        """The batches of an epoch of ``count`` examples, as places among these, int64 [batches, batch]: by chance."""
        return epoch_order(count, batch, seed, epoch)

    @abstractmethod
    def example(self, index: int, rng: np.random.Generator) -> Any:
        """One example; all chance comes from ``rng``, which depends only on (seed, epoch, index)."""

    def sizes(self, indices: np.ndarray, chance: Callable[[int], np.random.Generator]) -> np.ndarray:
        """Tokens of the longest text of each example: those of like size share a batch, so that little is padding.

        Where examples are contrasted, sizes only order those of a batch. All processes that train together ask for
        those of a whole batch, and then make only their own examples; so this should need no text where lengths are
        known. The default is 0: sizes do not matter.

        Args:
            indices: int64 [n], numbers of examples.
            chance: what ``example`` is given for a number.

        Returns:
            int64 [n].
        """
        return np.zeros(len(indices), dtype=np.int64)

    def tokens(self, examples: list[Any], sizes: np.ndarray) -> np.ndarray:
        """Tokens that the models read of each example: what a part is bounded by once memory has run out.

        Args:
            examples: n, those of a process.
            sizes: what ``sizes`` says of them, [n]; also the default. A task whose batches are not of like sizes
                counts tokens here.

        Returns:
            int64 [n].
        """
        return sizes

    @abstractmethod
    def collate(self, examples: list[Any]) -> Arrays:
        """The arrays of a batch of B examples, padded to the longest of them: token ids as a rule [B, L]."""

    @abstractmethod
    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """Run the models on a batch or on a part of one.

        Args:
            encoder: the model that is kept.
            heads: the modules that are trained with it, by name.
            batch: what ``collate`` made of the examples, as tensors on the models' device; those with ``mask`` in
                their names (``mask``, ``query_mask_0``) on the host, where an encoder wants them (``to_device``).

        Returns:
            Scalar terms, and embeddings [N, ...] with a row for each of the N examples.
        """

    def batch_loss(self, embeddings: dict[str, Tensor]) -> dict[str, Tensor]:
        """Scalar terms by name of a whole batch; none by default.

        Args:
            embeddings: what ``forward`` gave for every example of the batch, by name: [B, ...].
        """
        return {}

    @abstractmethod
    def loss_weights(self, progress: float) -> dict[str, float]:
        """The weight of each term in the loss; terms without one are logged only.

        Args:
            progress: the share of the training that is done, from 0 to 1.
        """

    @property
    def has_contrast(self) -> bool:
        """True if a batch's examples are each other's negatives, so that a batch must be a random sample of all."""
        return type(self).batch_loss is not Task.batch_loss

    def loss_denominators(self, batch: Arrays) -> dict[str, int]:
        """Counts that terms of ``forward`` are means over, by term, if not over examples: masked positions."""
        return {}

    @abstractmethod
    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Floating-point operations of one training step on this batch (forward and backward), heads included.

        Read from the arrays' shapes, and from masks where contrasted texts are of unlike length.
        """


def part_numbers(batch: Mapping[str, Any], kind: str) -> range:
    """The numbers i of the parts ``<kind>_ids_<i>`` that a batch has."""
    return range(sum(name.startswith(f"{kind}_ids_") for name in batch))


def text_parts(
    batch: dict[str, Tensor], kind: str, names: tuple[str, ...] = ("ids", "mask")
) -> list[tuple[Tensor, ...]]:
    """``<kind>_<name>_<i>`` of each part i of a batch, [n, L] each."""
    return [tuple(batch[f"{kind}_{name}_{i}"] for name in names) for i in part_numbers(batch, kind)]


def weighted(terms: dict[str, Tensor], weights: dict[str, float]) -> Tensor:
    """The weighted sum of scalar terms, a scalar, in the order of the weights; terms without a weight do not count."""
    parts = [times(weight, terms[name]) for name, weight in weights.items() if name in terms]
    return reduce(add, parts) if parts else 0  # type: ignore[return-value]


def times(weight: float, term: Tensor) -> Tensor:
    """A scalar term times its weight, without a call of a GPU for a weight of 1."""
    return term if weight == 1 else weight * term

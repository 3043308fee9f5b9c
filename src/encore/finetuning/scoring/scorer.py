"""The base of scorers: their model, and scoring in parts, from which a killed run resumes.

A scorer's parts (blocks of passages, batches of pairs) are a function of the pairs and of the device. Finished parts
are skipped and the others are scored as they would have been, so on the same device the bytes are the same.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import embed
from encore.models.checkpoint import ModelUse
from encore.models.encoder import Encoder
from encore.models.memory import MicroBatch
from encore.models.transfer import ToHost, one_ahead
from encore.storage.files import digest
from encore.storage.sealed import SealedBlocks

PASSAGES = 16384  # of a block; a constant, since blocks decide which texts share a batch, and so the rounding
Report = Callable[[int], None]  # called with the number of pairs that are scored


def no_report(done: int) -> None:
    """Report nothing."""


class Scorer(ABC):
    """A model over the texts of a token store; on the CPU until it is moved."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, Tensor], use: ModelUse, store: TokenStore) -> None:
        """``heads`` are the tensors of the modules besides the encoder."""
        self.encoder, self.use, self.store = encoder, use, store
        self.modules = nn.ModuleDict()
        self.device, self.at_once = torch.device("cpu"), MicroBatch(embed.PASS["cpu"])

    def to(self, device: torch.device) -> Self:
        """Move the model to a device and return the scorer."""
        self.encoder.to(device)
        self.modules.to(device)
        self.device, self.at_once = device, MicroBatch(embed.PASS[device.type])
        return self

    @torch.no_grad()
    def score(
        self,
        queries: np.ndarray,
        passages: np.ndarray,
        report: Report = no_report,
        state: Path | None = None,
        spec: Any = None,
    ) -> np.ndarray:
        """Scores of pairs of rows of the store; equal input gives equal bytes on one device, if memory suffices.

        Args:
            queries, passages: int64 [n], the query and the passage of each pair.
            report: called with the number of pairs that are done.
            state: the folder of the scores that are done so far, from which a killed run resumes, perhaps on another
                device; they are not made again. Left for the caller to remove.
            spec: what is scored, and the bytes of the model that scores; scores of another spec or of other pairs are
                not resumed from.

        Returns:
            float32 [n].
        """
        order, found, done = self.order(queries, passages), np.empty(len(queries), dtype=np.float32), 0
        if state is not None:
            pairs = hashlib.sha256(np.stack([queries, passages])[:, order].astype("<i8").tobytes()).hexdigest()
            kept = SealedBlocks(state / "scores", digest([spec, pairs]))
            known = np.fromfile(kept.path, "<f4")
            done = len(known)
            found[order[:done]] = known
            if done:
                print(f"resuming after {done:,} of {len(queries):,} pairs", flush=True)
        left = order[done:]
        places = (left[part] for part in self.parts(passages[left]))
        for part, scores in one_ahead(
            ((each, self.begun(queries[each], passages[each])) for each in places), self.device
        ):
            found[part] = scores.numpy()
            done += len(part)
            if state is not None:
                kept.append(found[part].astype("<f4").data)
            report(done)
        return found

    def order(self, queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
        """The pairs in the order in which they are scored, int64 [n]: as they are given."""
        return np.arange(len(queries))

    def parts(self, passages: np.ndarray) -> Iterator[slice]:
        """Slices of the pairs in their order that are scored together; ``passages`` as in ``score``."""
        return passage_blocks(passages)

    @abstractmethod
    def begun(self, queries: np.ndarray, passages: np.ndarray) -> ToHost:
        """The scores of a part, float32 [n], which a GPU may still be working on; arguments as of ``score``."""


def passage_blocks(passages: np.ndarray, most: int = PASSAGES) -> Iterator[slice]:
    """Slices of the pairs, in their order, each with at most ``most`` different passages.

    What is computed once a passage then fits in memory.

    Args:
        passages: int64 [n], the passage of each pair.
    """
    seen: set[int] = set()
    first = 0
    for place, passage in enumerate(passages.tolist()):
        if passage not in seen and len(seen) == most:
            yield slice(first, place)
            seen, first = set(), place
        seen.add(passage)
    if first < len(passages):
        yield slice(first, len(passages))


def with_weights(modules: nn.ModuleDict, heads: Mapping[str, Tensor]) -> nn.ModuleDict:
    """Give modules the weights of the heads of the same names."""
    own = modules.state_dict()
    for name, tensor in own.items():
        if name not in heads or heads[name].shape != tensor.shape:
            raise EncoreError(f"the model has no {name!r} of shape {tuple(tensor.shape)}; make it again")
    modules.load_state_dict({name: heads[name] for name in own})
    return modules.eval()

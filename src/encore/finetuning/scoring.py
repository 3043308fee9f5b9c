"""Scores of (query, passage) pairs by a trained model of any kind: the basis of rerankers and teachers.

A killed run resumes: a scorer's parts (blocks of passages, batches of pairs) are a function of the pairs and of the
device. Finished parts are skipped and the others are scored as they would have been, so on the same device the bytes
are the same.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from encore.data.tokens import Sequences, TokenStore
from encore.errors import EncoreError
from encore.models import checkpoint, cross_encoder, embed, inputs, late_interaction
from encore.models.checkpoint import ModelUse
from encore.models.encoder import Encoder
from encore.models.memory import MicroBatch
from encore.models.transfer import ToHost, one_ahead, to_device
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


class VectorScorer(Scorer):
    """The inner product of a query's and a passage's vector (of length 1 where the model compares by cosine)."""

    def begun(self, queries: np.ndarray, passages: np.ndarray) -> ToHost:
        """Products on the host, of vectors that a GPU is not waited for one by one."""
        rows, own = np.unique(queries, return_inverse=True)
        query_vectors = self.queries(rows)[:, 0]
        rows, other = np.unique(passages, return_inverse=True)
        scores = np.einsum("nd,nd->n", query_vectors[own], self.passages(rows)[:, 0][other])
        return ToHost(torch.from_numpy(scores))

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of queries, rows of the store, float32 [n, 1, D]."""
        tower = self.encoder.query_tower
        return embed.embed_texts(tower, self.store.queries, rows, self.use.query_length, self.at_once)[:, None]

    def passages(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of passages, rows of the store, float32 [n, 1, D]."""
        return embed.embed_texts(self.encoder, self.store.passages, rows, self.use.length, self.at_once)[:, None]


TOGETHER = 256  # passages of one product with a query's tokens


@dataclass(frozen=True)
class TokenVectors:
    """The vectors of texts' tokens that count, on the model's device.

    ``vectors``: float32 [T, D], texts in any order, the tokens of each in theirs. ``starts``, ``lengths``: int64 [N],
    where those of a text begin, and how many they are.
    """

    vectors: Tensor
    starts: np.ndarray
    lengths: np.ndarray

    def __iter__(self) -> Iterator[np.ndarray]:
        """Those of each text [length, D]."""
        vectors = self.vectors.cpu().numpy()
        return (vectors[start : start + length] for start, length in zip(self.starts, self.lengths, strict=True))

    def padded(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Vectors [n, L, D] of some texts, and which are of a token: bool [n, L]."""
        lengths = self.lengths[rows]
        counted = np.arange(lengths.max(initial=0)) < lengths[:, None]
        places = np.where(counted, self.starts[rows][:, None] + np.arange(counted.shape[1]), 0)
        device = self.vectors.device
        where, real = (to_device(torch.from_numpy(each), device) for each in (places, counted))
        return self.vectors[where], real


class LateInteractionScorer(Scorer):
    """The sum over a query's tokens of the best inner product with a token of the passage (TCT-ColBERT, Eq. 6)."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, Tensor], use: ModelUse, store: TokenStore) -> None:
        super().__init__(encoder, heads, use, store)
        width = len(heads.get(f"{late_interaction.NAME}.weight", ()))
        self.modules = with_weights(late_interaction.token_head(encoder.config, width), heads)

    def passages(self, rows: np.ndarray) -> TokenVectors:
        """The token vectors of passages, rows of the store, in this order; of length 1 if the model was trained so."""
        return self._tokens(self.encoder, self.store.passages, rows, self.use.length)

    def queries(self, rows: np.ndarray) -> TokenVectors:
        """The token vectors of queries, rows of the store, in this order; of length 1 if the model was trained so."""
        return self._tokens(self.encoder.query_tower, self.store.queries, rows, self.use.query_length)

    def begun(self, queries: np.ndarray, passages: np.ndarray) -> ToHost:
        """A block's texts are embedded once; then each query is compared with its passages."""
        rows, own = np.unique(queries, return_inverse=True)
        asked = self.queries(rows)
        rows, other = np.unique(passages, return_inverse=True)
        known, places, scores = self.passages(rows), [], []
        for query, of_query in _grouped(own):
            one = asked.padded(np.array([query]))
            scores.append(late_interaction.max_sim(*one, *known.padded(other[of_query]))[0].float())
            places.append(of_query)
        back = to_device(torch.from_numpy(np.argsort(np.concatenate(places))), self.device)
        return ToHost(torch.cat(scores).index_select(0, back))

    @torch.no_grad()
    def _tokens(self, tower: Encoder, sequences: Sequences, rows: np.ndarray, length: int) -> TokenVectors:
        """Embed length-sorted batches, whose bounds are a function of the rows alone, if memory suffices."""
        linear, how = self.modules[late_interaction.NAME], self.use.scorer
        normalised = how.get("normalised", "passages") in (sequences.name, "both")
        first = how.get({"queries": "query_vectors", "passages": "passage_vectors"}[sequences.name])

        def embedded(some: np.ndarray) -> tuple[Tensor, np.ndarray]:
            ids, mask = map(torch.from_numpy, inputs.read_inputs(sequences, some, length, tower.config))
            vectors, _ = late_interaction.token_vectors(
                tower, linear, to_device(ids, self.device), mask, normalised, first
            )
            counted = late_interaction.counted(
                ids, tower.config, first
            )  # again on the host, which need not wait for it
            places = to_device(counted.flatten().nonzero().squeeze(1), self.device)
            return vectors.float().flatten(0, 1).index_select(0, places), counted.sum(dim=1).numpy()

        order, found = embed.in_passes(embedded, sequences, rows, length, self.at_once)
        lengths, starts = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
        lengths[order] = np.concatenate([of_texts for _, of_texts in found])
        starts[order] = np.cumsum(lengths[order]) - lengths[order]
        return TokenVectors(torch.cat([vectors for vectors, _ in found]), starts, lengths)


def _grouped(queries: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The places of each query's pairs, at most ``TOGETHER`` at once."""
    order = np.argsort(queries, kind="stable")
    bounds = np.searchsorted(queries[order], np.arange(queries.max(initial=-1) + 2))
    for query, (first, end) in enumerate(pairwise(bounds.tolist())):
        for start in range(first, end, TOGETHER):
            yield query, order[start : min(start + TOGETHER, end)]


class CrossEncoderScorer(Scorer):
    """The number that a model gives to a query and a passage read as one text."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, Tensor], use: ModelUse, store: TokenStore) -> None:
        super().__init__(encoder, heads, use, store)
        self.modules = with_weights(cross_encoder.score_head(encoder.config), heads)

    def order(self, queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
        """Short pairs come before long ones."""
        return np.argsort(
            self.store.queries.lengths_of(queries) + self.store.passages.lengths_of(passages), kind="stable"
        )

    def parts(self, passages: np.ndarray) -> Iterator[slice]:
        """Each part has as many pairs as go through the model at once if they are short."""
        size = embed.PASS[self.device.type].examples
        return (slice(start, start + size) for start in range(0, len(passages), size))

    def begun(self, queries: np.ndarray, passages: np.ndarray) -> ToHost:
        """Every pair is read, as many at once as their tokens allow."""
        asked = np.minimum(self.store.queries.lengths_of(queries) + 2, self.use.query_length)
        lengths = asked + np.minimum(self.store.passages.lengths_of(passages) + 1, self.use.length)
        return ToHost(torch.cat(self.at_once.each(lambda part: self._read(queries[part], passages[part]), lengths)))

    def _read(self, queries: np.ndarray, passages: np.ndarray) -> Tensor:
        arrays = cross_encoder.pair_inputs(
            [self.store.queries[row] for row in queries],
            [self.store.passages[row] for row in passages],
            self.use.query_length,
            self.use.length,
            self.store.special,
        )
        ids, mask, segments = map(torch.from_numpy, arrays)
        ids, segments = (to_device(each, self.device) for each in (ids, segments))
        return cross_encoder.score(self.encoder, self.modules[cross_encoder.NAME], ids, mask, segments).float()


def open_scorer(model: Path, store: TokenStore) -> Scorer:
    """Open a model folder by its kind of scorer: a vector a text, late interaction, or a cross-encoder."""
    kinds: dict[str, type[Scorer]] = {
        "vector": VectorScorer,
        "late-interaction": LateInteractionScorer,
        "cross-encoder": CrossEncoderScorer,
    }
    use, encoder = checkpoint.load_use(model), embed.load_for_tokens(model, store).eval()
    if use.scorer.get("kind") not in kinds:
        raise EncoreError(f"{model} scores by {use.scorer.get('kind')!r}, which is unknown; make the model again")
    return kinds[use.scorer["kind"]](encoder, checkpoint.load_heads(model), use, store)

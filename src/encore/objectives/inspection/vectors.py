"""Vectors of texts: how a model's are spread, and a query among the candidates of a model's own run on a map.

Measured before fine-tuning, it costs seconds a model and tells much of what fine-tuning will find: vectors that share
a few directions can hardly be distinguished.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from encore.data.collection import Collection, topics
from encore.data.runs import read_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import embed, inputs
from encore.models.encoder import Encoder
from encore.models.memory import MicroBatch, PartSize
from encore.models.transfer import to_device
from encore.objectives.inspection import Inspection
from encore.training.randomness import generator

FEWEST = 8  # word pieces of a text that is read
TOGETHER = 16  # texts in one forward pass
TOKEN_DIGITS = 6  # of numbers in an inspection; beyond them processors disagree


def sample(count: int, wanted: int, number: int) -> np.ndarray:
    """Rows of a random sample without replacement, ascending: a function of the three numbers alone."""
    return np.sort(generator(number, "texts").permutation(count)[:wanted])


@torch.no_grad()
def representations(encoder: Encoder, texts: Sequence[np.ndarray], length: int) -> Iterator[Tensor]:
    """The pooled representation of each text, before any linear head, in batches [B, H].

    Args:
        texts: pieces of passages, without special tokens; they are cut to ``length`` with these.
    """
    device, at_once = next(encoder.parameters()).device, MicroBatch(PartSize(TOGETHER))

    def read(some: Sequence[np.ndarray], part: range) -> Tensor:
        ids, mask = map(torch.from_numpy, inputs.framed(some[part.start : part.stop], length, encoder.config))
        return encoder.representations(to_device(ids, device), mask).float()

    for first in range(0, len(texts), TOGETHER):
        some = texts[first : first + TOGETHER]
        yield torch.cat(at_once.each(partial(read, some), np.array([len(text) for text in some])))


def rounded(value: float) -> float:
    """A number as probes hold it."""
    return float(f"{value:.{TOKEN_DIGITS}g}")


def measure_vectors(asked: Inspection, encoder: Encoder, store: TokenStore) -> dict[str, Any]:
    """``cosine``, ``effective_dimension`` and ``own_half`` of the model's own pooling, and ``mean_...`` of the mean.

    Vectors are those of the encoder before any linear head, of a sample of passages; shorter ones are passed over.
    """
    rows = sample(len(store.passages), asked.texts, asked.sample)
    rows = rows[store.passages.lengths_of(rows) >= FEWEST]
    if len(rows) < 2:
        raise EncoreError(f"fewer than two of {asked.texts} passages have {FEWEST} word pieces; take another dataset")
    texts = [store.passages[int(row)][: asked.length - 2] for row in rows]
    found: dict[str, Any] = {"texts": len(texts)}
    pooling = encoder.config
    for prefix, config in (("", pooling), ("mean_", replace(pooling, pooling="mean"))):
        encoder.config = config
        first, second, whole = (
            _vectors(encoder, parts, asked.length)
            for parts in ([text[: len(text) // 2] for text in texts], [text[len(text) // 2 :] for text in texts], texts)
        )
        found[f"{prefix}cosine"] = rounded(mean_cosine(whole))
        found[f"{prefix}effective_dimension"] = rounded(effective_dimension(whole))
        found[f"{prefix}own_half"] = rounded(own_half(first, second))
    encoder.config = pooling
    return found


def mean_cosine(vectors: NDArray[np.float64]) -> float:
    """The mean cosine of two different vectors of [N, D]: 1 where all point the same way."""
    lengths = _unit(vectors)
    cosines = lengths @ lengths.T
    count = len(vectors)
    return float((cosines.sum() - np.trace(cosines)) / (count * (count - 1)))


def effective_dimension(vectors: NDArray[np.float64]) -> float:
    """The participation ratio (sum of l)^2 / sum of l^2 of the variances l of centred vectors [N, D] in all directions.

    From 1 (all on a line) to D (spread alike in all directions); 0 if all are the same.
    """
    variances = np.linalg.svd(vectors - vectors.mean(0), compute_uv=False) ** 2
    return float(variances.sum() ** 2 / (variances**2).sum()) if variances.any() else 0.0


def own_half(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The share of texts whose first half [N, D] is nearer to its own second half than to any other, by cosine."""
    cosines = _unit(first) @ _unit(second).T
    own = np.diag(cosines).copy()
    np.fill_diagonal(cosines, -np.inf)
    return float((own > cosines.max(1)).mean())


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors of length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float64] = vectors / np.where(lengths > 0, lengths, 1.0)
    return unit


def _vectors(encoder: Encoder, texts: list[np.ndarray], length: int) -> NDArray[np.float64]:
    read = representations(encoder, texts, length)
    return np.concatenate([batch.cpu().numpy() for batch in read]).astype(np.float64)


def map_candidates(
    asked: Inspection, encoder: Encoder, store: TokenStore, run: Path, collection: Path
) -> dict[str, Any]:
    """The ``points`` of a map (COSTA, figure 3): the query, its first ranks, and what is relevant, with places."""
    searched = Collection(collection)
    query, relevant = chosen(searched, asked.split, asked.sample)
    found = read_run(run).get(query)
    if found is None:
        raise EncoreError(f"{run} has no answer to the query of the map, {query!r}; draw another with `sample`")
    ranking = found.documents
    ranks = {document: rank for rank, document in enumerate(ranking, 1)}
    documents = [*ranking[: asked.candidates], *sorted(relevant - set(ranking[: asked.candidates]))]
    rows = store.passages.names.find(documents)
    query_row = np.array([store.queries.names.find([query])[query]])
    own = embed.embed_texts(encoder.query_tower, store.queries, query_row, asked.query_length)
    others = embed.embed_texts(encoder, store.passages, np.array([rows[name] for name in documents]), asked.length)
    places = mapped(np.concatenate([own, others]), asked.perplexity, asked.seed_of_map)
    kinds = ["query", *("relevant" if name in relevant else "candidate" for name in documents)]
    points = [
        {"name": name, "kind": kind, "rank": ranks.get(name), "x": rounded(x), "y": rounded(y)}
        for name, kind, (x, y) in zip([query, *documents], kinds, places.tolist(), strict=True)
    ]
    text = next(str(row["text"]) for row in searched.query_rows() if row["_id"] == query)
    return {"query": query, "text": text, "points": points}


def chosen(collection: Collection, split: str, sample: int) -> tuple[str, set[str]]:
    """A query of a split with what is relevant to it: the first of a random order; no model has a say in it."""
    judged = collection.qrels(split)
    relevant = {
        query: {name for name, grade in judged[query].items() if grade > 0} for query in topics(collection, split)
    }
    names = sorted(query for query, found in relevant.items() if found)
    if not names:
        raise EncoreError(f"{collection.folder}: nothing is relevant to any query of {split!r}; name another split")
    query = names[generator(sample, "query").permutation(len(names))[0]]
    return query, relevant[query]


def mapped(points: NDArray[np.float32], perplexity: float, seed: int) -> NDArray[np.float64]:
    """t-SNE of vectors [N, D] in the plane, [N, 2]: exact, from principal components (van der Maaten and Hinton, 2008).

    Perplexity is a third of the other points at most, where there are few.
    """
    from sklearn.manifold import TSNE

    most = max((len(points) - 1) / 3, 1.0)
    tsne = TSNE(perplexity=min(perplexity, most), init="pca", method="exact", random_state=seed)
    found: NDArray[np.float64] = tsne.fit_transform(points.astype(np.float64))
    return found

"""A query among the candidates of a model's own run, on a t-SNE map (van der Maaten & Hinton 2008; COSTA, figure 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encore.data.collection import Collection, topics
from encore.data.runs import read_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.evaluation.inspection.examples import rounded
from encore.models import embed
from encore.models.encoder import Encoder
from encore.training.randomness import generator


def map_candidates(
    spec: dict[str, Any], encoder: Encoder, store: TokenStore, run: Path, collection: Path
) -> dict[str, Any]:
    """The ``points`` of a map: the query, its first ranks, and what is relevant, each with ``x`` and ``y``.

    Args:
        spec: ``split``, ``sample`` (which query), ``candidates``, ``perplexity``, ``seed_of_map``, ``length`` of a
            passage and ``query_length`` in tokens.
    """
    query, relevant = chosen(Collection(collection), spec["split"], spec["sample"])
    found = read_run(run).get(query)
    if found is None:
        raise EncoreError(f"{run} has no answer to the query of the map, {query!r}; draw another with `sample`")
    ranking = found.documents
    ranks = {document: rank for rank, document in enumerate(ranking, 1)}
    documents = [*ranking[: spec["candidates"]], *sorted(relevant - set(ranking[: spec["candidates"]]))]
    rows = store.passages.names.find(documents)
    query_row = np.array([store.queries.names.index(query)])
    own = embed.embed_texts(encoder.query_tower, store.queries, query_row, spec["query_length"])
    others = embed.embed_texts(encoder, store.passages, np.array([rows[name] for name in documents]), spec["length"])
    places = mapped(np.concatenate([own, others]), spec["perplexity"], spec["seed_of_map"])
    kinds = ["query", *("relevant" if name in relevant else "candidate" for name in documents)]
    points = [
        {"name": name, "kind": kind, "rank": ranks.get(name), "x": rounded(x), "y": rounded(y)}
        for name, kind, (x, y) in zip([query, *documents], kinds, places.tolist(), strict=True)
    ]
    return {"query": query, "text": _text(Collection(collection), query), "points": points}


def chosen(collection: Collection, split: str, sample: int) -> tuple[str, set[str]]:
    """A query of a split with what is relevant to it: the first of a random order; no model has a say in it.

    Raises:
        EncoreError: the split has no query with a relevant document.
    """
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


def _text(collection: Collection, query: str) -> str:
    return next(str(row["text"]) for row in collection.query_rows() if row["_id"] == query)

"""How many of a text's pieces are among the first k that its representation names (BoW, Algorithm 1).

The algorithm divides the hits by the text's pieces, the caption of the paper's figure by k; both are kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encore.data.tokens import TokenStore
from encore.evaluation.inspection.examples import TOGETHER, representations, rounded, sample
from encore.evaluation.inspection.projecting import projection
from encore.models.encoder import Encoder
from encore.objectives.parts.bags import bags


def measure_coverage(spec: dict[str, Any], encoder: Encoder, store: TokenStore, head: Path) -> dict[str, Any]:
    """The means over texts for each of ``spec["ks"]``: ``of_text`` and ``of_top``, and the standard error of the first.

    A text's pieces are those that the model reads of it, each once, special ones left out; a text without any is passed
    over.

    Args:
        spec: ``texts``, how many of the collection, ``sample``, which, ``length`` in tokens, ``ks``.
    """
    rows = sample(len(store.passages), spec["texts"], spec["sample"])
    rows = rows[store.passages.lengths[rows] > 0]
    project, ks = projection(head, next(encoder.parameters()).device), sorted(spec["ks"])
    kept = [store.passages[int(row)][: spec["length"] - 2] for row in rows]
    found: list[NDArray[np.int64]] = []
    sizes: list[NDArray[np.int64]] = []
    for place, vectors in enumerate(representations(encoder, store.passages, rows.tolist(), spec["length"])):
        bag = bags(kept[place * TOGETHER : (place + 1) * TOGETHER], list(store.special))
        top = project(vectors).topk(min(ks[-1], store.vocabulary)).indices.cpu().numpy()
        found.append(hits(top, bag, ks))
        sizes.append((bag >= 0).sum(1))
    counts, pieces = np.concatenate(found), np.concatenate(sizes)
    counts, pieces = counts[pieces > 0], pieces[pieces > 0]
    values = [_value(k, counts[:, place], pieces) for place, k in enumerate(ks)]
    return {"texts": len(pieces), "pieces": rounded(pieces.mean()), "head": project.name, "values": values}


def hits(top: NDArray[np.int64], bag: NDArray[np.int64], ks: list[int]) -> NDArray[np.int64]:
    """How many of the first k pieces are in a text's bag: [B, len(ks)].

    Args:
        top: [B, K], best first.
        bag: [B, S], padded with -1.
    """
    inside = np.array([np.isin(row, own[own >= 0]) for row, own in zip(top, bag, strict=True)])
    upto = inside.cumsum(1)
    return upto[:, [min(k, top.shape[1]) - 1 for k in ks]]


def _value(k: int, counts: NDArray[np.int64], pieces: NDArray[np.int64]) -> dict[str, Any]:
    shares = counts / pieces
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    means = {"of_text": shares.mean(), "of_top": (counts / k).mean(), "error": error}
    return {"k": k} | {name: rounded(float(value)) for name, value in means.items()}

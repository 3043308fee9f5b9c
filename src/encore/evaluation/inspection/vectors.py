"""How a model's vectors of texts lie: in one bundle or apart, in how many directions, near what is about the same.

Measured before fine-tuning, it costs seconds a model and tells much of what fine-tuning will find: vectors that share
a few directions can hardly be told apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.evaluation.inspection.examples import GivenTexts, representations, rounded, sample
from encore.models.encoder import Encoder

FEWEST = 8  # word pieces of a text that is read


def measure_vectors(spec: dict[str, Any], encoder: Encoder, store: TokenStore) -> dict[str, Any]:
    """``cosine``, ``effective_dimension`` and ``own_half`` of the model's own pooling, and ``mean_...`` of the mean.

    Vectors are those of the encoder before any linear head, of a sample of passages; shorter ones are passed over.

    Args:
        spec: ``texts``, how many of the collection, ``sample``, which, and ``length`` in tokens.

    Raises:
        EncoreError: fewer than two passages are long enough.
    """
    rows = sample(len(store.passages), spec["texts"], spec["sample"])
    rows = rows[store.passages.lengths[rows] >= FEWEST]
    if len(rows) < 2:
        raise EncoreError(f"fewer than two of {spec['texts']} passages have {FEWEST} word pieces; take another dataset")
    texts = [store.passages[int(row)][: spec["length"] - 2] for row in rows]
    found: dict[str, Any] = {"texts": len(texts)}
    pooling = encoder.config
    for prefix, config in (("", pooling), ("mean_", replace(pooling, pooling="mean"))):
        encoder.config = config
        first, second, whole = (
            _vectors(encoder, parts, spec["length"])
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

    From 1, where they lie on a line, to D, where they spread alike in all directions; 0 where all are the same.
    """
    variances = np.linalg.svd(vectors - vectors.mean(0), compute_uv=False) ** 2
    return float(variances.sum() ** 2 / (variances**2).sum()) if variances.any() else 0.0


def own_half(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Of texts' first halves [N, D], the share that is nearer to its own second half than to any other, by cosine."""
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
    read = representations(encoder, GivenTexts(texts), range(len(texts)), length)
    return np.concatenate([batch.cpu().numpy() for batch in read]).astype(np.float64)

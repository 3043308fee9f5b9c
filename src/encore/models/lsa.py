"""Word embeddings from latent semantic analysis: a start that knows which words occur together.

X is the tf-idf matrix of texts by pieces (Deerwester et al., 1990), X = U S V^T its truncated singular value
decomposition, and a piece's embedding its row of V S^a, made one unit long: without that, frequent words drown the
others. The decomposition is the randomised one of Halko, Martinsson and Tropp (2011, Algorithms 4.4 and 5.1).
"""

import numpy as np
import torch
from scipy import sparse

from encore.data.tokens import TokenStore
from encore.errors import EncoreError

OVERSAMPLING = 16
NOTHING = 1e-9  # lengths below are rounding
POWERS = 4  # products with X^T X that sharpen the spectrum


def piece_counts(store: TokenStore) -> sparse.csr_matrix:
    """float64 [sections, vocabulary]: how often the body of each section has each piece."""
    if not len(store.sentences.ids):
        raise EncoreError(f"{store.folder} holds no sentences to compute embeddings from; take another collection")
    begins = store.sentences.offsets[store.sections]
    ids = np.array(store.sentences.ids, dtype=np.int64)
    found = sparse.csr_matrix((np.ones(len(ids)), ids, begins), shape=(len(begins) - 1, store.vocabulary))
    found.sum_duplicates()
    return found


def tf_idf(frequencies: sparse.csr_matrix) -> sparse.csr_matrix:
    """(1 + log tf) * log(N / df), each row scaled to length 1; rows of weights 0 stay 0.

    Args:
        frequencies: [N, V], how often each of N texts has each piece.

    Returns:
        float64 [N, V].
    """
    texts, _ = frequencies.shape
    occurring = np.bincount(frequencies.indices, minlength=frequencies.shape[1])
    weights = np.log(texts / np.maximum(occurring, 1))
    weighted = frequencies.copy()
    weighted.data = (1.0 + np.log(weighted.data)) * weights[weighted.indices]
    lengths = np.sqrt(weighted.multiply(weighted).sum(axis=1))
    return sparse.csr_matrix(sparse.diags_array(1.0 / np.maximum(np.asarray(lengths).ravel(), 1e-12)) @ weighted)


def right_singular(matrix: sparse.csr_matrix, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest ``rank`` singular values, falling, and their right singular vectors [columns, rank].

    The sign of each vector is that which makes its largest entry positive. A matrix with fewer rows or columns than
    ``rank`` has no further values: these are 0, with vectors of zeros. Dense products are torch's, whose number of
    threads, unlike NumPy's, is part of a run's specification.
    """
    width = min(rank + OVERSAMPLING, *matrix.shape)
    basis = _orthonormal(np.random.default_rng(seed).standard_normal((matrix.shape[1], width)))
    for _ in range(POWERS):
        basis = _orthonormal(matrix.T @ _orthonormal(matrix @ basis))
    _, values, small = torch.linalg.svd(torch.from_numpy(matrix @ basis), full_matrices=False)
    vectors = (torch.from_numpy(basis) @ small.T)[:, :rank].numpy()
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    lacking = max(0, rank - width)
    return np.pad(values[:rank].numpy(), (0, lacking)), np.pad(vectors * signs, ((0, 0), (0, lacking)))


def embeddings(store: TokenStore, dimensions: int, power: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of V S^power scaled to length 1, for the pieces that have one.

    Returns:
        int64 [known], the pieces that occur, though not in every text; float64 [known, dimensions].
    """
    values, vectors = right_singular(tf_idf(piece_counts(store)), dimensions, seed)
    rows = vectors * values**power
    lengths = np.linalg.norm(rows, axis=1)
    known = np.flatnonzero(lengths > NOTHING)
    return known, rows[known] / lengths[known, None]


def log_unigram(frequencies: sparse.csr_matrix) -> np.ndarray:
    """Natural logarithm of each piece's share of all tokens, one more of each counted.

    Args:
        frequencies: [N, V], how often each of N texts has each piece.

    Returns:
        float64 [V].
    """
    totals = np.asarray(frequencies.sum(axis=0)).ravel() + 1.0
    logarithms: np.ndarray = np.log(totals / totals.sum())
    return logarithms


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    basis: np.ndarray = torch.linalg.qr(torch.from_numpy(columns)).Q.numpy()
    return basis

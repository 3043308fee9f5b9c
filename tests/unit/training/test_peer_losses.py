"""Our contrast and sentence-transformers' own losses: where no passage is repeated, they are one function."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from encore.training import losses
from tests.support import oracles

pytestmark = pytest.mark.slow  # their import takes seconds
BATCH, NEGATIVES, DIMENSION, TEMPERATURE = 6, 2, 8, 0.05


@pytest.fixture
def vectors() -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors of queries [B, D] and of passages [B, 1 + N, D], the positive of each query first; float64."""
    generator = torch.Generator().manual_seed(4)
    queries = torch.randn(BATCH, DIMENSION, generator=generator, dtype=torch.float64)
    passages = torch.randn(BATCH, 1 + NEGATIVES, DIMENSION, generator=generator, dtype=torch.float64)
    return queries.requires_grad_(), passages.requires_grad_()


def ours(queries: torch.Tensor, passages: torch.Tensor, ignored: torch.Tensor | None = None) -> torch.Tensor:
    """By cosine: theirs normalises in its similarity, our encoder before its loss."""
    positive = torch.arange(len(passages)) * passages.shape[1]
    unit, candidates = normalize(queries, dim=-1), normalize(passages, dim=-1).flatten(0, 1)
    return losses.info_nce(unit, candidates, positive, TEMPERATURE, ignored)


def theirs(kind: str, queries: torch.Tensor, passages: torch.Tensor, scale: float = 1 / TEMPERATURE) -> torch.Tensor:
    """The published loss of vectors: its model would only make them. Its import takes seconds."""
    published = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    columns, model = [queries, *passages.unbind(1)], torch.nn.Sequential(torch.nn.Identity())
    if kind == "MultipleNegativesRankingLoss":
        plain = published.MultipleNegativesRankingLoss(model, scale=scale)
        return plain.compute_loss_from_embeddings(columns, torch.empty(0))
    cached = published.CachedMultipleNegativesRankingLoss(model, scale=scale, mini_batch_size=4)
    return cached.calculate_loss([list(column.split(4)) for column in columns])


KINDS = ("MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss")


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_the_published_loss(kind: str, vectors: tuple[torch.Tensor, torch.Tensor]) -> None:
    queries, passages = vectors
    value = theirs(kind, queries, passages).item()
    assert ours(queries, passages).item() == pytest.approx(value, rel=1e-12)
    unit, flat = (normalize(part, dim=-1).detach().numpy().reshape(-1, DIMENSION) for part in (queries, passages))
    own = np.arange(BATCH) * (1 + NEGATIVES)
    assert oracles.info_nce(unit, flat, own, TEMPERATURE) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_published_loss(kind: str, vectors: tuple[torch.Tensor, torch.Tensor]) -> None:
    found = torch.autograd.grad(ours(*vectors), vectors)
    expected = torch.autograd.grad(theirs(kind, *vectors), vectors)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_another_scale_is_another_loss(kind: str, vectors: tuple[torch.Tensor, torch.Tensor]) -> None:
    assert ours(*vectors).item() != pytest.approx(theirs(kind, *vectors, scale=10.0).item(), rel=1e-2)


def test_copies_are_negatives_there_and_left_out_here(vectors: tuple[torch.Tensor, torch.Tensor]) -> None:
    """The one difference: the first query's positive stands a second time, as another query's negative."""
    queries, passages = (part.detach().clone() for part in vectors)
    passages[1, 1] = passages[0, 0]
    ignored = torch.zeros(BATCH, passages.shape[0] * passages.shape[1], dtype=torch.bool)
    ignored[0, 1 * (1 + NEGATIVES) + 1] = True
    assert ours(queries, passages, ignored) < theirs(KINDS[0], queries, passages)
    assert ours(queries, passages).item() == pytest.approx(theirs(KINDS[0], queries, passages).item(), rel=1e-12)

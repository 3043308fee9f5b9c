"""COSTA: spans, groups, and the loss of its equations."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import small_store
import torch
from small_objective import encoder, heads_of, make

from encore.objectives.costa import groups, span_means
from encore.objectives.stop_words import content_pieces
from encore.training.randomness import generator


def test_span_means_are_means_of_the_states_inside() -> None:
    hidden = torch.randn(2, 6, 3)
    means = span_means(hidden, torch.tensor([[[1, 4], [0, 0]], [[5, 6], [0, 6]]]))
    assert torch.allclose(means[0, 0], hidden[0, 1:4].mean(0))
    assert means[0, 1].abs().sum() == 0
    assert torch.allclose(means[1, 0], hidden[1, 5])
    assert torch.allclose(means[1, 1], hidden[1].mean(0), atol=1e-6)


def test_groups_of_two_texts() -> None:
    positive, allowed = groups(torch.tensor([[True, True], [True, False]]))
    assert positive.int().tolist() == [[0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0]]
    assert allowed.int().tolist() == [[0, 1, 1, 1, 1, 0], [1, 0, 1, 1, 1, 0]]


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("projector", ["nonlinear", "linear", "none"])
def test_costa_loss_is_that_of_the_equations(similarity: str, projector: str) -> None:
    objective = make("costa", similarity=similarity, projector=projector, spans=3, temperature=0.5, gwc_weight=0.2)
    model = encoder()
    heads = heads_of(objective, model)
    examples = [objective.example(index, generator(0, index)) for index in range(5)]
    batch = {name: torch.from_numpy(array) for name, array in objective.collate(examples).items()}
    with torch.no_grad():
        hidden = model(batch["ids"], batch["mask"])
        whole = heads["projector"](hidden[:, 0]).double().numpy()
    vectors, owner = [*whole], [-1] * 5
    for row, example in enumerate(examples):
        for start, end in example.spans:
            vectors.append(hidden[row, 1 + start : 1 + end].double().numpy().mean(axis=0))
            owner.append(row)
    candidates = np.array(vectors)
    if similarity == "cosine":
        candidates = candidates / np.linalg.norm(candidates, axis=1, keepdims=True)
    positive = np.array(owner) == np.arange(5)[:, None]
    allowed = np.arange(len(owner)) != np.arange(5)[:, None]
    expected = oracles.sup_con(candidates[:5], candidates, positive, allowed, 0.5)
    terms = objective.loss(model, heads, batch)
    assert terms["gwc"].item() == pytest.approx(expected, rel=1e-5)
    assert terms["loss"].item() == pytest.approx(terms["mlm"].item() + 0.2 * terms["gwc"].item(), rel=1e-5)


def test_costa_spans_have_the_granularities_that_fit_the_text() -> None:
    objective = make("costa", small_store.store([[[list(range(20, 40))]]]), spans=4)
    spans = objective.example(0, generator(0)).spans
    lengths = spans[:, 1] - spans[:, 0]
    assert len(spans) == 12  # no paragraph in a text of 20 pieces
    assert (lengths[:4] == 1).all()
    assert ((lengths[4:8] >= 4) & (lengths[4:8] <= 16)).all()
    assert ((lengths[8:] >= 16) & (lengths[8:] <= 20)).all()


def test_costa_word_spans_are_no_stop_words_and_no_punctuation() -> None:
    assert content_pieces(small_store.PIECES)[5:9].tolist() == [False, False, False, True]
    the_of_dot = [5, 80, 6, 7, 20, 5]  # "the" with a continuation is a word of its own
    objective = make("costa", small_store.store([[[the_of_dot]]]), granularities=("word",))
    assert sorted(map(tuple, objective.example(0, generator(0)).spans.tolist())) == [(0, 2), (4, 5)]

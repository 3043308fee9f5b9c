"""COSTA: spans, groups, and the loss of its equations."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore.errors import EncoreError
from encore.models.heads import projector as build_projector
from encore.objectives.costa import groups, span_means
from encore.objectives.parts.stop_words import content_pieces
from encore.training.randomness import generator
from tests.support import oracles, small_store
from tests.support.small_objective import encoder, heads_of, make
from tests.support.whole_loss import whole_loss


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
    terms = whole_loss(objective, model, heads, batch)
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


# Gradients with respect to the encoder's output, and planted errors

TEXTS, TOKENS, WIDTH = 3, 9, 4
SPANS = np.array([[[1, 4], [2, 8], [3, 4]], [[1, 2], [0, 0], [2, 6]], [[0, 0], [0, 0], [0, 0]]])  # none in the last
DRAWN = np.array([[True, True, True], [True, False, True], [False, False, False]])


class Given(nn.Module):
    """An encoder whose states are given."""

    def __init__(self, hidden: torch.Tensor) -> None:
        super().__init__()
        self.hidden = hidden

    def forward(self, *arguments: Any) -> torch.Tensor:
        return self.hidden

    def pooled(self, hidden: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return hidden[:, 0]


def projected(kind: str, states: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """g of Eq. 5 by the formula."""
    if kind == "none":
        return states
    if kind == "linear":
        return states @ weights["weight"].T + weights["bias"]
    inner = states @ weights["0.weight"].T + weights["0.bias"]
    activated = 0.5 * inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
    return activated @ weights["2.weight"].T + weights["2.bias"]


def oracle(hidden: np.ndarray, kind: str, similarity: str, weights: dict[str, np.ndarray], drawn: np.ndarray) -> float:
    texts = projected(kind, hidden[:, 0], weights)
    spans = [
        (row, hidden[row, start:end].mean(axis=0))
        for row in range(TEXTS)
        for (start, end), real in zip(SPANS[row], drawn[row], strict=True)
        if real
    ]
    candidates = np.array([*texts, *(vector for _, vector in spans)])
    if similarity == "cosine":
        candidates = candidates / np.linalg.norm(candidates, axis=1, keepdims=True)
    owner = np.array([-1] * TEXTS + [row for row, _ in spans])
    own = np.arange(TEXTS)[:, None]
    return oracles.sup_con(candidates[:TEXTS], candidates, owner == own, np.arange(len(owner)) != own, 0.3)


def agrees(
    kind: str, similarity: str, temperature: float = 0.3, sign: float = 1.0, mask: np.ndarray | None = None
) -> bool:
    """Whether GWC and its gradients are those of Eq. 8, of a wrong objective if one is asked for."""
    rng = np.random.default_rng(0)
    point = rng.normal(size=(TEXTS, TOKENS, WIDTH))
    objective = make("costa", projector=kind, similarity=similarity, temperature=temperature)
    objective.masked_lm = lambda *arguments: torch.zeros(())
    torch.manual_seed(0)
    projector = build_projector(kind, WIDTH).double()
    weights = {name: part.detach().numpy() for name, part in projector.named_parameters()}
    hidden = torch.tensor(point, requires_grad=True)
    batch = {"ids": torch.zeros(TEXTS, TOKENS), "mask": torch.ones(TEXTS, TOKENS), "spans": torch.tensor(SPANS)}
    batch["drawn"] = torch.tensor(DRAWN if mask is None else mask)
    rows = objective.forward(Given(hidden), nn.ModuleDict({"projector": projector}), batch).embeddings
    value = sign * objective.batch_loss(rows)["gwc"]
    (gradient,) = torch.autograd.grad(value, hidden)

    def expected(x: np.ndarray) -> float:
        return oracle(x, kind, similarity, weights, DRAWN)

    same = np.allclose(gradient.numpy(), oracles.gradient(expected, point), rtol=1e-5, atol=1e-8)
    return bool(same and np.isclose(value.item(), expected(point), rtol=1e-5))


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("kind", ["nonlinear", "linear", "none"])
def test_gwc_and_its_gradients_are_those_of_the_formula(kind: str, similarity: str) -> None:
    assert agrees(kind, similarity)


def test_planted_errors_are_noticed() -> None:
    assert not agrees("linear", "cosine", sign=-1.0)
    assert not agrees("linear", "cosine", temperature=0.303)
    padding_taken_for_a_span = DRAWN | (np.arange(TEXTS)[:, None] == 1)
    assert not agrees("linear", "cosine", mask=padding_taken_for_a_span)
    assert not agrees("linear", "dot", mask=DRAWN & (np.arange(3) > 0))


# Fields


@pytest.mark.parametrize("left_out", ["word", "phrase", "sentence", "paragraph"])
def test_any_granularity_can_be_left_out(left_out: str) -> None:
    rest = tuple(kind for kind in ("word", "phrase", "sentence", "paragraph") if kind != left_out)
    store = small_store.store([[[list(range(20, 60))]]])
    objective = make("costa", store, spans=4, granularities=rest, length=60)
    arrays = objective.collate([objective.example(0, generator(0))])
    assert arrays["spans"].shape == (1, 12, 2)  # Table 4: three granularities with four spans each
    present = [kind for kind in rest if kind != "paragraph"]  # which is longer than the text
    assert arrays["drawn"].sum() == 4 * len(present)


def test_a_granularity_is_named_once() -> None:
    with pytest.raises(EncoreError, match="each granularity may be named once"):
        make("costa", granularities=("word", "word"))
    with pytest.raises(EncoreError, match="granularities"):
        make("costa", granularities=())


def test_spans_of_a_long_text_are_clamped_to_it_and_short_ones_dropped() -> None:
    """A text of 70 pieces has paragraphs of 64 to 70; one of 10 has words and phrases only; each keeps its own n_i."""
    store = small_store.store([[[list(range(8, 78))]], [[list(range(20, 30))]]])
    objective = make("costa", store, spans=5, length=128)
    long, short = (objective.example(index, generator(index)).spans for index in (0, 1))
    paragraphs = long[15:, 1] - long[15:, 0]
    assert len(long) == 20
    assert (paragraphs >= 64).all()
    assert (long[:, 1] <= 70).all()
    assert len(short) == 10
    assert (short[:, 1] <= 10).all()
    arrays = objective.collate([objective.example(index, generator(index)) for index in (0, 1)])
    assert arrays["drawn"].sum(axis=1).tolist() == [20, 10]


def test_the_projector_is_a_module_of_its_own_that_a_step_can_keep() -> None:
    model = encoder()
    names = {
        kind: [*make("costa", projector=kind).heads(model)["projector"].state_dict()]
        for kind in ("nonlinear", "linear", "none")
    }
    assert names == {
        "nonlinear": ["0.weight", "0.bias", "2.weight", "2.bias"],
        "linear": ["weight", "bias"],
        "none": [],
    }


def test_whole_words_can_be_masked() -> None:
    objective = make("costa", whole_word=True)
    continues, together = objective.store.continues, 0
    for index in range(8):
        example = objective.example(index, generator(index))
        masked = np.isin(np.arange(len(example.ids)), example.masked.positions)
        inside = continues[example.ids[1:]]
        assert (masked[1:][inside] == masked[:-1][inside]).all()
        together += masked[1:][inside].sum()
    assert together > 0, "words of several pieces"

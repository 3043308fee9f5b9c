"""COSTA: spans, groups, and the loss of its equations."""

import numpy as np
import pytest
import torch
from torch import nn

from encore.objectives.costa import groups, span_means
from encore.objectives.parts.lexicon import content_pieces
from encore.training.randomness import generator
from tests.support import oracles, small_store
from tests.support.small_decoding import assert_gradient, numbers
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
def test_the_contrast_and_its_gradient_are_those_of_the_equations(similarity: str, projector: str) -> None:
    objective = make("costa", similarity=similarity, projector=projector, spans=3, temperature=0.5, gwc_weight=0.2)
    model = encoder().double()
    heads = heads_of(objective, model).double()
    examples = [objective.example(index, generator(0, index)) for index in range(5)]
    batch = {name: torch.from_numpy(array) for name, array in objective.collate(examples).items()}

    @torch.no_grad()
    def expected() -> float:
        """Eq. 8 of the encoder's states."""
        hidden = model(batch["ids"], batch["mask"])
        vectors, owner = [*projected(projector, hidden[:, 0].numpy(), numbers(heads["projector"]))], [-1] * 5
        for row, example in enumerate(examples):
            for start, end in example.spans:
                vectors.append(hidden[row, 1 + start : 1 + end].numpy().mean(axis=0))
                owner.append(row)
        candidates = np.array(vectors)
        if similarity == "cosine":
            candidates = candidates / np.linalg.norm(candidates, axis=1, keepdims=True)
        positive = np.array(owner) == np.arange(5)[:, None]
        allowed = np.arange(len(owner)) != np.arange(5)[:, None]
        return oracles.sup_con(candidates[:5], candidates, positive, allowed, 0.5)

    terms = whole_loss(objective, model, heads, batch)
    assert terms["gwc"].item() == pytest.approx(expected(), rel=1e-9)
    assert terms["loss"].item() == pytest.approx(terms["mlm"].item() + 0.2 * terms["gwc"].item(), rel=1e-9)
    assert_gradient(terms["gwc"], nn.ModuleDict({"encoder": model, "projector": heads["projector"]}), expected, 2)


def projected(kind: str, states: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """g of Eq. 5 by the formula."""
    if kind == "none":
        return states
    if kind == "linear":
        return states @ weights["weight"].T + weights["bias"]
    inner = oracles.gelu(states @ weights["0.weight"].T + weights["0.bias"])
    return inner @ weights["2.weight"].T + weights["2.bias"]


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

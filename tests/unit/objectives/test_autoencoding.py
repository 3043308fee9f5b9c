"""Auto-encoding: the loss from its formula, and what the decoder is given."""

import numpy as np
import pytest
import torch

from encore.training.randomness import generator
from tests.support import small_store
from tests.support import transformer_oracles as plain
from tests.support.small_decoding import MISTAKES, Case, assert_finite, numbers, plant, reads
from tests.support.small_objective import batch_of, make


def decode(case: Case, h: np.ndarray, row: int) -> np.ndarray:
    shape, decoder = case.model.config, numbers(case.heads["decoder"])
    real = case.arrays["mask"][row]
    return plain.auto_encoding(h, case.embedded(row), real, decoder, shape.heads, shape.epsilon)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("layers", [1, 2])
def test_loss_and_gradient_are_those_of_the_formula(layers: int, pooling: str) -> None:
    Case("autoencoding", pooling, decoder_layers=layers, decoder_weight=0.7).agrees(decode)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("autoencoding")
    plant(mistake, monkeypatch)
    with pytest.raises(AssertionError):
        case.agrees(decode)


def test_the_decoder_reads_a_second_masking_of_the_same_window() -> None:
    objective = make("autoencoding", decoder_mask_ratio=0.5)
    arrays, _ = batch_of(objective)
    restored = [arrays[name].flatten() for name in ("ids", "text")]
    restored[0][arrays["masked"]] = arrays["labels"]
    restored[1][arrays["decoded"]] = arrays["decoded_labels"]
    assert np.array_equal(*restored)
    assert set(arrays["masked"]) != set(arrays["decoded"])
    assert len(arrays["decoded"]) == pytest.approx(0.5 * arrays["mask"].sum(), rel=0.05)
    seen = arrays["text"].ravel()[arrays["decoded"]]
    assert np.mean(seen == arrays["decoded_labels"]) < 0.3  # what is rebuilt is not given, save by the 10 % that stay


def test_specials_and_padding_are_never_predicted() -> None:
    arrays, _ = batch_of(make("autoencoding", decoder_mask_ratio=1.0))
    assert arrays["mask"].ravel()[arrays["decoded"]].all()
    assert not np.isin(arrays["decoded_labels"], list(small_store.Special())).any()


def test_the_two_maskings_are_independent_and_by_whole_words() -> None:
    objective = make("autoencoding")
    agreement = []
    for index in range(len(objective)):
        example = objective.example(index, generator(0, index))
        first, second = (np.isin(np.arange(len(example.ids)), one.positions) for one in (example.masked, example.again))
        agreement.append(np.mean(second[first]))
        continues = objective.store.continues[example.ids]
        assert all(second[i] == second[i - 1] for i in range(1, len(second)) if continues[i])
    assert np.mean(agreement) == pytest.approx(0.5, abs=0.05)


def test_h_and_all_real_tokens_are_read() -> None:
    case = Case("autoencoding")
    embedded = case.model.embeddings(case.batch["text"], None).detach().requires_grad_()
    h = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    states = case.heads["decoder"](h, embedded, case.batch["mask"])
    expected = case.arrays["mask"].copy()
    expected[1:], expected[0, 0] = False, False  # the place of [CLS] is h's
    assert np.array_equal(reads(states, (0, 3), embedded), expected)
    (gradient,) = torch.autograd.grad(states[0, 3].pow(2).sum(), h)
    assert (gradient.abs().sum(-1) > 0).tolist() == [True, False, False]


@pytest.mark.parametrize("texts", [[[[[40]]]], [[[[40, 41]]]]])
def test_the_shortest_texts_are_learned_from(texts: list) -> None:
    assert_finite(Case("autoencoding", texts=texts))

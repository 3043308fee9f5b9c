"""Objectives with a decoder: their loss and its gradient from the formulas, and what their decoders are given."""

from typing import Any

import numpy as np
import pytest
import torch

from encore.training.randomness import generator
from tests.support import small_store
from tests.support.small_decoding import DECODE, Case, assert_finite
from tests.support.small_objective import batch_of, make

CASES = [
    ("autoencoding", {"decoder_layers": 1, "decoder_weight": 0.7}),
    ("autoencoding", {"decoder_layers": 2, "decoder_weight": 0.7}),
    ("autoregression", {}),
    ("autoregression", {"attention_window": 2, "decoder_layers": 2}),
    ("enhanced", {"variant": "code", "decoder_weight": 0.7}),
    ("enhanced", {"variant": "paper", "decoder_weight": 0.7}),
    ("seed", {}),
    ("seed", {"decoder_layers": 1, "attention_window": 8, "decoder_weight": 0.7}),
]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize(("name", "fields"), CASES)
def test_loss_and_gradient_are_those_of_the_formula(name: str, fields: dict[str, Any], pooling: str) -> None:
    Case(name, pooling, **fields).agrees()


@pytest.mark.parametrize("name", DECODE)
@pytest.mark.parametrize("texts", [[[[[40]]]], [[[[40, 41]]]], [[[[40, 80, 81, 82, 83]]]]])
def test_the_shortest_texts_are_learned_from(name: str, texts: list[Any]) -> None:
    assert_finite(Case(name, texts=texts))


# What the decoders are given


def test_every_token_behind_the_first_is_predicted_and_padding_is_not() -> None:
    arrays, _ = batch_of(make("autoregression"))
    rows, columns = np.divmod(arrays["decoded"], arrays["ids"].shape[1])
    for row, real in enumerate(arrays["mask"]):
        length = real.sum()
        assert columns[rows == row].tolist() == list(range(length - 1))
        assert arrays["decoded_labels"][rows == row].tolist() == arrays["text"][row, 1:length].tolist()
    assert (arrays["text"] != 4).all()  # the decoder's text is unmasked


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


def test_dropout_takes_the_memory_from_some_heads_of_some_positions() -> None:
    case = Case("seed")
    memory = case.heads["decoder"].memory[0].train()
    memory.output.weight.data, memory.output.bias.data = torch.eye(8, dtype=torch.float64), torch.zeros(8).double()
    memory.rate = 0.5
    h = torch.randn(3, 8, dtype=torch.float64)
    ratio = (memory(h, 200) / memory.value(h)[:, None]).unflatten(-1, (2, 4))
    assert torch.allclose(ratio, ratio[..., :1].expand_as(ratio))  # a head as a whole
    assert set(ratio.round(decimals=6).unique().tolist()) == {0.0, 2.0}

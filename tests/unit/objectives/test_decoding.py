"""Objectives with a decoder: their loss and its gradient from the formulas, and that a mistake would be found."""

from typing import Any

import pytest

from tests.support.small_decoding import DECODE, Case, assert_finite

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

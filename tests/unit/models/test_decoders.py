"""The decoders against the released ones, their masks against loops, and their operations as torch counts them."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from encore.models import decoders, flops
from encore.models.config import EncoderConfig
from encore.models.decoders import causal
from tests.support import transformer_oracles as plain
from tests.support.small_objective import batch_of, encoder, heads_of, make
from tests.support.waves import filled, wave

DECODING = ["autoencoding", "autoregression", "enhanced", "seed"]
SHAPE = EncoderConfig(vocabulary=11, hidden=16, heads=4, intermediate=64, max_length=8, dropout=0.0)
CPU = torch.device("cpu")
REAL = torch.tensor([[True] * 7, [True] * 5 + [False] * 2])


# The released decoders, run once with these weights and inputs (transformers 5.23, eager attention, float64)


def measured(states: Tensor, h: Tensor, real: Tensor | None = None) -> list[float]:
    """A weighted sum of the states, and how it changes as h moves in a direction."""
    weights = wave(*states.shape, key="weights")
    total = (states * (weights if real is None else weights * real[..., None])).sum()
    (gradient,) = torch.autograd.grad(total, h)
    return [total.item(), (gradient * wave(*h.shape, key="direction")).sum().item(), *states[1, 3, :2].tolist()]


def inputs() -> tuple[Tensor, Tensor]:
    return wave(2, 16, key="h").requires_grad_(), wave(2, 7, 16, key="embedded")


def test_enhanced_decoder_is_the_released_one() -> None:
    """staoxiao/RetroMAE at ee37587, BertLayerForDecoder; three helpers that transformers dropped were put back."""
    h, embedded = inputs()
    seen = torch.zeros(2, 7, 7, dtype=torch.bool)
    for b, i, j in np.ndindex(2, 7, 7):
        drawn = j == 0 or (3 * i + 5 * j + b) % 4 != 0
        seen[b, i, j] = bool(i != j and drawn and REAL[b, j]) or (i == 0 and j == 1)
    found = measured(filled(decoders.EnhancedDecoder(SHAPE))(h, wave(7, 16, key="positions"), embedded, seen), h)
    assert found == pytest.approx([25.662967035556, 1.608677400480, 0.797857312127, -0.306306980808], rel=1e-9)


def test_auto_encoding_decoder_is_the_released_one() -> None:
    """ma787639046/bowdpr at 5ebd641, BertForAutoEncodingDecoder of two layers."""
    h, embedded = inputs()
    found = measured(filled(decoders.AutoEncodingDecoder(SHAPE, 2))(h, embedded, REAL), h)
    assert found == pytest.approx([-1.047440066688, -0.646232824628, -0.411469728735, -1.595435771909], rel=1e-9)


@pytest.mark.parametrize(
    ("window", "total", "slope"), [(None, -10.9589681005579, 1.5699734352178), (3, -10.6928104721337, 1.5602236360046)]
)
def test_auto_regression_decoder_is_the_released_one(window: int | None, total: float, slope: float) -> None:
    """ma787639046/bowdpr at 5ebd641, BertForAutoRegressionDecoder of two layers, with its window's own buffer as mask.

    The buffer is what it registers; today's GPT-2 does not read it, so it was handed over.
    """
    h, embedded = inputs()
    found = measured(filled(decoders.AutoRegressionDecoder(SHAPE, 2))(h, embedded, causal(7, window, CPU)), h)
    assert found == pytest.approx([total, slope, 0.519572419232, -0.878948379236], rel=1e-9)


def test_seed_decoder_is_the_released_one() -> None:
    """microsoft/SEED-Encoder at ececaa9, TransformerDecoder of two layers, span 2, with its incremental state off.

    It computes GELU in single precision, hence the tolerance.
    """
    h, _ = inputs()
    text = torch.tensor([[2, 5, 6, 7, 8, 9, 3], [2, 10, 9, 8, 3, 0, 0]])
    words = wave(11, 16, key="words")[text]
    found = measured(filled(decoders.SeedDecoder(SHAPE, 2))(h, words, causal(7, 2, CPU)), h, REAL)
    assert found == pytest.approx([-12.890583622, 0.416918150, 0.476983025, -0.845359360], rel=1e-5)


# Masks


@pytest.mark.parametrize("window", [None, 1, 2, 3, 20])
def test_causal_masks_are_those_of_a_loop(window: int | None) -> None:
    for length in (1, 2, 9):
        assert np.array_equal(causal(length, window, CPU).numpy(), plain.before(length, window))


def test_the_span_of_seed_is_the_first_the_last_and_the_position_itself() -> None:
    assert [np.flatnonzero(row).tolist() for row in causal(5, 2, CPU).numpy()] == [
        [0],
        [0, 1],
        [0, 1, 2],
        [0, 2, 3],
        [0, 3, 4],
    ]


# Initial weights and operations


def test_what_is_added_to_the_residual_path_starts_smaller() -> None:
    shape = EncoderConfig(vocabulary=11, hidden=64, heads=4, intermediate=128, max_length=8)
    torch.manual_seed(0)
    layer = decoders.AutoRegressionDecoder(shape, 2).layer[1]
    assert layer.feed_forward.outer.weight.std().item() == pytest.approx(0.01, rel=0.05)
    assert layer.attention.output.weight.std().item() == pytest.approx(0.01, rel=0.05)
    assert layer.feed_forward.inner.weight.std().item() == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("fields", [{}, {"attention_window": 2}])
@pytest.mark.parametrize("name", DECODING)
def test_operations_are_counted_as_torch_does(name: str, fields: dict[str, Any]) -> None:
    fields = fields if name in ("autoregression", "seed") else {}
    objective, model = make(name, **fields), encoder(dropout=0.1).train()
    heads = heads_of(objective, model).train()
    arrays, batch = batch_of(objective)
    with FlopCounterMode(display=False) as counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        objective.forward(model, heads, batch)
    assert objective.flops(model, arrays) == pytest.approx(flops.TRAINING * counter.get_total_flops(), rel=1e-9)


@pytest.mark.parametrize("name", DECODING)
def test_each_mean_is_over_the_positions_that_are_counted(name: str) -> None:
    arrays, _ = batch_of(make(name))
    counts = make(name).loss_denominators(arrays)
    assert counts == {"mlm": len(arrays["labels"]), "decoder": len(arrays["decoded_labels"])}

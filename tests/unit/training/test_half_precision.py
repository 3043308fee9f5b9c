"""Copies of weights in bf16: autocast's own losses and gradients, to the last byte."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from encore.training import gradients, half_precision
from encore.training.distributed import ALONE
from encore.training.gradients import TrainingModels
from encore.training.half_precision import Copies
from encore.training.randomness import generator
from tests.support.batch_parts import in_parts
from tests.support.small_objective import encoder, heads_of, make

SHAPE = {"layers": 3, "dropout": 0.1}


def models_of(name: str, precision: str = "bf16", **shape: Any) -> TrainingModels:
    task, model = make(name), encoder(**SHAPE | shape)
    numerics = {"precision": precision, "threads": 1}
    return TrainingModels(task, model.train(), heads_of(task, model).train(), torch.device("cpu"), numerics)


def found(models: TrainingModels, size: int, batches: int = 1) -> dict[str, Tensor]:
    """The last terms, and the gradients of some batches, one added to the other."""
    for step in range(batches):
        examples = [models.task.example(row, generator(0, "example", step, row)) for row in range(8)]
        parts = in_parts(models.task, examples, size, "step", step)
        terms = gradients.backward(models, parts, models.task.loss_weights(0.0), ALONE)
    every = nn.ModuleDict({"encoder": models.encoder, "heads": models.heads}).named_parameters()
    return terms | {name: value.grad for name, value in every if value.grad is not None}


def autocasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, weights are cast by autocast."""
    monkeypatch.setattr(TrainingModels, "computing", lambda self: nullcontext(lambda: None))


@pytest.mark.parametrize("size", [8, 3])
@pytest.mark.parametrize("name", ["mlm", "cocondenser", "enhanced", "autoregression", "cpdae"])
def test_losses_and_gradients_are_those_of_autocast_to_the_last_byte(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of copies alone, without one product for queries, keys and values."""
    monkeypatch.setattr(half_precision, "_joined", lambda part: [])
    models, plain = models_of(name), models_of(name)
    assert len(models.copies.weights) >= 3 * 12
    one = found(models, size, batches=2)
    autocasts(monkeypatch)
    other = found(plain, size, batches=2)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) and one[key].dtype == other[key].dtype for key in one)


@pytest.mark.parametrize("name", ["mlm", "ict"])
def test_one_product_for_three_is_as_near_to_single_precision_as_three(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the last layer computes the states of first tokens alone."""
    wide = {"layers": 4, "hidden": 64, "heads": 4, "intermediate": 256, "dropout": 0.0}
    exact, joined = (found(models_of(name, precision, **wide), 8) for precision in ("fp32", "bf16"))
    autocasts(monkeypatch)
    plain = found(models_of(name, **wide), 8)
    assert joined["loss"].item() == pytest.approx(plain["loss"].item(), rel=1e-4)
    assert 0 < error(joined, exact) < 1.02 * error(plain, exact)


def error(some: dict[str, Tensor], exact: dict[str, Tensor]) -> float:
    """How far gradients are from exact ones, over the length of these."""
    one, other = (torch.cat([each[key].flatten() for key in exact if exact[key].ndim]) for each in (some, exact))
    return float((one - other).norm() / other.norm())


def test_weights_are_in_single_precision_outside_of_a_pass_and_copies_follow_them() -> None:
    models = models_of("mlm")
    layer = models.encoder.encoder.layer[0]
    attention, dense = layer.attention.self, layer.output.dense
    with models.computing():
        assert dense.weight.dtype == torch.bfloat16
        assert attention.joined.shape == (3 * len(attention.query.bias), len(attention.query.bias))
    assert isinstance(dense.weight, nn.Parameter)
    assert dense.weight.dtype == torch.float32
    assert attention.joined is attention.joined_bias is None
    with torch.no_grad():
        dense.weight.fill_(2.0)
        attention.key.bias.fill_(3.0)
    with models.computing():
        assert (dense.weight == 2).all()
        assert (attention.joined_bias == 3).sum() == len(attention.key.bias)


def test_a_weight_that_two_maps_share_has_one_copy_and_one_that_learns_nothing_no_gradient() -> None:
    model = encoder(**SHAPE)
    first, second, third = model.encoder.layer
    second.intermediate.dense.weight = first.intermediate.dense.weight
    third.requires_grad_(False)
    copies = Copies(model)
    copies.refresh()
    with copies.in_place() as give_gradients, torch.autocast("cpu", torch.bfloat16):
        assert second.intermediate.dense.weight is first.intermediate.dense.weight
        model(torch.ones(2, 4, dtype=torch.int64), None).sum().backward()
        give_gradients()
    assert first.intermediate.dense.weight.grad.dtype == torch.float32
    assert all(weight.grad is None for weight in third.parameters())


def test_both_towers_have_copies() -> None:
    model = encoder(**SHAPE)
    model.query_encoder = encoder(**SHAPE)
    assert len(Copies(model).weights) == 2 * 3 * 12


def test_a_model_of_another_library_has_no_copies_and_computes_as_it_does() -> None:
    model = nn.Linear(2, 2)
    copies = Copies(model)
    copies.refresh()
    with copies.in_place() as give_gradients:
        model(torch.ones(1, 2)).sum().backward()
        give_gradients()
    assert copies.weights == []
    assert (model.weight.grad == 1).all()

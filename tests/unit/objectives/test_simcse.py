"""SimCSE: two readings of a text under dropout."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore.models import inputs
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from tests.support import oracles
from tests.support.small_objective import batch_of, encoder, given_states, heads_of, make
from tests.support.whole_loss import whole_loss


def rows_of(objective: Any, model: Encoder, heads: nn.ModuleDict, count: int = 6) -> torch.Tensor:
    _, batch = batch_of(objective, range(count))
    return objective.forward(model, heads, batch).embeddings["views"]


# Against the formula


def expected(states: np.ndarray, weight: np.ndarray, bias: np.ndarray, temperature: float = 0.05) -> float:
    """The loss of pooled states [2B, H], from the formula."""
    z = np.tanh(states @ weight.T + bias)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return oracles.info_nce(z[::2], z[1::2], np.arange(len(z) // 2), temperature)


def test_the_loss_and_its_gradient_are_those_of_the_formula() -> None:
    """The gradient in the encoder's output."""
    objective = make("simcse")
    model = encoder(hidden=8, intermediate=16).double()
    heads = heads_of(objective, model).double()
    heads["simcse"][0].weight.data *= 30
    _, batch = batch_of(objective, range(4))
    rng = np.random.default_rng(0)
    hidden = torch.tensor(rng.normal(size=(*batch["ids"].shape, 8)), requires_grad=True)
    model.forward = given_states(hidden, batch["mask"])
    value = whole_loss(objective, model, heads, batch)["loss"]
    value.backward()
    weight, bias = (parameter.detach().numpy() for parameter in heads["simcse"][0].parameters())
    states = hidden.detach().numpy()[:, 0]
    gradient = oracles.gradient(lambda x: expected(x, weight, bias), states)
    assert value.item() == pytest.approx(expected(states, weight, bias), rel=1e-5)
    assert np.allclose(hidden.grad[:, 0].numpy(), gradient, rtol=1e-5, atol=1e-8)
    assert hidden.grad[:, 1:].abs().max() == 0


# Against the released code: princeton-nlp/SimCSE at 49fa580a, simcse/models.py, `BertForCL` with pooler `cls`,
# temperature 0.05 and no dropout, in float64 on the inputs and weights below.

GOLDEN = {"the same text twice": 0.0579251019588383, "with the last piece missing": 1.5592850212680194}
GOLDEN_GRADIENTS = {"head": 1.615223491727278, "word embeddings": 3.4808426459594135}  # norms, of the second


def golden_model(objective: Any) -> tuple[Encoder, nn.ModuleDict]:
    """Weights by a formula of the parameter's place in the alphabet of the released code's names."""
    shape = EncoderConfig(vocabulary=100, layers=2, hidden=16, heads=2, intermediate=32, max_length=24, dropout=0.0)
    model = Encoder(shape).double().eval()
    heads = objective.heads(model).double()
    named = {f"bert.{name}": parameter for name, parameter in model.named_parameters()}
    named |= {f"mlp.dense.{name}": parameter for name, parameter in heads["simcse"][0].named_parameters()}
    for place, name in enumerate(sorted(named)):
        parameter = named[name]
        i = torch.arange(parameter.numel(), dtype=torch.float64)
        values = torch.sin(i * i * 0.37 + place) * (0.05 if name.endswith("bias") else 0.5)
        parameter.data = values.reshape(parameter.shape) + float(name.endswith("LayerNorm.weight"))
    return model, heads


@pytest.mark.parametrize("case", GOLDEN)
def test_the_loss_is_that_of_the_released_code(case: str) -> None:
    objective = make("simcse")
    model, heads = golden_model(objective)
    first = [np.array([(31 * i + 17 * j * j) % 95 + 5 for j in range(n)]) for i, n in enumerate((6, 9, 4, 8, 7))]
    second = first if case == "the same text twice" else [ids[:-1] for ids in first]
    views = [ids for pair in zip(first, second, strict=True) for ids in pair]
    ids, mask = (torch.from_numpy(array) for array in inputs.pad(views, 24, objective.store.special))
    loss = whole_loss(objective, model, heads, {"ids": ids, "mask": mask})["loss"]
    assert loss.item() == pytest.approx(GOLDEN[case], rel=1e-5)
    if case == "with the last piece missing":
        loss.backward()
        norms = [heads["simcse"][0].weight.grad.norm().item(), model.word_embeddings.grad.norm().item()]
        assert norms == pytest.approx(list(GOLDEN_GRADIENTS.values()), rel=1e-4)


# Dropout


def test_readings_differ_though_the_backbone_has_no_dropout() -> None:
    objective, model = make("simcse"), encoder(dropout=0.0)
    heads = heads_of(objective, model)
    first, second = rows_of(objective, model.train(), heads).unbind(dim=1)
    assert (first - second).abs().amax(dim=1).min() > 0
    again, same = rows_of(objective, model.eval(), heads).unbind(dim=1)
    assert torch.equal(again, same)


def rates(model: Encoder) -> set[float]:
    inside = {layer.attention.self.rate for layer in model.encoder.layer}
    return inside | {module.p for module in model.modules() if isinstance(module, nn.Dropout)}


def test_all_dropouts_are_set_for_the_reading() -> None:
    model, objective = encoder(dropout=0.2), make("simcse", dropout=0.3)
    assert rates(model) == {0.2}
    _, batch = batch_of(objective, range(2))
    objective.forward(model, objective.heads(model), batch)
    assert rates(model) == {0.3}
    assert model.config.dropout == 0.2, "which a saved model has"


def test_both_readings_are_learned_from() -> None:
    objective, model = make("simcse"), encoder()
    _, batch = batch_of(objective, range(4))
    views = torch.randn(4, 2, 8, requires_grad=True)
    objective.batch_loss({"views": views})["contrast"].backward()
    assert views.grad.abs().amax(dim=2).min() > 0
    assert batch["ids"].shape[0] == 8
    assert torch.equal(batch["ids"][::2], batch["ids"][1::2])
    assert set(objective.heads(model).state_dict()) == {"simcse.0.weight", "simcse.0.bias"}

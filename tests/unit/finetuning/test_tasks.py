"""What holds for every fine-tuning task: its gradient, the order of a batch, and a batch in parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore.training import gradients
from encore.training.distributed import ProcessGroup
from encore.training.gradients import TrainingModels
from tests.support.batch_parts import in_parts
from tests.support.small_finetuning import RECIPES, Lookup, index_task, loss_of, made, scorer_task, six_of
from tests.support.small_teachers import small_task

SCORERS: dict[str, dict[str, Any]] = {
    "cross-encoder": {"length": 11},
    "cross-encoder, pointwise": {"length": 11, "loss": "pointwise"},
    "late-interaction": {"length": 12, "token_dimension": 6},
    "late-interaction, first tokens": {
        "length": 12,
        "token_dimension": 6,
        "normalised": "none",
        "query_vectors": 1,
        "passage_vectors": 3,
    },
}
TAUGHT = ["kl-in-batch", "kl-pairwise", "margin-mse", "residual", "dual"]
TASKS = ["contrastive", *RECIPES, "pairwise", "pairwise-in-batch", "lambda", *TAUGHT, *SCORERS]

pytestmark = pytest.mark.usefixtures("double")


@pytest.fixture(params=TASKS)
def models(request: pytest.FixtureRequest, store: Any, collection: Any, tmp_path: Path) -> TrainingModels:
    """A task, and the models that it trains."""
    name = request.param
    if name in SCORERS:
        return scorer_task(name.partition(",")[0], **SCORERS[name])[1]
    if name == "lambda":
        task = index_task(store, collection)
    elif name in TAUGHT:
        task = small_task(name, tmp_path)
    else:
        task = made(store, collection, **RECIPES.get(name, {"loss": name}))
    torch.manual_seed(1)
    return TrainingModels(task, Lookup(), nn.ModuleDict(), torch.device("cpu"), {"precision": "fp32", "threads": 1})


def weights_of(models: TrainingModels) -> dict[str, nn.Parameter]:
    both = nn.ModuleDict({"encoder": models.encoder, "heads": models.heads})
    return {name: weight for name, weight in both.named_parameters() if weight.grad is not None}


def test_gradients_are_the_numeric_ones(models: TrainingModels) -> None:
    """Of each parameter, at the entry where the gradient is largest; the tokens of a text are among them."""
    examples = six_of(models.task)
    loss_of(models, examples).backward()
    assert weights_of(models)
    for name, weight in weights_of(models).items():
        place = np.unravel_index(weight.grad.abs().argmax(), weight.shape)
        numeric = []
        for sign in (1, -1):
            with torch.no_grad():
                weight[place] += sign * 1e-6
                numeric.append(loss_of(models, examples).item())
                weight[place] -= sign * 1e-6
        assert (numeric[0] - numeric[1]) / 2e-6 == pytest.approx(weight.grad[place].item(), abs=1e-6), name


def test_the_order_of_a_batch_does_not_matter(models: TrainingModels) -> None:
    examples = six_of(models.task)
    assert loss_of(models, examples[::-1]).item() == pytest.approx(loss_of(models, examples).item(), rel=1e-10)


@pytest.mark.parametrize("size", [6, 4, 3, 1])
def test_a_batch_in_parts_has_the_loss_and_the_gradient_of_the_whole(models: TrainingModels, size: int) -> None:
    """A pool that lies across two parts is still one pool, and sampling probabilities go with their passages."""
    examples, task = six_of(models.task), models.task
    whole = loss_of(models, examples)
    whole.backward()
    expected = {name: weight.grad for name, weight in weights_of(models).items()}
    for weight in weights_of(models).values():
        weight.grad = None
    parts = in_parts(task, examples, size)
    terms = gradients.backward(models, parts, task.loss_weights(0.0), ProcessGroup())
    assert terms["loss"].item() == pytest.approx(whole.item(), rel=1e-10)
    found = {name: weight.grad for name, weight in weights_of(models).items()}
    assert found.keys() == expected.keys() != set()
    for name in found:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-8, atol=1e-11, msg=name)

"""Fine-tuning a cross-encoder: its loss by definition, and what a pair is."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from encore.models import cross_encoder
from encore.training.gradients import TrainingModels
from encore.training.randomness import generator
from tests.support import oracles
from tests.support.small_finetuning import loss_of, scorer_task, six_of

LENGTH, QUERY_LENGTH = 11, 7

pytestmark = pytest.mark.usefixtures("double")


def make(pooling: str = "cls") -> tuple[Any, TrainingModels]:
    return scorer_task("cross-encoder", pooling, length=LENGTH)


def scores_by_definition(task: Any, models: TrainingModels, batch: list[Any], segment: int = 1) -> np.ndarray:
    """Of each pair alone, without padding, [B, P]."""
    linear, shape = models.heads["cross"], models.encoder.config
    scores = []
    for example in batch:
        row = []
        for passage in example.passages:
            asked = task.store.queries[example.query.row].tolist()[: QUERY_LENGTH - 2]
            known = task.store.passages[passage].tolist()[: LENGTH - 1]
            ids = torch.tensor([[shape.cls, *asked, shape.sep, *known, shape.sep]])
            segments = torch.tensor([[0] * (len(asked) + 2) + [segment] * (len(known) + 1)])
            states = models.encoder(ids, None, segments)[0]
            pooled = states[0] if shape.pooling == "cls" else states.mean(0)
            row.append((pooled @ linear.weight[0] + linear.bias[0]).item())
        scores.append(row)
    return np.array(scores)


def by_definition(task: Any, models: TrainingModels, batch: list[Any], segment: int = 1) -> float:
    """Softmax over a query's own passages."""
    scores = scores_by_definition(task, models, batch, segment)
    positive, none = np.zeros(len(batch), dtype=int), np.zeros((len(batch), 3), dtype=bool)
    return oracles.choice(scores / task.step.temperature, positive, none)


def test_the_tokens_of_an_example_are_those_of_its_pairs() -> None:
    task, _ = make()
    examples = [task.example(index, generator(index)) for index in range(8)]
    masks = [[array for name, array in task.collate([one]).items() if "mask" in name] for one in examples]
    expected = [sum(int(mask.sum()) for mask in each) for each in masks]
    assert task.tokens(examples, np.zeros(8)).tolist() == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_loss_is_the_one_by_definition(pooling: str) -> None:
    task, models = make(pooling)
    found = loss_of(models, six_of(task)).item()
    assert found == pytest.approx(by_definition(task, models, six_of(task)), rel=1e-10)
    assert abs(found - by_definition(task, models, six_of(task), segment=0)) > 1e-4, "segments must be seen"


def test_a_pair_is_cut_on_both_sides_and_says_which_is_which() -> None:
    special = SimpleNamespace(pad=0, cls=2, sep=3)
    queries, passages = [np.array([7, 8, 9]), np.array([7])], [np.array([20, 21]), np.array([30, 31, 32, 33])]
    ids, mask, segments = cross_encoder.pair_inputs(queries, passages, 4, 4, special)
    assert ids.tolist() == [[2, 7, 8, 3, 20, 21, 3], [2, 7, 3, 30, 31, 32, 3]]
    assert mask.all()
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1]]
    _, mask, segments = cross_encoder.pair_inputs(queries, [passages[0], passages[0]], 4, 4, special)
    assert segments[1].tolist() == [0, 0, 0, 1, 1, 1, 0]
    assert mask[1].tolist() == [True] * 6 + [False]


def test_the_last_map_is_precise_where_the_encoder_is_not() -> None:
    torch.set_default_dtype(torch.float32)
    task, models = make()
    encoder, linear = models.encoder.float(), models.heads["cross"].float()
    arrays = task.collate(six_of(task))
    batch = [torch.from_numpy(arrays[f"pair_{name}_0"]) for name in ("ids", "mask", "segments")]
    with torch.autocast("cpu", torch.bfloat16):
        found = cross_encoder.score(encoder, linear, *batch)
        pooled = encoder(*batch)[:, 0]
    assert found.dtype == torch.float32
    expected = pooled.double() @ linear.weight[0].double() + linear.bias[0].double()
    assert (found.double() - expected).abs().max() < 1e-5


def test_a_pointwise_loss_is_the_cross_entropy_of_each_pair_for_itself() -> None:
    task, models = scorer_task("cross-encoder", length=LENGTH, loss="pointwise", temperature=0.05)
    batch = six_of(task)
    shares = 1 / (1 + np.exp(-scores_by_definition(task, models, batch)))
    assert shares.shape == (6, 3)
    expected = -np.mean(np.log(np.concatenate([shares[:, :1], 1 - shares[:, 1:]], axis=1)))
    assert loss_of(models, batch).item() == pytest.approx(expected, rel=1e-10)

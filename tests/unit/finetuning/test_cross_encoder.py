"""Fine-tuning a cross-encoder: its loss by definition, what a pair is, and parts of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import oracles
import pytest
import small_models
import torch
from batch_parts import in_parts
from torch import Tensor, nn

from encore.config.finetuning import FinetuneStep
from encore.finetuning.cross_encoder import CrossEncoder
from encore.finetuning.queries import Query
from encore.models import cross_encoder
from encore.training import gradients
from encore.training.distributed import ProcessGroup
from encore.training.gradients import TrainingModels
from encore.training.randomness import generator

LENGTH, QUERY_LENGTH = 11, 7
STEP = {
    "kind": "finetune", "collection": "c", "steps": 1, "batch": 4, "learning_rate": 1e-3, "length": LENGTH,
    "query_length": QUERY_LENGTH, "negatives": "bm25", "per_query": 2, "temperature": 0.5, "source": "test",
    "scorer": "cross-encoder",
}  # fmt: skip


class Texts(list):  # type: ignore[type-arg]
    def __init__(self, rows: list[np.ndarray]) -> None:
        super().__init__(row.astype(np.uint16) for row in rows)
        self.lengths = np.array([len(row) for row in rows])


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def make(pooling: str = "cls") -> tuple[CrossEncoder, TrainingModels]:
    rng = np.random.default_rng(5)
    store: Any = SimpleNamespace(
        passages=Texts([rng.integers(5, 96, size) for size in rng.integers(1, 16, 30)]),
        queries=Texts([rng.integers(5, 96, size) for size in rng.integers(1, 9, 12)]),
        special=SimpleNamespace(pad=0, cls=2, sep=3),
    )
    queries = [Query(i, (i,), frozenset({i}), frozenset({i}), (i + 10, i + 11, i + 12)) for i in range(8)]
    task = CrossEncoder(FinetuneStep.model_validate(STEP), queries, store)
    encoder = small_models.random_encoder(pooling=pooling).double()
    torch.manual_seed(2)
    heads = task.heads(encoder.config)
    nn.init.normal_(heads["cross"].weight, std=0.5)
    return task, TrainingModels(task, encoder, heads, torch.device("cpu"), {"precision": "fp32"})


def examples(task: CrossEncoder) -> list[Any]:
    return [task.example(index, np.random.default_rng([1, index])) for index in range(6)]


def by_definition(task: CrossEncoder, models: TrainingModels, batch: list[Any], segment: int = 1) -> float:
    """Each pair alone, without padding; softmax over a query's own passages."""
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
    positive, none = np.zeros(len(batch), dtype=int), np.zeros((len(batch), 3), dtype=bool)
    return oracles.choice(np.array(scores) / task.step.temperature, positive, none)


def loss(task: CrossEncoder, models: TrainingModels, batch: list[Any]) -> Tensor:
    arrays = {name: torch.from_numpy(array) for name, array in task.collate(batch).items()}
    return task.loss(models.encoder, models.heads, arrays)["loss"]


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
    found = loss(task, models, examples(task)).item()
    assert found == pytest.approx(by_definition(task, models, examples(task)), rel=1e-10)
    assert abs(found - by_definition(task, models, examples(task), segment=0)) > 1e-4, "segments must be seen"


def test_gradients_are_the_numeric_ones() -> None:
    task, models = make()
    batch = examples(task)
    loss(task, models, batch).backward()
    for parameter in (models.heads["cross"].weight, models.encoder.embeddings.token_type_embeddings.weight):
        assert parameter.grad is not None
        numeric = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter[-1, 0] += sign * 1e-6
                numeric.append(loss(task, models, batch).item())
                parameter[-1, 0] -= sign * 1e-6
        assert (numeric[0] - numeric[1]) / 2e-6 == pytest.approx(parameter.grad[-1, 0].item(), abs=1e-6)


def test_the_order_of_a_batch_does_not_matter() -> None:
    task, models = make()
    batch = examples(task)
    assert loss(task, models, batch[::-1]).item() == pytest.approx(loss(task, models, batch).item(), rel=1e-10)


@pytest.mark.parametrize("micro_batch", [4, 1])
def test_parts_have_the_gradients_of_the_whole_batch(micro_batch: int) -> None:
    def found(size: int) -> dict[str, Tensor]:
        task, models = make()
        gradients.backward(
            models,
            in_parts(task, examples(task), size),
            task.loss_weights(0.0),
            ProcessGroup(),
        )
        named = nn.ModuleDict({"encoder": models.encoder, "heads": models.heads}).named_parameters()
        return {name: value.grad for name, value in named if value.grad is not None}

    one, other = found(micro_batch), found(6)
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-8, atol=1e-11, msg=name)


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
    arrays = task.collate(examples(task))
    batch = [torch.from_numpy(arrays[f"pair_{name}_0"]) for name in ("ids", "mask", "segments")]
    with torch.autocast("cpu", torch.bfloat16):
        found = cross_encoder.score(encoder, linear, *batch)
        pooled = encoder(*batch)[:, 0]
    assert found.dtype == torch.float32
    expected = pooled.double() @ linear.weight[0].double() + linear.bias[0].double()
    assert (found.double() - expected).abs().max() < 1e-5

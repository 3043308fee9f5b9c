"""Late interaction: MaxSim and its loss against oracles, padding, parts of a batch, and a trained model's folder."""

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
from encore.finetuning.late_interaction import LateInteraction
from encore.finetuning.queries import Query
from encore.finetuning.retrieval_task import RetrievalTask
from encore.models import inputs, late_interaction
from encore.models.config import EncoderConfig
from encore.models.late_interaction import max_sim
from encore.training import gradients
from encore.training.distributed import ProcessGroup
from encore.training.gradients import TrainingModels
from encore.training.task import Subset

LENGTH, QUERY_LENGTH, WIDTH = 12, 7, 6
STEP = {
    "kind": "finetune", "collection": "c", "steps": 1, "batch": 4, "learning_rate": 1e-3, "length": LENGTH,
    "query_length": QUERY_LENGTH, "negatives": "bm25", "per_query": 2, "temperature": 0.05, "source": "test",
    "scorer": "late-interaction", "token_dimension": WIDTH,
}  # fmt: skip


class Texts(list):  # type: ignore[type-arg]
    def __init__(self, rows: list[np.ndarray]) -> None:
        super().__init__(rows)
        self.lengths = np.array([len(row) for row in rows])


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def make(**changes: Any) -> tuple[LateInteraction, TrainingModels]:
    rng = np.random.default_rng(5)
    store: Any = SimpleNamespace(
        passages=Texts([rng.integers(5, 96, size) for size in rng.integers(1, 16, 30)]),
        queries=Texts([rng.integers(5, 96, size) for size in rng.integers(1, 9, 12)]),
        special=SimpleNamespace(pad=0, cls=2, sep=3),
    )
    queries = [Query(i, (i,), frozenset({i}), frozenset({i}), (i + 10, i + 11, i + 12)) for i in range(8)]
    queries[0] = Query(0, (0,), frozenset({0, 1}), frozenset({0, 1}), (10, 11))  # the answer of 1 is one of 0's too
    task = LateInteraction(FinetuneStep.model_validate(STEP | changes), queries, store)
    encoder = small_models.random_encoder()
    torch.manual_seed(2)
    heads = task.heads(encoder.config)
    nn.init.normal_(heads["late"].weight, std=0.5)
    return task, TrainingModels(task, encoder.double(), heads, torch.device("cpu"), {"precision": "fp32"})


def examples(task: RetrievalTask) -> list[Any]:
    return [task.example(index, np.random.default_rng([1, index])) for index in range(6)]


def tokens(models: TrainingModels, sequence: np.ndarray, length: int, normalised: bool) -> np.ndarray:
    """The vectors of one text's content, computed alone, so without padding."""
    ids = torch.from_numpy(inputs.wrap(sequence, length, models.encoder.config))[None]
    states = models.encoder(ids, None)[0].detach().numpy()[1:-1]
    vectors = states @ models.heads["late"].weight.detach().numpy().T
    return vectors / np.sqrt((vectors**2).sum(axis=1, keepdims=True)) if normalised else vectors


def by_definition(task: LateInteraction, models: TrainingModels, batch: list[Any], both: bool = False) -> float:
    passages = [row for example in batch for row in example.passages]
    scores = oracles.max_sim(
        [tokens(models, task.store.queries[example.query.row], QUERY_LENGTH, both) for example in batch],
        [tokens(models, task.store.passages[row], LENGTH, True) for row in passages],
    )
    ignored = np.array([[row in example.query.relevant for row in passages] for example in batch])
    positive = np.arange(len(batch)) * 3
    return oracles.choice(scores / task.step.temperature, positive, ignored)


def loss(task: LateInteraction, models: TrainingModels, batch: list[Any]) -> Tensor:
    arrays = {name: torch.from_numpy(array) for name, array in task.collate(batch).items()}
    return task.loss(models.encoder, models.heads, arrays)["loss"]


@pytest.mark.parametrize("normalised", ["passages", "both"])
def test_the_loss_is_the_one_by_definition(normalised: str) -> None:
    task, models = make(normalised=normalised)
    batch = examples(task)
    assert any(1 in example.passages for example in batch[1:]), "an answer of query 0 must be in the batch"
    expected = by_definition(task, models, batch, normalised == "both")
    assert loss(task, models, batch).item() == pytest.approx(expected, rel=1e-10)
    other = by_definition(task, models, batch, normalised != "both")
    assert abs(other - expected) > 1e-3, "the check must see which vectors are normalised"


@pytest.mark.parametrize("mistake", ["scale", "mean", "special tokens", "padding"])
def test_a_planted_error_is_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task, models = make()
    expected = by_definition(task, models, examples(task))

    def wrong(queries: Tensor, own: Tensor, passages: Tensor, counted: Tensor) -> Tensor:
        if mistake == "padding":
            counted = torch.ones_like(counted)
        found = max_sim(queries, own, passages, counted)
        if mistake == "mean":
            return found / own.sum(dim=1, keepdim=True)
        return found * 1.01 if mistake == "scale" else found

    monkeypatch.setattr(late_interaction, "max_sim", wrong)
    if mistake == "special tokens":
        monkeypatch.setattr(late_interaction, "counted", lambda ids, shape: ids != shape.pad)
    assert abs(loss(task, models, examples(task)).item() - expected) > 1e-5


def test_gradients_are_the_numeric_ones() -> None:
    task, models = make()
    batch = examples(task)
    loss(task, models, batch).backward()
    parameters = [models.heads["late"].weight, models.encoder.word_embeddings]
    token = int(task.store.queries[0][0])
    for parameter, row in zip(parameters, (0, token), strict=True):
        assert parameter.grad is not None
        numeric = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter[row, 0] += sign * 1e-6
                numeric.append(loss(task, models, batch).item())
                parameter[row, 0] -= sign * 1e-6
        assert (numeric[0] - numeric[1]) / 2e-6 == pytest.approx(parameter.grad[row, 0].item(), abs=1e-6)


def test_the_order_of_a_batch_does_not_matter() -> None:
    task, models = make()
    batch = examples(task)
    assert loss(task, models, batch[::-1]).item() == pytest.approx(loss(task, models, batch).item(), rel=1e-10)


@pytest.mark.parametrize("micro_batch", [6, 4, 1])
def test_parts_have_the_gradients_of_the_whole_batch(micro_batch: int) -> None:
    def found(size: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        task, models = make()
        made = in_parts(Subset(task, np.arange(6)), examples(task), size)
        terms = gradients.backward(models, made, task.loss_weights(0.0), ProcessGroup())
        named = nn.ModuleDict({"encoder": models.encoder, "heads": models.heads}).named_parameters()
        return terms, {name: value.grad for name, value in named if value.grad is not None}

    for one, other in zip(found(micro_batch), found(6), strict=True):
        assert one.keys() == other.keys()
        for name in one:
            torch.testing.assert_close(one[name], other[name], rtol=1e-8, atol=1e-11, msg=name)


# MaxSim


def drawn(rows: int, length: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, length + 1, (rows,), generator=generator)
    return torch.randn(rows, length, 4, generator=generator), torch.arange(length) < lengths[:, None]


def test_max_sim_and_its_gradient_are_those_of_the_formula() -> None:
    (queries, own), (passages, counted) = drawn(4, 5, 0), drawn(6, 7, 1)
    weights = np.cos(np.arange(24.0)).reshape(4, 6)

    def oracle(queries: np.ndarray, passages: np.ndarray) -> float:
        texts_of = [[rows[kept] for rows, kept in zip(*pair, strict=True)] for pair in
                    ((queries, own.numpy()), (passages, counted.numpy()))]  # fmt: skip
        return float((oracles.max_sim(*texts_of) * weights).sum())

    points = [queries.numpy(), passages.numpy()]
    leaves = [queries.clone().requires_grad_(), passages.clone().requires_grad_()]
    value = (max_sim(leaves[0], own, leaves[1], counted) * torch.from_numpy(weights)).sum()
    value.backward()
    assert value.item() == pytest.approx(oracle(*points), rel=1e-10)
    for place, leaf in enumerate(leaves):
        assert leaf.grad is not None
        numeric = oracles.gradient(
            lambda x, p=place: oracle(*[x if p == i else point for i, point in enumerate(points)]), points[place]
        )
        np.testing.assert_allclose(leaf.grad.numpy(), numeric, rtol=1e-5, atol=1e-8)


def test_padding_changes_nothing() -> None:
    (queries, own), (passages, counted) = drawn(4, 5, 0), drawn(6, 7, 1)
    wide = nn.functional.pad(passages, (0, 0, 0, 3), value=9.0)
    wider = nn.functional.pad(queries, (0, 0, 0, 2), value=9.0)
    found = max_sim(wider, nn.functional.pad(own, (0, 2)), wide, nn.functional.pad(counted, (0, 3)))
    assert torch.equal(found, max_sim(queries, own, passages, counted))


def test_with_one_token_a_text_max_sim_is_the_dot_product() -> None:
    queries, passages = torch.randn(4, 1, 5), torch.randn(6, 1, 5)
    every = [torch.ones(rows, 1, dtype=torch.bool) for rows in (4, 6)]
    found = max_sim(queries, every[0], passages, every[1])
    torch.testing.assert_close(found, queries[:, 0] @ passages[:, 0].T)


def test_a_text_without_content_is_its_first_token() -> None:
    shape = small_models.random_encoder().config
    ids = torch.tensor([[shape.cls, shape.sep, shape.pad], [shape.cls, 9, shape.sep]])
    assert late_interaction.counted(ids, shape).tolist() == [[True, False, False], [False, True, False]]


def test_scores_are_precise_where_the_encoder_is_not() -> None:
    torch.manual_seed(0)
    queries, passages = torch.randn(3, 4, 16).float(), torch.randn(5, 6, 16).float()
    every = [torch.ones(part.shape[:2], dtype=torch.bool) for part in (queries, passages)]
    exact = max_sim(queries.double(), every[0], passages.double(), every[1])
    with torch.autocast("cpu", torch.bfloat16):
        found = max_sim(queries, every[0], passages, every[1])
        coarse = torch.einsum("bid,pjd->bpij", queries, passages).max(-1).values.sum(-1)
    assert (found.double() - exact).abs().max() < 1e-5
    assert (coarse.double() - exact).abs().max() > 1e-3, "the check sees bf16's rounding"


def test_the_map_to_token_vectors_has_a_bias_as_the_released_one():
    """tct_colbert's train/model_fn.py adds ``output_bias``, which starts at 0."""
    (linear,) = late_interaction.token_head(EncoderConfig(vocabulary=9, hidden=12, heads=2), 5).values()
    assert linear.bias.tolist() == [0.0] * 5

"""Late interaction: MaxSim and its loss against oracles, and padding."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from encore.models import inputs, late_interaction
from encore.models.config import EncoderConfig
from encore.models.late_interaction import max_sim
from encore.training.gradients import TrainingModels
from tests.support import oracles, small_models
from tests.support.small_finetuning import loss_of, scorer_task, six_of

LENGTH, QUERY_LENGTH = 12, 7

pytestmark = pytest.mark.usefixtures("double")


def make(**changes: Any) -> tuple[Any, TrainingModels]:
    return scorer_task("late-interaction", length=LENGTH, temperature=0.05, token_dimension=6, **changes)


def tokens(models: TrainingModels, sequence: np.ndarray, length: int, normalised: bool) -> np.ndarray:
    """The vectors of one text's content, computed alone, so without padding."""
    ids = torch.from_numpy(inputs.wrap(sequence, length, models.encoder.config))[None]
    states = models.encoder(ids, None)[0].detach().numpy()[1:-1]
    vectors = states @ models.heads["late"].weight.detach().numpy().T
    return vectors / np.sqrt((vectors**2).sum(axis=1, keepdims=True)) if normalised else vectors


def by_definition(task: Any, models: TrainingModels, batch: list[Any], both: bool = False) -> float:
    passages = [row for example in batch for row in example.passages]
    scores = oracles.max_sim(
        [tokens(models, task.store.queries[example.query.row], QUERY_LENGTH, both) for example in batch],
        [tokens(models, task.store.passages[row], LENGTH, True) for row in passages],
    )
    ignored = np.array([[row in example.query.relevant for row in passages] for example in batch])
    positive = np.arange(len(batch)) * 3
    return oracles.choice(scores / task.step.temperature, positive, ignored)


@pytest.mark.parametrize("normalised", ["passages", "both"])
def test_the_loss_is_the_one_by_definition(normalised: str) -> None:
    task, models = make(normalised=normalised)
    batch = six_of(task)
    assert any(1 in example.passages for example in batch[1:]), "an answer of query 0 must be in the batch"
    expected = by_definition(task, models, batch, normalised == "both")
    assert loss_of(models, batch).item() == pytest.approx(expected, rel=1e-10)
    other = by_definition(task, models, batch, normalised != "both")
    assert abs(other - expected) > 1e-3, "the check must see which vectors are normalised"


def test_first_tokens_are_compared_in_place_of_the_content() -> None:
    """ME-BERT: the largest product of the query's [CLS] with one of a passage's first three vectors."""
    task, models = make(normalised="none", query_vectors=1, passage_vectors=3)
    batch, linear = six_of(task), models.heads["late"]

    def vectors(sequence: np.ndarray, length: int, count: int) -> np.ndarray:
        ids = torch.from_numpy(inputs.wrap(sequence, length, models.encoder.config))[None]
        found: np.ndarray = linear(models.encoder(ids, None)[0])[:count].detach().numpy()
        return found

    passages = [row for example in batch for row in example.passages]
    known = [vectors(task.store.passages[row], LENGTH, 3) for row in passages]
    asked = [vectors(task.store.queries[example.query.row], QUERY_LENGTH, 1) for example in batch]
    scores = np.array([[(one @ other.T).max() for other in known] for one in asked])
    ignored = np.array([[row in example.query.relevant for row in passages] for example in batch])
    expected = oracles.choice(scores / task.step.temperature, np.arange(6) * 3, ignored)
    assert loss_of(models, batch).item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("mistake", ["scale", "mean", "special tokens", "padding"])
def test_a_planted_error_is_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task, models = make()
    expected = by_definition(task, models, six_of(task))

    def wrong(queries: Tensor, own: Tensor, passages: Tensor, counted: Tensor) -> Tensor:
        if mistake == "padding":
            counted = torch.ones_like(counted)
        found = max_sim(queries, own, passages, counted)
        if mistake == "mean":
            return found / own.sum(dim=1, keepdim=True)
        return found * 1.01 if mistake == "scale" else found

    monkeypatch.setattr(late_interaction, "max_sim", wrong)
    if mistake == "special tokens":
        monkeypatch.setattr(late_interaction, "counted", lambda ids, shape, first=None: ids != shape.pad)
    assert abs(loss_of(models, six_of(task)).item() - expected) > 1e-5


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

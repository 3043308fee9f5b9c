"""The losses against NumPy oracles written from the formulas, and where a formula has no value or no gradient."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from encore.training import losses
from tests.support import oracles
from tests.support.waves import wave

CASES = [
    "info_nce",
    "info_nce with ignored passages",
    "info_nce with log-q",
    "pairwise",
    "sup_con",
    "masked_lm",
    "soft_cross_entropy",
    "nt_xent",
    "jensen_shannon",
    "bag_cross_entropy sum",
    "bag_cross_entropy mean_pos",
    "bag_cross_entropy mean_vocab",
    "bag_cross_entropy sum with weights",
    "preference",
    "kl_over_pool",
    "kl_over_pairs",
    "margin_mse",
    "choice with ignored passages",
    "pairwise_over_pool",
    "ranked_pairs",
    "ranked_pairs with gains",
    "pointwise",
    "margin_mse_in_batch",
    "residual_margin",
]
DISTILLATION = ["kl_over_pool", "kl_over_pairs", "margin_mse"]


def inputs(case: str) -> tuple[str, list[np.ndarray], list[Any]]:
    """The loss of a case, its differentiable inputs and its other arguments."""
    rng = np.random.default_rng(CASES.index(case))
    queries, passages = rng.normal(size=(5, 6)), rng.normal(size=(9, 6))
    positive = np.array([0, 2, 4, 6, 2])
    if case.startswith("info_nce"):
        ignored = rng.random((5, 9)) < 0.3
        if "log-q" in case:
            return "info_nce", [queries, passages], [positive, 0.7, ignored, np.log(rng.random(9) + 0.01)]
        return "info_nce", [queries, passages], [positive, 0.7, *([ignored] if "ignored" in case else [])]
    if case == "pairwise":
        return "pairwise", [rng.normal(size=5), rng.normal(size=(5, 3))], []
    if case == "pairwise_over_pool":
        return case, [rng.normal(size=(5, 9))], [positive, rng.random((5, 9)) < 0.3]
    if case.startswith("ranked_pairs"):
        right = rng.random((5, 9)) < 0.3
        right[2] = False  # a query without a pair
        gains = 1 / np.arange(1, 10) * (np.arange(9) < 7)
        others = [right, ~right & (rng.random((5, 9)) < 0.8), *([gains] if "gains" in case else [])]
        return "ranked_pairs", [rng.normal(size=(5, 9))], others
    if case == "residual_margin":
        return case, [rng.normal(size=(5, 4))], [rng.normal(size=(5, 4))]
    if case == "margin_mse_in_batch":
        return case, [rng.normal(size=(4, 12))], [3 * rng.normal(size=(4, 12))]
    if case == "pointwise":
        return "pointwise", [rng.normal(size=(5, 4))], []
    if case.startswith("choice"):
        return "choice", [rng.normal(size=(5, 9))], [positive, rng.random((5, 9)) < 0.3]
    if case == "sup_con":
        allowed = rng.random((5, 9)) < 0.8
        chosen = allowed & (rng.random((5, 9)) < 0.4)
        chosen[3] = False  # an anchor without positives
        return "sup_con", [queries, passages], [chosen, allowed, 0.7]
    if case == "masked_lm":
        head = [rng.normal(size=(5, 6)), rng.normal(size=(11, 6)), rng.normal(size=11)]
        return "masked_lm", head, [np.array([3, 0, 10, 3, 7])]
    if case == "preference":
        return "preference", [rng.normal(size=(5, 3, 2))], []
    if case in DISTILLATION:
        student, teacher = rng.normal(size=(5, 4)), 3 * rng.normal(size=(5, 4))
        return case, [student], [teacher, *([] if case == "margin_mse" else [0.7])]
    if case == "nt_xent":
        return "nt_xent", [rng.normal(size=(6, 6))], [0.7]
    if case == "jensen_shannon":
        weights = rng.random((5, 11)) + 0.05
        return "jensen_shannon", [weights / weights.sum(axis=1, keepdims=True)], []
    if case.startswith("bag"):
        bag = np.array([[3, 0, 10, -1], [7, -1, -1, -1], [1, 2, 4, 5]])
        return "bag_cross_entropy", [rng.normal(size=(3, 11))], [bag, case.split()[1], *_weights(case, rng)]
    targets = rng.random((5, 11)) * (rng.random((5, 11)) < 0.5) + 1e-3
    return "soft_cross_entropy", [rng.normal(size=(5, 11))], [targets / targets.sum(axis=1, keepdims=True)]


def _weights(case: str, rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.random(11)] if case.endswith("weights") else []


def scalar(value: Any) -> Any:
    """A matrix as one number to which each entry adds with a weight of its own; a scalar as it is."""
    if not value.shape:
        return value
    weights = np.cos(np.arange(value.shape[0] * value.shape[1])).reshape(value.shape)
    return (value * (torch.from_numpy(weights) if isinstance(value, torch.Tensor) else weights)).sum()


def agrees(loss: Callable[..., torch.Tensor], case: str) -> bool:
    """Whether a loss and its gradients are the oracle's, to 1e-5 relative."""
    name, points, others = inputs(case)
    oracle = lambda *arguments: scalar(np.asarray(getattr(oracles, name)(*arguments)))  # noqa: E731
    tensors = [torch.tensor(point, requires_grad=True) for point in points]
    plain = [torch.tensor(other) if isinstance(other, np.ndarray) else other for other in others]
    value = scalar(loss(*tensors, *plain))
    value.backward()
    if not np.isclose(value.item(), oracle(*points, *others), rtol=1e-5, atol=0):
        return False
    for place, tensor in enumerate(tensors):
        expected = oracles.gradient(lambda x, p=place: oracle(*points[:p], x, *points[p + 1 :], *others), points[place])
        if not np.allclose(tensor.grad.numpy(), expected, rtol=1e-5, atol=1e-8):
            return False
    return True


@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradients_are_those_of_the_formula(case: str) -> None:
    assert agrees(getattr(losses, inputs(case)[0]), case)


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_sign_is_noticed(case: str) -> None:
    loss = getattr(losses, inputs(case)[0])
    assert not agrees(lambda *arguments: -loss(*arguments), case)
    assert not agrees(lambda first, *rest: loss(-first, *rest), case)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith(("info", "sup_con", "nt_x", "pref", "kl"))])
def test_a_wrong_temperature_is_noticed(case: str) -> None:
    loss = getattr(losses, inputs(case)[0])
    assert not agrees(lambda first, *rest: loss(first * 1.01, *rest), case)


PLANTED = {
    "info_nce with ignored passages": lambda q, p, own, t, ignored: losses.info_nce(q, p, own, t, ~ignored),
    "info_nce with log-q": lambda q, p, own, t, ignored, log_q: losses.info_nce(q, p, own, t, ignored, -log_q),
    "pairwise": lambda right, wrong: losses.pairwise(right, wrong.roll(1, 0)),
    "pointwise": lambda scores: losses.pointwise(scores.roll(1, 1)),
    "choice with ignored passages": lambda scores, own, ignored: losses.choice(scores, own, ~ignored),
    "pairwise_over_pool": lambda scores, own, ignored: losses.pairwise_over_pool(scores, own, ~ignored),
    "ranked_pairs": lambda scores, right, wrong: losses.ranked_pairs(scores, wrong, right),
    "ranked_pairs with gains": lambda scores, right, wrong, gains: losses.ranked_pairs(scores, right, wrong),
    "sup_con": lambda a, c, own, allowed, t: losses.sup_con(a, c, own, allowed | True, t),
    "masked_lm": lambda states, words, bias, targets: losses.masked_lm(states[:-1], words, bias, targets[:-1]),
    "nt_xent": lambda s, t: torch.nn.functional.cross_entropy(s / t, torch.arange(len(s)) ^ 1),
    "bag_cross_entropy sum": lambda z, bag, *rest: losses.bag_cross_entropy(z, bag.clamp(min=0), *rest),
    "bag_cross_entropy mean_pos": lambda z, bag, *rest: losses.bag_cross_entropy(z, bag.clamp(min=0), *rest),
    "kl_over_pairs": lambda s, t, tau: losses.kl_over_pool(s, t, tau),
    "margin_mse_in_batch": lambda s, t: losses.margin_mse(s, t),
    "residual_margin": lambda s, t: losses.residual_margin(s, -t),
    "margin_mse": lambda s, t: torch.nn.functional.mse_loss(s, t),
    "bag_cross_entropy sum with weights": lambda z, bag, how, w: losses.bag_cross_entropy(z, bag, how, w.flip(0)),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_wrong_mask_is_noticed(case: str) -> None:
    assert not agrees(PLANTED[case], case)


def test_info_nce_keeps_the_own_positive_even_if_it_is_to_be_ignored() -> None:
    queries, passages = torch.randn(3, 4), torch.randn(3, 4)
    own = torch.arange(3)
    everything = torch.ones(3, 3, dtype=torch.bool)
    assert losses.info_nce(queries, passages, own, 1.0, everything).item() == pytest.approx(0, abs=1e-6)


def test_a_correction_that_is_the_same_for_all_corrects_nothing() -> None:
    torch.manual_seed(0)
    queries, passages, own = torch.randn(3, 4).double(), torch.randn(5, 4).double(), torch.arange(3)
    plain = losses.info_nce(queries, passages, own, 0.5)
    constant = torch.full((5,), math.log(1 / 5), dtype=torch.float64)
    assert losses.info_nce(queries, passages, own, 0.5, None, constant).item() == pytest.approx(plain.item())
    often = constant + torch.tensor([0, 0, 0, 0, 3.0])
    assert losses.info_nce(queries, passages, own, 0.5, None, often).item() < plain.item(), "what is common counts less"


def test_pairs_cost_ln_two_when_equal_and_nothing_when_far_apart() -> None:
    assert losses.pairwise(torch.zeros(3), torch.zeros(3, 2)).item() == pytest.approx(math.log(2))
    assert losses.pairwise(torch.full((3,), 60.0), torch.zeros(3, 2)).item() == pytest.approx(0, abs=1e-12)
    far = torch.zeros(1, requires_grad=True)
    losses.pairwise(far, torch.full((1, 1), 1e4)).backward()
    assert far.grad.item() == pytest.approx(-1)


def test_a_batch_of_one_has_no_contrast_and_no_gradient() -> None:
    query = torch.randn(1, 4, requires_grad=True)
    loss = losses.info_nce(query, torch.randn(1, 4), torch.tensor([0]), 1.0)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-6)
    assert query.grad.abs().max() == 0


def test_no_gradient_reaches_what_is_left_out() -> None:
    queries, passages = torch.randn(2, 4), torch.randn(3, 4, requires_grad=True)
    ignored = torch.tensor([[False, False, True], [False, False, True]])
    losses.info_nce(queries, passages, torch.tensor([0, 1]), 1.0, ignored).backward()
    assert passages.grad[2].abs().max() == 0
    assert passages.grad[:2].abs().min() > 0

    candidates = torch.randn(3, 4, requires_grad=True)
    allowed = ~ignored
    losses.sup_con(queries, candidates, torch.tensor([[True, False, False]] * 2), allowed, 1.0).backward()
    assert candidates.grad[2].abs().max() == 0


def test_nothing_masked_and_no_positive_cost_nothing() -> None:
    states = torch.randn(0, 4, requires_grad=True)
    loss = losses.masked_lm(states, torch.randn(7, 4), torch.randn(7), torch.zeros(0, dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0
    none, everything = torch.zeros(2, 3, dtype=torch.bool), torch.ones(2, 3, dtype=torch.bool)
    anchors = torch.randn(2, 4, requires_grad=True)
    loss = losses.sup_con(anchors, torch.randn(3, 4), none, everything, 1.0)
    loss.backward()
    assert loss.item() == 0
    losses.sup_con(anchors, torch.randn(3, 4), none, none, 1.0).backward()
    assert torch.isfinite(anchors.grad).all()


def test_uniform_targets_share_a_row_equally() -> None:
    targets = losses.uniform_targets(torch.tensor([[2, 0, 4], [3, -1, -1], [-1, -1, -1]]), 5)
    assert targets.numpy() == pytest.approx(np.array([[1 / 3, 0, 1 / 3, 0, 1 / 3], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]))


# CPDAE's contrast


def test_the_divergence_has_a_gradient_where_pieces_have_no_probability() -> None:
    p = torch.tensor([[1.0, 0, 0], [0, 1.0, 0]], requires_grad=True)
    losses.jensen_shannon(p).sum().backward()
    assert torch.isfinite(p.grad).all()


def test_single_precision_is_enough_for_the_divergence() -> None:
    logits = torch.randn(12, 3000, generator=torch.Generator().manual_seed(0)) * 0.1 - 5  # as before any training
    values, gradients = [], []
    for precision in (torch.float32, torch.float64):
        z = logits.to(precision, copy=True).requires_grad_()
        loss = losses.nt_xent(-losses.jensen_shannon(torch.sigmoid(z) / torch.sigmoid(z).sum(1, keepdim=True)), 1.0)
        loss.backward()
        values.append(loss.item())
        gradients.append(z.grad.double())
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert (gradients[0] - gradients[1]).norm() < 1e-3 * gradients[1].norm()


def test_a_single_text_has_no_contrast_and_no_gradient() -> None:
    p = torch.tensor([[0.3, 0.7], [0.6, 0.4]], requires_grad=True)
    loss = losses.nt_xent(-losses.jensen_shannon(p), 1.0)
    loss.backward()
    assert loss.item() == 0
    assert p.grad.abs().max() == 0


def test_an_empty_bag_is_finite_in_every_reduction() -> None:
    for reduction in ("sum", "mean_pos", "mean_vocab"):
        assert torch.isfinite(losses.bag_cross_entropy(torch.randn(1, 9), torch.full((1, 1), -1), reduction))


# Distillation


def scores_of(rows: int = 5, columns: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    student = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    return student.requires_grad_(), 3 * torch.randn(rows, columns, generator=generator, dtype=torch.float64)


def test_margins_between_queries_are_those_of_the_released_code() -> None:
    """matchmaker at 210b9da, the in-batch loss of train.py with its ``MSMarginLoss``; run once in float64."""
    queries, right, wrong = (wave(4, 6, key=key) for key in ("queries", "positives", "negatives"))
    queries.requires_grad_()
    wanted = [wave(4, 4, key=f"teacher of {key}") for key in ("positives", "negatives")]
    student, teacher = (
        torch.stack(scores, dim=2).flatten(1) for scores in ([queries @ right.T, queries @ wrong.T], wanted)
    )
    loss = losses.margin_mse_in_batch(student, teacher)
    (gradient,) = torch.autograd.grad(loss, queries)
    slope = (gradient * wave(4, 6, key="direction")).sum().item()
    assert [loss.item(), slope] == pytest.approx([13.488492996877966, -26.480961894889553], rel=1e-12)


@pytest.mark.parametrize("case", DISTILLATION)
def test_only_the_student_learns(case: str) -> None:
    student, teacher = scores_of()
    teacher.requires_grad_()
    getattr(losses, case)(student, teacher, *inputs(case)[2][1:]).backward()
    assert teacher.grad is None
    assert student.grad.abs().max() > 0


def test_a_sure_teacher_gives_finite_gradients() -> None:
    student = torch.zeros(2, 3, requires_grad=True)
    loss = losses.kl_over_pool(student, torch.tensor([[900.0, 0, 0], [0, 0, -900.0]]), 0.25)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(student.grad).all()

"""Condenser and coCondenser: their losses from the formulas, through the whole encoder, and what spans are drawn."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore.errors import EncoreError
from encore.training.randomness import generator
from tests.support import oracles, small_store
from tests.support import transformer_oracles as plain
from tests.support.small_decoding import TEXTS, Drawn, assert_gradient, encoded, numbers
from tests.support.small_objective import encoder, make
from tests.support.waves import READ, loss_and_slope
from tests.support.whole_loss import whole_loss

PAIRED = [
    [[[20, 21, 80, 22], [23, 24, 90, 25, 26], [27, 28]]],
    [[[30, 31, 32, 33], [34, 35], [36, 37, 38]]],
    [[[40, 41]]],
]


class Case(Drawn):
    """One of both objectives, with an encoder of two layers."""

    def __init__(self, name: str, pooling: str = "cls", **fields: Any) -> None:
        paired = name == "cocondenser"
        fields = {"length": 8, **fields} if paired else fields
        super().__init__(name, pooling, PAIRED if paired else TEXTS, layers=2, **fields)

    def loss(self) -> torch.Tensor:
        return whole_loss(self.objective, self.model, self.heads, self.batch)["loss"]

    def expected(self, early: int) -> float:
        """The loss from its formula, the encoder included."""
        shape, fields = self.model.config, self.objective.fields
        head, late, condensed, texts = numbers(self.heads["head"]), [], [], []
        for ids, real in zip(self.arrays["ids"], self.arrays["mask"], strict=True):
            states = encoded(self.model, ids, real)
            texts.append(states[-1][0] if shape.pooling == "cls" else states[-1][real].mean(axis=0))
            late.append(states[-1])
            condensed.append(plain.auto_encoding(texts[-1], states[early], real, head, shape.heads, shape.epsilon))
        total = 0.0
        for weight, rows in ((fields.mlm_weight, late), (fields.head_weight, condensed)):
            masked = np.concatenate(rows)[self.arrays["masked"]]
            words = self.model.word_embeddings.detach().numpy()
            logits = plain.mlm_logits(masked, words, numbers(self.heads["mlm"]), shape.epsilon)
            total += weight * oracles.cross_entropy(logits, self.arrays["labels"])
        if fields.objective == "cocondenser":
            total += fields.contrast_weight * contrast(np.stack(texts))
        return total

    def agrees(self, early: int = 1) -> None:
        """Assert that the loss is that of the formula, and so is its gradient along four directions of all weights."""
        loss, both = self.loss(), nn.ModuleDict({"encoder": self.model, "heads": self.heads})
        assert loss.item() == pytest.approx(self.expected(early), rel=1e-8)
        assert_gradient(loss, both, lambda: self.expected(early), directions=4)


def contrast(spans: np.ndarray) -> float:
    """Each span among all others by its product with its neighbour of the same article."""
    total = 0.0
    for i, own in enumerate(spans):
        partner = i + 1 if i % 2 == 0 else i - 1
        scores = [float(own @ other) for k, other in enumerate(spans) if k != i]
        most = max(scores)
        total += most + np.log(sum(np.exp(score - most) for score in scores)) - float(own @ spans[partner])
    return total / len(spans)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("fields", [{}, {"early_layers": 2}, {"head_layers": 1, "head_weight": 0.3, "mlm_weight": 0.7}])
def test_condensers_loss_and_gradient_are_those_of_the_formula(fields: dict[str, Any], pooling: str) -> None:
    Case("condenser", pooling, **fields).agrees(fields.get("early_layers", 1))


@pytest.mark.parametrize("fields", [{}, {"contrast_weight": 0.5, "mlm_weight": 0.0, "length": 10}])
def test_cocondensers_loss_and_gradient_are_those_of_the_formula(fields: dict[str, Any]) -> None:
    Case("cocondenser", **fields).agrees()


@pytest.mark.parametrize(
    ("name", "released"),
    [("condenser", [4.46661941653862, -0.8939231984805864]), ("cocondenser", [5.568445044027308, -0.9686072868032454])],
)
def test_the_loss_is_that_of_the_released_model(name: str, released: list[float]) -> None:
    """luyug/Condenser at 74880ab, both models for pre-training with `--late_mlm`, from the first of two layers.

    Run once with these weights and inputs (transformers 5.23, eager attention, float64).
    """
    fields = {"texts": PAIRED, "length": 8} if name == "cocondenser" else {}
    assert loss_and_slope(name, READ, **fields) == pytest.approx(released, rel=1e-12)


def test_early_states_are_of_the_lower_half_of_the_layers() -> None:
    model = encoder(layers=4)
    ids = torch.arange(5, 17).reshape(2, 6)
    half, last = model.early_and_late(ids, None)
    assert torch.equal(half, model.early_and_late(ids, None, 2)[0])
    assert torch.allclose(last, model(ids, None))
    assert torch.equal(model.early_and_late(ids, None, 4)[0], last)
    with pytest.raises(EncoreError, match="`early_layers` is 5, and the encoder has 4 layers"):
        model.early_and_late(ids, None, 5)


def test_spans_are_two_different_texts_of_one_article_all_equally_often() -> None:
    objective = make("cocondenser", small_store.store(PAIRED), length=8)
    articles = [set(range(20, 30)) | {80, 90}, set(range(30, 40))]
    assert len(objective) == sum(sum(objective.document == article) for article in (0, 1))
    drawn: dict[int, list[int]] = {}
    for epoch in range(300):
        for index in range(len(objective)):
            first, second = (set(text.ids.tolist()) for text in objective.example(index, generator(0, epoch, index)))
            assert not first & second
            assert any(first | second <= article for article in articles)
            drawn.setdefault(index, []).append(min(second))
    for partners in drawn.values():
        counts = np.unique(partners, return_counts=True)[1]
        assert counts.min() > 0.6 * 300 / len(counts)

"""Objectives with a decoder on three short texts, their loss from its formula, and ways to plant a mistake."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from encore.models.encoder import Encoder
from encore.training.randomness import generator
from tests.support import oracles, small_store
from tests.support import transformer_oracles as plain
from tests.support.small_objective import encoder, make
from tests.support.whole_loss import whole_loss

Array = np.ndarray
TEXTS = [[[[20, 21, 80, 22, 23, 24, 90, 25]]], [[[30, 31, 32]]], [[[40]]]]


PLAIN_NAMES = {
    r"^encoder\.": "",
    r"attention\.self\.": "attention.",
    r"attention\.output\.dense": "attention.output",
    r"attention\.output\.LayerNorm": "attention_norm",
    r"intermediate\.dense": "feed_forward.inner",
    r"(\d)\.output\.dense": r"\1.feed_forward.outer",
    r"(\d)\.output\.LayerNorm": r"\1.feed_forward_norm",
}


class Drawn:
    """An objective, an encoder and heads with drawn weights, and a batch of all examples; in float64."""

    def __init__(self, name: str, pooling: str, texts: Any, layers: int, **fields: Any) -> None:
        self.objective = make(name, small_store.store(texts), **fields)
        self.model = encoder(pooling=pooling, layers=layers, hidden=8, heads=2, intermediate=12)
        self.heads = self.objective.heads(self.model)
        draw(self.model, 1)
        draw(self.heads, 2)
        examples = [self.objective.example(i, generator(0, "example", 0, i)) for i in range(len(self.objective))]
        self.arrays = self.objective.collate(examples)
        self.batch = {key: torch.from_numpy(array) for key, array in self.arrays.items()}


class Case(Drawn):
    """An objective with a decoder, and an encoder that gives the same states for whatever it reads."""

    def __init__(self, name: str, pooling: str = "cls", texts: Any = TEXTS, **fields: Any) -> None:
        super().__init__(name, pooling, texts, layers=1, **fields)
        self.hidden = np.random.default_rng(3).normal(size=(*self.arrays["ids"].shape, 8))

    def terms(self, hidden: Array) -> tuple[dict[str, Tensor], Tensor]:
        """The objective's terms where the encoder gives ``hidden``, and that as a leaf."""
        leaf = torch.from_numpy(hidden).requires_grad_()
        self.model.forward = lambda ids, mask, segments=None: leaf  # type: ignore[method-assign]
        return whole_loss(self.objective, self.model, self.heads, self.batch), leaf

    def pooled(self, hidden: Array, row: int) -> Array:
        real = self.arrays["mask"][row]
        return hidden[row, 0] if self.model.config.pooling == "cls" else hidden[row, real].mean(axis=0)

    def embedded(self, row: int) -> Array:
        return plain.embeddings(self.arrays["text"][row], numbers(self.model.embeddings), self.model.config.epsilon)

    @property
    def words(self) -> Array:
        return self.model.word_embeddings.detach().numpy()

    def vocabulary(self, states: Array) -> Array:
        return plain.mlm_logits(states, self.words, numbers(self.heads["mlm"]), self.model.config.epsilon)

    def expected(self, hidden: Array) -> float:
        """The loss of ``hidden`` [B, L, H] from its formula."""
        decode = DECODE[self.objective.fields.objective]
        rows = np.concatenate([decode(self, self.pooled(hidden, row), row) for row in range(len(hidden))])
        mlm = self.vocabulary(hidden.reshape(-1, 8)[self.arrays["masked"]])
        states = rows[self.arrays["decoded"]]
        decoder = states @ self.words.T if decode is seed else self.vocabulary(states)
        weights = self.objective.fields
        return weights.mlm_weight * oracles.cross_entropy(
            mlm, self.arrays["labels"]
        ) + weights.decoder_weight * oracles.cross_entropy(decoder, self.arrays["decoded_labels"])

    def agrees(self) -> None:
        """Assert that loss and gradient are those of the formula; the gradient along 24 random directions."""
        terms, leaf = self.terms(self.hidden)
        assert terms["loss"].item() == pytest.approx(self.expected(self.hidden), rel=1e-8)
        (found,) = torch.autograd.grad(terms["loss"], leaf)
        directions = np.random.default_rng(4).normal(size=(24, *self.hidden.shape))
        directions[:8, :, 1:] = 0  # h alone, under [CLS] pooling

        def along(steps: Array) -> float:
            return self.expected(self.hidden + np.tensordot(steps, directions, 1))

        expected = oracles.gradient(along, np.zeros(24))
        assert np.tensordot(directions, found.numpy(), 3) == pytest.approx(expected, rel=1e-5, abs=1e-8)


# What a decoder makes of h, row by row: states [L, H].


def autoencoding(case: Case, h: Array, row: int) -> Array:
    shape, decoder = case.model.config, numbers(case.heads["decoder"])
    return plain.auto_encoding(h, case.embedded(row), case.arrays["mask"][row], decoder, shape.heads, shape.epsilon)


def autoregression(case: Case, h: Array, row: int) -> Array:
    shape, decoder = case.model.config, numbers(case.heads["decoder"])
    before = plain.before(case.hidden.shape[1], case.objective.fields.attention_window)
    return plain.auto_regression(h, case.embedded(row), before, decoder, shape.heads, shape.epsilon)


def enhanced(case: Case, h: Array, row: int) -> Array:
    shape, decoder = case.model.config, numbers(case.heads["decoder"])
    places = case.model.embeddings.position_embeddings.weight.detach().numpy()
    residual = case.objective.fields.variant == "code"
    given = (h, places, case.embedded(row), seen(case, row), decoder, shape.heads, shape.epsilon, residual)
    return plain.enhanced(*given)


def seed(case: Case, h: Array, row: int) -> Array:
    before = plain.before(case.hidden.shape[1], case.objective.fields.attention_window)
    text = case.words[case.arrays["text"][row]]
    return plain.seed(h, text, before, numbers(case.heads["decoder"]), case.model.config.heads)


DECODE: dict[str, Callable[[Case, Array, int], Array]] = {
    "autoencoding": autoencoding,
    "autoregression": autoregression,
    "enhanced": enhanced,
    "seed": seed,
}


def seen(case: Case, row: int) -> Array:
    """Which pieces each position sees in enhanced decoding, [L, L]."""
    return seen_in(case.arrays, row, case.objective.fields.visible_masks)


def seen_in(arrays: dict[str, Array], row: int, most: int) -> Array:
    words, number, budget, real = (arrays[name][row] for name in ("words", "numbers", "budgets", "mask"))
    return plain.own_masks(words, int(number), int(budget), real, most)


def assert_gradient(loss: Tensor, modules: nn.Module, expected: Callable[[], float], directions: int) -> None:
    """Assert that a loss's gradient along random directions of all weights is that of its formula."""
    rng = np.random.default_rng(4)
    weights = [weight for weight in modules.parameters() if weight.requires_grad]
    found = torch.autograd.grad(loss, weights, allow_unused=True)
    for _ in range(directions):
        step = [torch.from_numpy(rng.normal(size=weight.shape)) for weight in weights]
        along = sum(float((a * b).sum()) for a, b in zip(found, step, strict=True) if a is not None)
        values = []
        for size in (1e-6, -2e-6, 1e-6):  # forth, to the other side, and back
            for weight, direction in zip(weights, step, strict=True):
                weight.data += size * direction
            values.append(expected())
        assert along == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-6)


def draw(module: nn.Module, seed: int) -> None:
    """Weights in float64, large enough that a mistake in any part shows."""
    rng = torch.Generator().manual_seed(seed)
    for parameter in module.double().parameters():
        parameter.data = 0.5 * torch.randn(parameter.shape, generator=rng, dtype=torch.float64)


def encoded(
    model: Encoder,
    ids: np.ndarray,
    real: np.ndarray,
    embedded: np.ndarray | None = None,
    layers: dict[str, np.ndarray] | None = None,
) -> list[np.ndarray]:
    """The embeddings of a text and its states behind each layer, [L, H] each; other layers over others if given."""
    shape, parameters = model.config, layers or numbers(model.encoder)
    for pattern, name in PLAIN_NAMES.items():
        parameters = {re.sub(pattern, name, key): value for key, value in parameters.items()}
    first = plain.embeddings(ids, numbers(model.embeddings), shape.epsilon) if embedded is None else embedded
    states, seen = [first], np.tile(real, (len(ids), 1))
    for layer in range(sum(name.endswith("attention.query.bias") for name in parameters)):
        given = (states[-1], states[-1], seen, parameters, f"layer.{layer}", shape.heads, shape.epsilon)
        states.append(plain.post_norm(*given, residual=True))
    return states


def numbers(module: nn.Module) -> dict[str, Array]:
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def assert_finite(case: Case) -> None:
    """A whole pass through the true encoder gives a finite loss and finite gradients."""
    model: Encoder = encoder(layers=1, hidden=8, heads=2, intermediate=12).double()
    whole_loss(case.objective, model, case.heads, case.batch)["loss"].backward()
    gradients = [p.grad for p in (*model.parameters(), *case.heads.parameters()) if p.grad is not None]
    assert gradients
    assert all(torch.isfinite(gradient).all() for gradient in gradients)

"""SimLM: the loss from its formula, what is replaced, and a generator that stays what the training started from."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from encore.models import replacing
from encore.models.replacing import Generator
from encore.training.randomness import generator
from tests.support import oracles, small_store, waves
from tests.support import transformer_oracles as plain
from tests.support.small_decoding import TEXTS, assert_gradient, draw, encoded, numbers
from tests.support.small_objective import batch_of, encoder, make
from tests.support.whole_loss import whole_loss


class Case:
    """The objective, a batch of it, and a model of two layers, in float64."""

    def __init__(self, pooling: str = "cls", **fields: Any) -> None:
        self.objective = make("simlm", small_store.store(TEXTS), **fields)
        self.model = encoder(pooling=pooling, layers=2, hidden=8, heads=2, intermediate=12)
        draw(self.model, 1)
        self.heads = self.objective.heads(self.model)
        draw(self.heads["mlm"], 2)
        self.objective.begin(self.heads)
        self.heads["generator"].double()
        draw(self.model, 3)  # the generator stays behind
        self.arrays, self.batch = batch_of(self.objective, range(len(self.objective)))

    def read(self, reader: int) -> np.ndarray:
        """The texts with pieces drawn for the masked ones: the first whose sum of probabilities passes the chance."""
        frozen = self.heads["generator"]
        ids, rows = self.arrays["ids"].copy(), []
        ids.flat[self.arrays[f"replaced_{reader}"]] = small_store.Special().mask
        for row, real in zip(ids, self.arrays["mask"], strict=True):
            rows.append(encoded(frozen.encoder, row, real)[-1])
        states = np.concatenate(rows)
        words = frozen.encoder.word_embeddings.numpy()
        for place, chance in zip(self.arrays[f"replaced_{reader}"], self.arrays[f"chance_{reader}"], strict=True):
            logits = plain.mlm_logits(states[place], words, numbers(frozen.head), self.model.config.epsilon)
            odds, total, piece = np.exp(logits - logits.max()), 0.0, -1
            while total <= chance * odds.sum():
                piece += 1
                total += odds[piece]
            ids.flat[place] = piece
        return ids

    def expected(self) -> float:
        shape, late, decoded = self.model.config, [], []
        layers = numbers(self.heads["decoder"])
        for row, (first, second) in enumerate(zip(self.read(0), self.read(1), strict=True)):
            real = self.arrays["mask"][row]
            states = encoded(self.model, first, real)[-1]
            h = states[0] if shape.pooling == "cls" else states[real].mean(axis=0)
            embedded = plain.embeddings(second, numbers(self.model.embeddings), shape.epsilon)
            late.append(states)
            decoded.append(encoded(self.model, second, real, np.vstack([h, embedded[1:]]), layers)[-1])
        words, total = self.model.word_embeddings.detach().numpy(), 0.0
        for rows in (late, decoded):
            states = np.concatenate(rows)[self.arrays["decoded"]]
            logits = plain.mlm_logits(states, words, numbers(self.heads["mlm"]), shape.epsilon)
            total += oracles.cross_entropy(logits, self.arrays["decoded_labels"])
        return total

    def agrees(self) -> None:
        loss = whole_loss(self.objective, self.model, self.heads, self.batch)["loss"]
        assert loss.item() == pytest.approx(self.expected(), rel=1e-8)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("fields", [{}, {"decoder_layers": 1, "mask_ratio": 0.6, "decoder_mask_ratio": 0.9}])
def test_the_loss_is_that_of_the_formula(fields: dict[str, Any], pooling: str) -> None:
    Case(pooling, **fields).agrees()


def test_the_loss_is_that_of_the_released_model() -> None:
    """microsoft/unilm at 63435c6, ReplaceLM of simlm/src/models/rlm.py, given the pieces that ours draws.

    Run once with these weights and inputs (transformers 5.23, eager attention, float64).
    """
    replaced = {
        "replaced_0": torch.tensor([2, 8, 13]),
        "chance_0": torch.tensor([0.1, 0.5, 0.9]).double(),
        "replaced_1": torch.tensor([2, 3, 8, 9, 13, 20]),
        "chance_1": torch.tensor([0.1, 0.3, 0.5, 0.6, 0.7, 0.9]).double(),
    }
    batch = {"ids": waves.TEXT, "mask": waves.TEXT != 0, **waves.REBUILT, **replaced}
    released = [5.130226336987031, 1.302449114548609]
    assert waves.loss_and_slope("simlm", batch) == pytest.approx(released, rel=1e-12)


def test_the_gradient_is_along_the_loss() -> None:
    """Which depends on weights through encoder, decoder and head; the drawn pieces are constants."""
    case = Case()
    loss = whole_loss(case.objective, case.model, case.heads, case.batch)["loss"]
    assert_gradient(loss, nn.ModuleDict({"encoder": case.model, "heads": case.heads}), case.expected, directions=1)


def test_the_decoder_loses_the_encoders_pieces_and_more() -> None:
    objective = make("simlm")
    shares = []
    for index in range(len(objective)):
        example = objective.example(index, generator(0, index))
        assert set(example.places[0]) <= set(example.places[1])
        shares.append([len(places) / (len(example.ids) + 2) for places in example.places])
    assert np.mean(shares, axis=0) == pytest.approx([0.3, 0.5], abs=0.03)


def test_every_piece_but_the_unknown_is_predicted() -> None:
    arrays, _ = batch_of(make("simlm", small_store.store([[[[20, 1, 21]]]])), range(1))
    assert arrays["decoded_labels"].tolist() == [20, 21]
    assert arrays["decoded"].tolist() == [1, 3]


def test_pieces_are_drawn_as_often_as_the_generator_predicts_them() -> None:
    frozen = Generator(encoder())
    torch.nn.init.normal_(frozen.head.bias, std=2.0)
    ids, mask = torch.full((1, 3), 4), torch.ones(1, 3, dtype=torch.bool)
    expected = frozen.head(frozen.encoder(ids, mask)[0, 1:2], frozen.encoder.word_embeddings).softmax(-1)[0]
    chances = (torch.arange(400).double() + 0.5) / 400
    drawn = torch.stack([frozen(ids, mask, torch.tensor([1]), chance[None])[0, 1] for chance in chances])
    frequency = torch.bincount(drawn, minlength=len(expected)) / len(drawn)
    assert torch.allclose(frequency, expected, atol=1.01 / len(drawn))


def test_the_generator_is_the_start_and_is_neither_trained_nor_dropped_out() -> None:
    objective, model = make("simlm"), encoder(dropout=0.5)
    heads = objective.heads(model)
    torch.nn.init.normal_(heads["mlm"].bias)
    objective.begin(heads)
    model.train()
    heads.train()
    assert not any(module.training for module in heads["generator"].modules())
    assert not any(parameter.requires_grad for parameter in heads["generator"].parameters())
    for name, value in model.state_dict().items():
        assert torch.equal(value, heads["generator"].encoder.state_dict()[name])
    assert torch.equal(heads["generator"].head.bias, heads["mlm"].bias)
    for layer, copied in zip(model.encoder.layer[-2:], heads["decoder"].layer, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(layer.parameters(), copied.parameters(), strict=True))
    assert "generator" not in objective.fields.save_heads


def test_pieces_are_the_same_however_many_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities of all masked places at once are gigabytes."""
    case, rows, draw_rows = Case(), [], replacing._draw

    def counted(logits: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
        rows.append(len(logits))
        return draw_rows(logits, chance)

    given = [case.batch[name] for name in ("ids", "mask", "replaced_1", "chance_1")]
    together = case.heads["generator"](*given)
    monkeypatch.setattr(replacing, "AT_ONCE", 1)
    monkeypatch.setattr(replacing, "_draw", counted)
    assert torch.equal(case.heads["generator"](*given), together)
    assert rows == [1] * len(case.arrays["replaced_1"])

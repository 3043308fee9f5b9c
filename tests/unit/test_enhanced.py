"""Enhanced decoding: the loss from its formula, and the masks, drawn all at once, against one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_store
import torch
import transformer_oracles as plain
from small_decoding import MISTAKES, TEXTS, Case, assert_finite, numbers, plant, reads
from small_objective import STEP, batch_of, make

from encore import objectives
from encore.models.decoders import each_its_own
from encore.objectives.parts.masking import count_to_mask
from encore.objectives.parts.word_masks import word_masks
from encore.training.randomness import generator


def seen(case: Case, row: int) -> np.ndarray:
    return plain.own_masks(*(case.arrays[name][row] for name in ("hidden", "picks", "mask")))


def decode(case: Case, h: np.ndarray, row: int) -> np.ndarray:
    shape, decoder = case.model.config, numbers(case.heads["decoder"])
    places = case.model.embeddings.position_embeddings.weight.detach().numpy()
    residual = case.objective.fields.variant == "code"
    arguments = (h, places, case.embedded(row), seen(case, row), decoder, shape.heads, shape.epsilon, residual)
    return plain.enhanced(*arguments)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("variant", ["code", "paper"])
def test_loss_and_gradient_are_those_of_the_formula(variant: str, pooling: str) -> None:
    Case("enhanced", pooling, variant=variant, decoder_weight=0.7).agrees(decode)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("enhanced")
    plant(mistake, monkeypatch)
    with pytest.raises(AssertionError):
        case.agrees(decode)


def test_the_other_reading_is_found() -> None:
    case = Case("enhanced", variant="paper")
    case.objective.fields = case.objective.fields.model_copy(update={"variant": "code"})
    terms, _ = case.terms(case.hidden)
    case.objective.fields = case.objective.fields.model_copy(update={"variant": "paper"})
    assert terms["loss"].item() != pytest.approx(case.expected(case.hidden, decode), rel=1e-3)


def test_defaults_are_the_released_code() -> None:
    fields = objectives.fields({**STEP, "objective": "enhanced"}).model_dump()
    expected = {"mask_ratio": 0.3, "decoder_mask_ratio": 0.5, "visible_masks": 256, "variant": "code"}
    assert {name: fields[name] for name in expected} == expected


# What a position sees


def test_no_position_sees_itself_or_padding_and_all_others_see_h() -> None:
    arrays, batch = batch_of(make("enhanced"))
    found = each_its_own(batch["hidden"], batch["picks"], batch["mask"]).numpy()
    for row, real in enumerate(arrays["mask"]):
        assert not found[row].diagonal().any()
        assert not found[row][:, ~real].any()
        assert found[row, 1:, 0].all()
        assert found[row, real.sum() - 1 != np.arange(len(real)), real.sum() - 1].all()  # [SEP]
        assert found[row].any(axis=1).all()
        assert np.array_equal(found[row], plain.own_masks(arrays["hidden"][row], arrays["picks"][row], real))


def test_a_position_reads_h_and_what_its_mask_leaves() -> None:
    case = Case("enhanced")
    embedded = case.model.embeddings(case.batch["text"], None).detach().requires_grad_()
    h = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    places = case.model.embeddings.position_embeddings.weight[: embedded.shape[1]]
    visible = each_its_own(*(case.batch[name] for name in ("hidden", "picks", "mask")))
    states = case.heads["decoder"](h, places, embedded, visible)
    for column in range(1, 9):
        found = reads(states, (0, column), embedded)
        expected = seen(case, 0)[column]
        expected[0] = False  # h stands in the place of [CLS]
        assert np.array_equal(found[0], expected)
        assert not found[1:].any()
        (gradient,) = torch.autograd.grad(states[0, column].pow(2).sum(), h, retain_graph=True)
        assert (gradient.abs().sum(-1) > 0).tolist() == [True, False, False]


def test_every_token_but_the_first_and_the_last_is_predicted() -> None:
    arrays, _ = batch_of(make("enhanced"))
    rows, columns = np.divmod(arrays["decoded"], arrays["ids"].shape[1])
    for row, real in enumerate(arrays["mask"]):
        inner = list(range(1, real.sum() - 1))
        assert columns[rows == row].tolist() == inner
        assert arrays["decoded_labels"][rows == row].tolist() == arrays["text"][row, inner].tolist()
    assert (arrays["text"] != 4).all()  # the decoder's text is unmasked


# The masks of a text


def one_after_another(starts: np.ndarray, n: int, count: int, masks: int, rng: np.random.Generator) -> np.ndarray:
    """The rule as it is written, in the orders that ``word_masks`` draws."""
    words = [range(start, end) for start, end in zip(starts, [*starts[1:], n], strict=True)]
    bits = np.uint32(len(words).bit_length())
    drawn = rng.integers(1 << 32, size=(masks, len(words)), dtype=np.uint32) >> bits
    chosen = np.zeros((masks, n), dtype=bool)
    for row, order in zip(chosen, drawn, strict=True):
        for word in np.argsort(order, kind="stable"):
            if row.sum() + len(words[word]) <= count:
                row[list(words[word])] = True
    return chosen


def test_masks_are_those_that_one_word_after_another_gives() -> None:
    rng = np.random.default_rng(0)
    for index in range(300):
        n, count = rng.integers(1, 60, size=2).tolist()
        starts = np.flatnonzero((rng.random(n) < rng.random()) | (np.arange(n) == 0))
        found = word_masks(starts, n, count, 16, generator(0, index))
        assert np.array_equal(found, one_after_another(starts, n, count, 16, generator(0, index)))


def test_masks_are_those_of_the_released_collator() -> None:
    """ma787639046/bowdpr at 5ebd641, ``_whole_word_mask`` (RetroMAE's rule), its shuffles replaced by these orders."""
    starts = np.array([i for i in range(30) if i % 7 not in (2, 3, 5)])
    masks = word_masks(starts, 30, count_to_mask(30, 0.3), 4, generator(0))
    assert [np.flatnonzero(row).tolist() for row in masks] == [
        [6, 15, 16, 17, 18, 19, 21, 22, 23, 24],
        [13, 14, 15, 16, 17, 21, 25, 26, 27, 28],
        [11, 12, 14, 15, 16, 17, 18, 19, 27, 29],
        [4, 5, 6, 15, 16, 17, 18, 19, 20, 28],
    ]


def test_masks_hide_half_of_a_text_all_words_alike_and_independently() -> None:
    starts = np.flatnonzero(np.random.default_rng(0).random(60) < 0.7)
    starts[0] = 0
    count = count_to_mask(60, 0.5)
    masks = word_masks(starts, 60, count, 4000, generator(0))
    assert masks.sum(axis=1).max() == count
    assert masks.mean() == pytest.approx(count / 60, abs=0.01)
    single = masks[:, [start for start in starts if start + 1 in starts]]
    assert single.mean(axis=0) == pytest.approx(np.full(single.shape[1], single.mean()), abs=0.03)
    assert np.mean(masks[1:] == masks[:-1]) == pytest.approx(0.5, abs=0.02)


def test_positions_pick_among_all_masks_of_a_text() -> None:
    objective = make("enhanced", visible_masks=4)
    picks = np.concatenate([objective.example(index, generator(0, index)).picks for index in range(len(objective))])
    assert np.bincount(picks) / len(picks) == pytest.approx(np.full(4, 0.25), abs=0.03)
    short = make("enhanced", small_store.store(TEXTS)).example(1, generator(0))
    assert short.hidden.shape == (5, 1)  # [CLS], three pieces and [SEP]: as many masks, a byte each


@pytest.mark.parametrize("texts", [[[[[40]]]], [[[[40, 41]]]], [[[[40, 80, 81, 82, 83]]]]])
def test_the_shortest_texts_are_learned_from(texts: list[Any]) -> None:
    assert_finite(Case("enhanced", texts=texts))

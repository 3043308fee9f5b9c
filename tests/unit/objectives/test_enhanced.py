"""Enhanced decoding: what a position sees, and the masks, drawn all at once, against one word after the other."""

import numpy as np
import pytest
import torch

from encore.models import word_masks
from encore.models.word_masks import visible
from encore.objectives.parts.masked_texts import count_to_mask
from encore.training.randomness import generator
from tests.support import transformer_oracles as plain
from tests.support import waves
from tests.support.small_decoding import Case, seen_in
from tests.support.small_objective import batch_of, make


def drawn(batch: dict[str, torch.Tensor], most: int = 256) -> np.ndarray:
    return visible(*(batch[name] for name in ("words", "numbers", "budgets", "mask")), most).numpy()


def test_the_other_reading_is_found() -> None:
    case = Case("enhanced", variant="paper")
    case.objective.fields = case.objective.fields.model_copy(update={"variant": "code"})
    terms, _ = case.terms(case.hidden)
    case.objective.fields = case.objective.fields.model_copy(update={"variant": "paper"})
    assert terms["loss"].item() != pytest.approx(case.expected(case.hidden), rel=1e-3)


def test_the_loss_is_that_of_the_released_model() -> None:
    """staoxiao/RetroMAE at ee37587, RetroMAEForPretraining, given the masks that ours draws.

    Run once with these weights and inputs (transformers 5.23, eager attention, float64).
    """
    words = [[-1, 0, 0, 1, 2, -1], [-1, 0, 1, 2, -1, -1], [-1, 0, 1, -1, -1, -1], [-1, 0, 1, -1, -1, -1]]
    own = {"text": waves.TEXT, "words": torch.tensor(words), "numbers": torch.arange(11, 15)}
    batch = {**waves.READ, **waves.REBUILT, **own, "budgets": torch.tensor([2, 2, 1, 1])}
    released = [4.651795509089498, -0.11923026028052264]
    assert waves.loss_and_slope("enhanced", batch) == pytest.approx(released, rel=1e-12)


# What a position sees


def test_no_position_sees_itself_or_padding_and_all_others_see_h() -> None:
    arrays, batch = batch_of(make("enhanced"))
    found = drawn(batch)
    for row, real in enumerate(arrays["mask"]):
        assert not found[row].diagonal().any()
        assert not found[row][:, ~real].any()
        assert found[row, 1:, 0].all()
        assert found[row, real.sum() - 1 != np.arange(len(real)), real.sum() - 1].all()  # [SEP]
        assert found[row].any(axis=1).all()
        assert np.array_equal(found[row], seen_in(arrays, row, 256))


def test_every_token_but_the_first_and_the_last_is_predicted() -> None:
    arrays, _ = batch_of(make("enhanced"))
    rows, columns = np.divmod(arrays["decoded"], arrays["ids"].shape[1])
    for row, real in enumerate(arrays["mask"]):
        inner = list(range(1, real.sum() - 1))
        assert columns[rows == row].tolist() == inner
        assert arrays["decoded_labels"][rows == row].tolist() == arrays["text"][row, inner].tolist()
    assert (arrays["text"] != 4).all()  # the decoder's text is unmasked


# The masks of a text


def of_words(pieces: list[int]) -> torch.Tensor:
    """The words of a text whose words have these numbers of pieces, [1, L]."""
    return torch.from_numpy(np.concatenate([[-1], np.repeat(np.arange(len(pieces)), pieces), [-1]]))[None]


def masks_of(pieces: list[int], budget: int, masks: int, number: int = 7) -> np.ndarray:
    """[masks, words], true at the words that a mask hides."""
    words = of_words(pieces)
    found = word_masks.word_masks(words, torch.tensor([number]), torch.tensor([budget]), masks)
    return found[0, :, : len(pieces)].numpy()


def test_masks_are_those_that_one_word_after_another_gives() -> None:
    rng = np.random.default_rng(0)
    for number in range(300):
        pieces = rng.integers(1, rng.integers(2, 9), size=rng.integers(1, 30)).tolist()
        budget = int(rng.integers(1, sum(pieces) + 2))
        for mask, found in enumerate(masks_of(pieces, budget, 8, number)):
            assert set(np.flatnonzero(found)) == plain.hidden_words(pieces, number, budget, mask)


def test_eight_turns_are_enough_for_words_of_eight_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order that needs most turns: each longer word is longer by one than the room that is left where it comes."""
    monkeypatch.setattr(word_masks, "_chance", lambda numbers, counters: numbers + counters)  # words in their order
    pieces = [1, 8, 1, 7, 1, 6, 1, 5, 1, 4, 1, 3, 1, 2, 1]
    single = set(range(0, 15, 2))
    assert set(np.flatnonzero(masks_of(pieces, 8, 1)[0])) == single
    monkeypatch.setattr(word_masks, "TURNS", 7)
    assert set(np.flatnonzero(masks_of(pieces, 8, 1)[0])) < single


def test_a_text_has_the_same_masks_in_every_batch() -> None:
    objective = make("enhanced", visible_masks=8)
    examples = [objective.example(row, generator(0, row)) for row in range(6)]
    together = drawn({name: torch.from_numpy(array) for name, array in objective.collate(examples).items()}, 8)
    for row, example in enumerate(examples):
        alone = drawn({name: torch.from_numpy(array) for name, array in objective.collate([example]).items()}, 8)[0]
        size = len(alone)
        assert np.array_equal(together[row, :size, :size], alone)
        assert not together[row, :, size:].any()


def test_masks_hide_half_of_a_text_all_words_alike_and_independently() -> None:
    rng = np.random.default_rng(0)
    pieces = [1 + int(rng.random() < 0.3) for _ in range(45)]
    count = count_to_mask(sum(pieces), 0.5)
    masks = masks_of(pieces, count, 4000)
    hidden = masks @ pieces
    assert hidden.max() == count
    assert hidden.mean() == pytest.approx(count, abs=0.02)
    single = masks[:, np.array(pieces) == 1]
    assert single.mean(axis=0) == pytest.approx(np.full(single.shape[1], single.mean()), abs=0.03)
    assert np.mean(masks[1:] == masks[:-1]) == pytest.approx(0.5, abs=0.02)
    other = masks_of(pieces, count, 4000, number=8)
    assert np.mean(masks == other) == pytest.approx(0.5, abs=0.02)


def test_positions_pick_among_all_masks_of_a_text() -> None:
    """Each word is hidden by one of four masks alone, so what a position sees tells which it has picked."""
    texts, length = 400, 30
    words = torch.arange(length - 2).expand(texts, -1)
    words = torch.nn.functional.pad(words, (1, 1), value=-1)
    numbers = torch.from_numpy(np.random.default_rng(0).integers(1 << 62, size=texts))
    seen = visible(words, numbers, torch.ones(texts, dtype=torch.int64), torch.ones(texts, length, dtype=torch.bool), 4)
    hides = word_masks.word_masks(words, numbers, torch.ones(texts, dtype=torch.int64), 4)[..., : length - 2]
    agree = (~seen[:, :1, 1:-1] == hides).all(2)  # position 0 is [CLS], whose own place is not among the words
    assert (agree.sum(1) >= 1).all()
    assert agree.float().mean(0).tolist() == pytest.approx([0.25] * 4, abs=0.08)

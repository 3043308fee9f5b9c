"""Masking: how much, what, and never a special token."""

import numpy as np
import pytest

from encore.data.tokens import word_starts
from encore.objectives.parts import masked_texts
from encore.training.randomness import generator

CONTINUES = np.zeros(100, dtype=bool)
CONTINUES[50:] = True
MASK = 4


def text(*pieces: int) -> np.ndarray:
    return np.array(pieces, dtype=np.uint16)


def test_pieces_are_chosen_evenly() -> None:
    counts = np.zeros(20)
    for index in range(4000):
        positions = masked_texts.choose_pieces(20, 3, generator(0, "test", index))
        assert len(set(positions.tolist())) == 3
        counts[positions] += 1
    assert counts / 4000 == pytest.approx(np.full(20, 0.15), abs=0.02)


def test_words_are_chosen_whole_and_never_overshoot() -> None:
    ids = text(10, 60, 61, 11, 12, 62, 13, 14)
    words = [{0, 1, 2}, {3}, {4, 5}, {6}, {7}]
    starts = word_starts(ids, CONTINUES)
    for index in range(200):
        chosen = set(masked_texts.choose_words(starts, len(ids), 3, generator(0, "test", index)).tolist())
        assert len(chosen) == 3
        assert all(word <= chosen or not word & chosen for word in words)


def greedy(starts: np.ndarray, n: int, count: int, order: np.ndarray) -> list[int]:
    """Word after word, as the rule is written."""
    words = [range(start, end) for start, end in zip(starts, [*starts[1:], n], strict=True)]
    chosen: list[int] = []
    for word in order:
        if len(chosen) + len(words[word]) <= count:
            chosen.extend(words[word])
    return sorted(chosen or min(words, key=len))


def test_words_are_those_that_one_after_another_gives() -> None:
    rng = np.random.default_rng(0)
    for index in range(500):
        n, count = rng.integers(1, 60, size=2).tolist()
        starts = np.flatnonzero((rng.random(n) < rng.random()) | (np.arange(n) == 0))
        order = generator(0, index).permutation(len(starts))
        found = masked_texts.choose_words(starts, n, count, generator(0, index))
        assert found.tolist() == greedy(starts, n, count, order)


def test_a_text_of_one_long_word_still_has_something_masked() -> None:
    assert masked_texts.choose_words(np.array([0]), 4, 1, generator(0)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("n", "ratio", "count"), [(126, 0.15, 19), (126, 0.30, 38), (1, 0.15, 1), (3, 0.15, 1)])
def test_the_ratio_counts_special_tokens_in_and_masks_at_least_one(n: int, ratio: float, count: int) -> None:
    assert masked_texts.count_to_mask(n, ratio) == count


def test_eighty_ten_ten() -> None:
    ids = np.full(200_000, 7, dtype=np.uint16)
    masked = masked_texts.corrupt(ids, np.arange(0, 200_000, 2), 100, MASK, generator(1))
    assert (masked.labels == 7).all()
    assert (masked.ids[1::2] == 7).all()  # what was not chosen stays
    chosen = masked.ids[::2]
    assert (chosen == MASK).mean() == pytest.approx(0.8 + 0.1 / 100, abs=0.005)
    assert (chosen == 7).mean() == pytest.approx(0.1 + 0.1 / 100, abs=0.005)
    assert set(range(100)) == set(chosen.tolist())  # replacements come from the whole vocabulary


def test_a_mask_is_a_function_of_its_generator_alone() -> None:
    ids = np.arange(5, 45, dtype=np.uint16)
    draws = [masked_texts.choose_pieces(40, 6, generator(3, "example", 0, 17)).tolist() for _ in range(2)]
    assert draws[0] == draws[1]
    assert draws[0] != masked_texts.choose_pieces(40, 6, generator(3, "example", 1, 17)).tolist()
    assert ids.dtype == np.uint16

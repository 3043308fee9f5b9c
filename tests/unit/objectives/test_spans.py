"""Spans: their lengths, their places, and texts too short for them."""

import numpy as np
import pytest

from encore.objectives.costa import BOUNDS, beta_lengths, beta_spans, word_spans
from encore.training.randomness import generator


@pytest.mark.parametrize("granularity", list(BOUNDS))
def test_spans_have_lengths_in_their_bounds_and_lie_in_the_text(granularity: str) -> None:
    shortest, longest = BOUNDS[granularity]
    spans = beta_spans(126, shortest, longest, 5000, generator(0))
    lengths = spans[:, 1] - spans[:, 0]
    assert spans.min() >= 0
    assert spans.max() <= 126
    assert lengths.min() >= shortest
    assert lengths.max() <= min(longest, 126)


def test_lengths_follow_the_beta_distribution() -> None:
    spans = beta_spans(10_000, 0, 1200, 20_000, generator(0))
    share = (spans[:, 1] - spans[:, 0]) / 1200
    assert share.mean() == pytest.approx(4 / 6, abs=0.005)  # alpha / (alpha + beta)
    assert share.var() == pytest.approx(4 * 2 / (6**2 * 7), abs=0.002)


def test_starts_are_uniform_and_reach_both_ends() -> None:
    spans = beta_spans(20, 16, 16, 5000, generator(0))
    counts = np.bincount(spans[:, 0], minlength=5) / 5000
    assert counts == pytest.approx(np.full(5, 0.2), abs=0.03)


def test_short_texts_lower_the_longest_span_and_have_no_span_below_the_shortest() -> None:
    spans = beta_spans(70, 64, 128, 200, generator(0))
    assert (spans[:, 1] - spans[:, 0]).max() <= 70
    assert beta_spans(63, 64, 128, 5, generator(0)).shape == (0, 2)
    assert beta_spans(64, 64, 128, 3, generator(0)).tolist() == [[0, 64]] * 3


def test_words_are_whole_different_and_usable() -> None:
    starts, usable = np.array([0, 3, 4, 6]), np.array([True, False, True, True])
    for index in range(50):
        spans = word_spans(starts, 7, usable, 2, generator(0, "test", index))
        assert len({tuple(span) for span in spans.tolist()}) == 2
        assert {tuple(span) for span in spans.tolist()} <= {(0, 3), (4, 6), (6, 7)}
    assert len(word_spans(starts, 7, usable, 5, generator(0))) == 3
    assert word_spans(starts, 7, np.zeros(4, dtype=bool), 5, generator(0)).shape == (0, 2)


@pytest.mark.parametrize(
    ("bounds", "reference"), [((16, 64), [53, 58, 47, 53, 45, 53, 41, 58]), ((4, 16), [13, 14, 11, 13, 11, 13, 10, 14])]
)
def test_lengths_are_those_of_declutr(bounds: tuple[int, int], reference: list[int]) -> None:
    """Lengths of the anchor of JohnGiorgi/DeCLUTR at b78ac57, declutr/common/contrastive_utils.py.

    ``sample_anchor_positive_pairs`` on 300 words with one anchor, NumPy's global generator seeded with 0 to 7; the
    first draw is the length.
    """
    lengths = [int(beta_lengths(*bounds, 1, np.random.RandomState(seed))[0]) for seed in range(8)]  # type: ignore[arg-type]
    assert lengths == reference

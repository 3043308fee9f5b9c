"""Where an advantage ends: planted crossings, what lies beyond the points, and the interval over seeds."""

import math

import numpy as np
import pytest

from encore.products.figures.crossover import AdvantageEnd, crossing, of_lines, sentences, with_interval

X = np.array([100.0, 1000.0, 10_000.0])


def test_a_planted_crossing_is_found_on_the_logarithm():
    own, other = np.array([0.5, 0.5, 0.5]), np.array([0.3, 0.45, 0.6])
    # From 1,000 to 10,000 the lead falls from 0.05 to -0.1: a third of the way.
    assert crossing(X, own, X, other) == pytest.approx(10 ** (3 + 1 / 3))


def test_of_several_crossings_the_last_counts():
    own, other = np.array([0.5, 0.3, 0.5]), np.full(3, 0.4)
    assert crossing(X, own, X, other) == math.inf  # behind in between, ahead at the end
    assert crossing(X, other, X, own) == pytest.approx(10**3.5)  # behind, ahead, behind


def test_beyond_the_points_nothing_is_claimed():
    ahead, behind = np.full(3, 0.5), np.full(3, 0.4)
    assert crossing(X, ahead, X, behind) == math.inf
    assert crossing(X, behind, X, ahead) == -math.inf
    assert crossing(X, ahead, X, ahead) == -math.inf  # equal is not ahead
    assert math.isnan(crossing(X, ahead, X * 1e6, behind))


def test_curves_over_different_places_are_compared_where_both_are():
    own, other = np.array([0.2, 0.4, 0.6]), np.array([0.1, 0.7])
    found = crossing(X, own, np.array([1000.0, 10_000.0]), other)
    # From 1,000 on: 0.4 to 0.6 against 0.1 to 0.7, so a lead of 0.3 falls by 0.4.
    assert found == pytest.approx(10 ** (3 + 0.75))
    far = crossing(X, own, np.array([500.0, 1e6]), np.array([0.0, 1.0]))
    grid = np.geomspace(500, 10_000, 200_001)
    lead = np.interp(np.log(grid), np.log(X), own) - np.interp(np.log(grid), np.log([500, 1e6]), [0.0, 1.0])
    assert (far == math.inf) == (lead[-1] > 0)


def over_seeds(over, own, over_other, other):
    """Of curves [seeds, points] that are the same on each of four queries."""
    own, other = (each.T[:, None, :].repeat(4, axis=1) for each in (own, other))
    return with_interval(over, own, over_other, other, list("abcd"))


@pytest.mark.parametrize(("of_seeds", "of_queries"), [(0.01, 0.0), (0.005, 0.1), (0.0, 0.15)])
@pytest.mark.slow
def test_the_interval_covers_a_planted_crossing_as_often_as_it_says(of_seeds, of_queries):
    """Errors of seeds, and of queries that all points share in part, as one model's do."""
    rng, inside, draws = np.random.default_rng(0), 0, 60
    own, other = np.array([0.5, 0.5, 0.5]), np.array([0.4, 0.48, 0.56])
    truth = crossing(X, own, X, other)
    for _ in range(draws):
        noise = of_seeds * rng.normal(size=(2, 3, 1, 6)) + of_queries * rng.normal(size=(2, 3, 60, 1))
        noise += of_queries * rng.normal(size=(2, 1, 60, 1)) + 0.02 * rng.normal(size=(2, 3, 60, 6))
        curves = (truth_of[:, None, None] + each for truth_of, each in zip((own, other), noise, strict=True))
        found = with_interval(X, next(curves), X, next(curves), list(map(str, range(60))))
        inside += found.low <= truth <= found.high
    assert inside >= (0.95 - 2 * (0.95 * 0.05 / draws) ** 0.5) * draws


def test_too_few_seeds_have_no_interval_and_equal_seeds_none_to_speak_of():
    own, other = np.array([[0.5, 0.5, 0.5]]), np.array([[0.3, 0.45, 0.6]])
    few = over_seeds(X, own.repeat(4, 0), X, other.repeat(4, 0))
    assert (few.low, few.high) == (None, None)
    enough = over_seeds(X, own.repeat(5, 0), X, other.repeat(5, 0))
    assert enough.low == enough.high == pytest.approx(enough.at)


def test_an_interval_says_where_an_end_was_not_seen():
    """Of seeds some of which end within the points, and some beyond."""
    own = np.full((5, 3), 0.5)
    other = np.array([[0.3, 0.45, 0.46 if seed < 3 else 0.9] for seed in range(5)])
    found = over_seeds(X, own, X, other)
    assert 1000 < found.at < 10_000
    assert found.low < found.at
    assert found.high == math.inf
    never = over_seeds(X, other - 0.5, X, own)
    assert (never.at, never.low, never.high) == (-math.inf, -math.inf, -math.inf)


def test_ends_are_told_in_words():
    ends = [
        AdvantageEnd("A", "None", "RR", "queries", 1234.4, 900.0, math.inf),
        AdvantageEnd("B", "None", "RR", "queries", math.inf, math.inf, math.inf),
        AdvantageEnd("C", "None", "RR", "queries", -math.inf, -math.inf, 812.0),
        AdvantageEnd("D", "None", "RR", "queries", math.nan),
        AdvantageEnd("A", "Control", "RR", "operations", 1.71e12),
    ]
    assert list(sentences(ends)) == [
        "By training queries, the lead over None ends at 1,234 [900, not seen] (A); it is not seen to end for B; "
        "it is nowhere for C [nowhere, 812]; it has no common range for D.",
        "By operations of fine-tuning, the lead over Control ends at 1.7·10¹² (A).",
    ]
    assert list(sentences([])) == []


def test_ends_are_read_from_the_data_of_a_figure():
    line = {"what": "crossover", "label": "A", "against": "N", "panel": "RR", "over": "queries", "x": "-inf"}
    lines = [{"what": "value", "x": ""}, line | {"low": "", "high": ""}, {"row": "of another figure"}]
    assert of_lines(lines) == [AdvantageEnd("A", "N", "RR", "queries", -math.inf)]

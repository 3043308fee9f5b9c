"""How alike two runs order documents: by hand and by SciPy, at the ends of each scale, and what is refused."""

import math

import numpy as np
import pytest
from scipy import stats

from encore.data.rankings import Ranking
from encore.errors import EncoreError
from encore.evaluation.reproducibility import PERSISTENCE, order


def ranked(*documents: str) -> Ranking:
    return Ranking(list(documents), -np.arange(len(documents), dtype=np.float32))


def test_the_same_run_is_in_the_same_order_and_the_reverse_is_not() -> None:
    run = {"q": ranked(*"abcdef")}
    same = order(run, run, 100)
    assert (same.queries, same.tau, same.overlap) == (1, 1.0, 1.0)
    back = order({"q": ranked(*"fedcba")}, run, 100)
    assert back.tau == -1.0
    assert 0 < back.overlap < 1
    other = {"r": ranked(*"abc")}
    assert order({"q": ranked(*"uvwxyz"), **other}, {**run, **other}, 6).overlap == 0.5, "0 of q, 1 of r"


def test_order_is_as_counted_by_hand() -> None:
    ours, theirs = {"q": ranked("a", "b", "c")}, {"q": ranked("b", "a", "d"), "r": ranked("z")}
    found = order(ours, theirs, 3)
    # Of three ranks: 0 of 1, 2 of 2, 2 of 3 in common, each rank weighing PERSISTENCE times the one before.
    weights = [1, PERSISTENCE, PERSISTENCE**2]
    assert found.overlap == pytest.approx((weights[1] + weights[2] * 2 / 3) / sum(weights))
    # Places in the sorted union a b c d: theirs 1 0 3, ours 0 1 2.
    assert found.tau == pytest.approx(stats.kendalltau([1, 0, 3], [0, 1, 2]).statistic)
    assert found.queries == 1


def test_rankings_of_different_lengths_are_cut_to_the_shorter_and_one_rank_has_no_order() -> None:
    ours, theirs = {"q": ranked("a", "b"), "r": ranked("a")}, {"q": ranked("a", "b", "c"), "r": ranked("a", "b")}
    assert order(ours, theirs, 100).tau == 1.0
    assert math.isnan(order({"r": ranked("a")}, theirs, 100).tau)


def test_runs_over_other_queries_or_documents_have_no_order() -> None:
    run, foreign = {"q": ranked("a", "b")}, {"q": ranked("y", "z")}
    with pytest.raises(EncoreError, match="no document in common; name runs over the same passages"):
        order(run, foreign, 10)
    with pytest.raises(EncoreError, match="no query in common"):
        order(run, {"z": ranked("a")}, 10)

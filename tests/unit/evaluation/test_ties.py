"""The interval over tied scores, against every order of the ties, one by one."""

from collections.abc import Iterator
from itertools import groupby, permutations, product

import numpy as np
import pytest

from encore.config.datasets import parse_measure
from encore.data.rankings import Ranking, rank
from encore.evaluation.measures import values
from encore.evaluation.ranks import Hits, JudgedRanks

EXPRESSIONS = ["RR@3", "R@2", "nDCG", "nDCG@3", "AP", "AP(rel=2)@4", "P@3", "Success(rel=2)@2", "RR(rel=3)@10"]


def ranks(ranking: Ranking, grades: dict[str, int]) -> list[JudgedRanks]:
    """Worst, usual, best."""
    hits = Hits.of({"q": ranking}, {"q": grades})
    worst, best = hits.extremes()
    return [worst, hits.usual(), best]


def orders(ranking: Ranking) -> Iterator[Ranking]:
    """Every order of the ranking that its scores allow, with scores that leave no tie."""
    by_score = groupby(range(len(ranking)), key=lambda place: float(ranking.scores[place]))
    for blocks in product(*(permutations(list(block)) for _, block in by_score)):
        documents = [ranking.documents[place] for block in blocks for place in block]
        yield rank(documents, np.arange(len(documents), 0, -1))


@pytest.mark.parametrize("seed", range(25))
def test_extremes_are_those_of_all_orders(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ranking = rank(list("abcdefg"), generator.integers(0, 3, 7))
    grades = dict(zip("abcdz", generator.integers(0, 4, 5).tolist(), strict=True))
    worst, usual, best = ranks(ranking, grades)
    everywhere = [ranks(order, grades)[1] for order in orders(ranking)]
    assert len(everywhere) > 1
    for measure in map(parse_measure, EXPRESSIONS):
        found = [float(values(measure, place)[0]) for place in everywhere]
        low, middle, high = (float(values(measure, each)[0]) for each in (worst, usual, best))
        assert low == pytest.approx(min(found), abs=1e-12), measure
        assert high == pytest.approx(max(found), abs=1e-12), measure
        assert low <= middle <= high


def test_the_usual_order_lies_between_and_without_ties_all_three_are_one() -> None:
    ranking = rank(list("abc"), [3, 2, 1])
    worst, usual, best = ranks(ranking, {"b": 1, "c": 2})
    assert worst.ranks.tolist() == usual.ranks.tolist() == best.ranks.tolist() == [2, 3]

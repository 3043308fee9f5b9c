"""The grammar of verdicts by simulation: with a truth that is planted, a wrong verdict must be rare."""

from dataclasses import replace
from functools import cache
from itertools import combinations, count

import numpy as np
import pytest

from encore.evaluation.significance import Component, Difference, clustered
from encore.products.claims.verdict import Estimate, Evidence, of_inequalities, of_no_winner, of_orders

DRAWS, QUERIES, SEEDS = 1000, 60, 5
STATED = 0.05
SLACK = 2 * (STATED * (1 - STATED) / DRAWS) ** 0.5  # two standard errors of a rate that is just right


@cache
def noise(place):
    """Estimates of nothing, one a draw: queries, seeds and both together add noise, shared with no other place."""
    generator, found = np.random.default_rng([7, place]), []
    for _ in range(DRAWS):
        drawn = generator.normal(0, 0.2, (QUERIES, SEEDS))
        drawn += generator.normal(0, 0.1, (QUERIES, 1)) + generator.normal(0, 0.02, (1, SEEDS))
        found.append(clustered(drawn, [str(query) for query in range(QUERIES)]))
    return found


@cache
def estimates_of(truth, place):
    """The same of a true difference; each remembers its p value, which is most of the work."""
    return [one.shifted(truth) for one in noise(place)]


def rates(judge, truths):
    """How often each evidence comes out of estimates of these true differences, one from each place."""
    counts = dict.fromkeys(Evidence, 0)
    for drawn in zip(*map(estimates_of, truths, count()), strict=True):
        counts[judge([*map(Estimate, drawn)])] += 1
    return {evidence: count / DRAWS for evidence, count in counts.items()}


def every(estimates):
    return of_inequalities(estimates, len(estimates))


@pytest.mark.parametrize(
    ("truths", "needed"),
    [
        ([0.0], 1),
        ([0.0, 0.3, 0.3], 3),
        ([0.0] * 4, 1),
        ([0.3, 0.3, 0.0, 0.0, 0.0], 3),
    ],
    ids=["equal", "one of three equal", "one of four", "three of five"],
)
def test_what_is_false_is_rarely_shown(truths, needed):
    found = rates(lambda estimates: of_inequalities(estimates, needed), truths)
    assert found[Evidence.SHOWN] <= STATED + SLACK


@pytest.mark.parametrize(
    ("truths", "needed"),
    [([1e-9], 1), ([1e-9] * 8, 8), ([1e-9, -0.3, -0.3], 1), ([1e-9] * 3 + [-0.3] * 2, 3)],
    ids=["barely", "eight, barely", "one of three", "three of five"],
)
def test_what_is_true_is_rarely_refuted(truths, needed):
    found = rates(lambda estimates: of_inequalities(estimates, needed), truths)
    assert found[Evidence.REFUTED] <= STATED + SLACK


def test_clear_truths_are_found():
    assert rates(every, [0.3, 0.3, 0.3])[Evidence.SHOWN] > 0.95
    assert rates(every, [0.3, 0.3, -0.3])[Evidence.REFUTED] > 0.95


def test_several_tests_of_one_claim_share_the_rate_of_refutation():
    one = rates(lambda estimates: of_inequalities(estimates, 1, tests=4), [1e-9])[Evidence.REFUTED]
    assert one <= STATED / 4 + SLACK


def within(estimates, margin=0.15):
    """The two inequalities that say a difference is within a margin."""
    (one,) = estimates
    opposite = replace(one.difference, mean=-one.mean)
    return [Estimate(each.shifted(margin), equivalence=True) for each in (one.difference, opposite)]


def test_an_equivalence_is_rarely_shown_at_its_margin_and_found_inside_it():
    assert rates(lambda estimates: every(within(estimates)), [0.15])[Evidence.SHOWN] <= STATED + SLACK
    assert rates(lambda estimates: every(within(estimates)), [0.15 - 1e-9])[Evidence.REFUTED] <= STATED + SLACK
    assert rates(lambda estimates: every(within(estimates)), [0.0])[Evidence.SHOWN] > 0.8
    assert rates(lambda estimates: every(within(estimates)), [0.4])[Evidence.REFUTED] > 0.95


def test_no_winner():
    found = rates(of_no_winner, [0.0, 0.0, 0.0])
    assert found[Evidence.REFUTED] <= STATED + SLACK
    assert found[Evidence.SHOWN] <= STATED + SLACK
    assert rates(of_no_winner, [0.3, -0.3])[Evidence.SHOWN] > 0.95
    assert rates(of_no_winner, [0.3, 0.3])[Evidence.REFUTED] > 0.95


def test_orders():
    straight = np.arange(6.0)
    assert of_orders([pairs_of(straight, straight)] * 3) is Evidence.SHOWN
    assert of_orders([pairs_of(straight, -straight)]) is Evidence.REFUTED
    assert of_orders([pairs_of(straight, straight, error=100)]) is Evidence.DIRECTION
    assert of_orders([pairs_of(straight, -straight, error=100)]) is Evidence.OPEN


def test_orders_are_as_alike_as_is_asked():
    """Three of fifteen pairs disagree: a tau of 0.6."""
    straight, turned = np.arange(6.0), np.array([1.0, 0.0, 3.0, 2.0, 5.0, 4.0])
    pairs = pairs_of(straight, turned)
    assert of_orders([pairs], tau=0.5) is Evidence.SHOWN
    assert of_orders([pairs], tau=0.7) is Evidence.REFUTED
    assert of_orders([pairs_of(straight, turned, error=100)], tau=0.5) is Evidence.DIRECTION
    assert of_orders([pairs_of(straight, turned, error=100)], tau=0.6) is Evidence.OPEN


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_settings_that_share_models_and_queries_do_not_make_orders_alike(correlation):
    """Six equal systems, whose errors under the two settings are so correlated: Kendall's own test errs in 40 %."""
    generator, found = np.random.default_rng(3), []
    for _ in range(DRAWS):
        shared, *own = generator.normal(size=(3, 6))
        settings = [correlation**0.5 * shared + (1 - correlation) ** 0.5 * each for each in own]
        found.append(of_orders([pairs_of(*settings, error=1.0)]))
    assert np.mean([one is Evidence.SHOWN for one in found]) <= STATED + SLACK
    assert np.mean([one is Evidence.REFUTED for one in found]) <= STATED + SLACK


def pairs_of(*settings, error=0.1):
    """The differences of all pairs of systems under either setting, each system's value with an error."""
    return [
        [Estimate(Difference(x - y, (Component(2 * error**2, 60),), 5)) for x, y in combinations(values, 2)]
        for values in settings
    ]

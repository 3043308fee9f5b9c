"""The grammar of verdicts by simulation: with a truth that is planted, a wrong verdict must be rare."""

from itertools import combinations

import numpy as np
import pytest

from encore.evaluation.significance import Component, Difference
from encore.products.claims.verdict import Estimate, Evidence, of_inequalities, of_no_winner, of_orders
from tests.support.simulated_verdicts import DRAWS, every, rates, within

STATED = 0.05
SLACK = 2 * (STATED * (1 - STATED) / DRAWS) ** 0.5  # two standard errors of a rate that is just right


@pytest.mark.parametrize(
    ("truths", "needed"),
    [([0.0], 1), ([0.0, 0.3, 0.3], 3), ([0.0] * 4, 1), ([0.3, 0.3, 0.0, 0.0, 0.0], 3)],
    ids=["equal", "one of three equal", "one of four", "three of five"],
)
def test_what_is_false_is_rarely_shown(truths, needed):
    found = rates(lambda estimates: of_inequalities(estimates, needed), truths)
    assert found[Evidence.SHOWN] <= STATED + SLACK


@pytest.mark.parametrize(
    ("truths", "needed"),
    [
        ([1e-9], 1),
        pytest.param([1e-9] * 8, 8, marks=pytest.mark.slow),
        ([1e-9, -0.3, -0.3], 1),
        ([1e-9] * 3 + [-0.3] * 2, 3),
    ],
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


@pytest.mark.slow
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

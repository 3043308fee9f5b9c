"""The test's rate of false findings and its power, with dependence as it occurs; and the tables of docs/protocol.md."""

import re
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import stats

from encore.evaluation.significance import Component, Difference, clustered
from tests.support.quick_first import quick_first

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from significance_rates import (  # noqa: E402
    DEVIATIONS,
    LEVELS,
    MODULES,
    VERDICTS,
    World,
    planted,
    rates,
    shipped_clusters,
    statistics,
    step_down,
    unequal_rates,
    verdict_rates,
    wrong_verdicts,
)

DRAWS = 40_000
PROTOCOL = (ROOT / "docs/protocol.md").read_text()


@pytest.mark.parametrize(
    ("mean", "first", "second"),
    [
        (0.011, Component(4e-6, 6979), Component(2e-6, 4)),
        (0.011, Component(2e-6, 13.7), Component(6e-6, 4)),
        (0.05, Component(1e-6, 24), Component(9e-6, 2)),
        (0.004, Component(3e-6, 60), Component(1e-6, 9)),
    ],
)
def test_the_p_value_is_the_expectation_over_both_variances(mean: float, first: Component, second: Component) -> None:
    """The formula of the module's docstring by another road: a sum over the plane of both chi-square variables."""
    z = np.linspace(-8, 8, 641)
    weights = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    scales = [one.variance * one.freedom / stats.chi2.isf(stats.norm.sf(z), one.freedom) for one in (first, second)]
    p = weights @ (2 * stats.norm.sf(mean / np.sqrt(scales[0][:, None] + scales[1][None, :]))) @ weights
    found = Difference(mean, (first, second), 5)
    assert found.p == pytest.approx(p, abs=1e-7)
    low, high = found.interval()
    assert found.shifted(-low).p == pytest.approx(0.05, abs=1e-8)
    assert high - mean == pytest.approx(mean - low)


@pytest.mark.parametrize(
    ("freedoms", "variances", "mean"),
    [
        ((200, 1), (1.0, 1.0), 500),
        ((200, 4), (1.0, 1e-4), 20),
        ((50, 9), (1.0, 1.0), 20),
        ((30, 2), (0.1, 1.0), 1e4),
        ((1, 1), (1.0, 0.1), 20),
    ],
)
def test_a_p_value_is_right_far_out_in_the_tails(
    freedoms: tuple[int, int], variances: tuple[float, float], mean: float
) -> None:
    """Two or three seeds, and p below 1e-12: an integral to twenty digits between points of all scales."""
    mpmath.mp.dps = 20
    (first, second), (wide, narrow) = map(mpmath.mpf, freedoms), map(mpmath.sqrt, variances)

    def above(beyond: mpmath.mpf) -> mpmath.mpf:
        tail = mpmath.betainc(first / 2, 0.5, 0, first / (first + beyond**2), regularized=True) / 2
        return tail if beyond > 0 else 1 - tail

    def density(value: mpmath.mpf) -> mpmath.mpf:
        scale = mpmath.gamma((second + 1) / 2) / mpmath.gamma(second / 2) / mpmath.sqrt(second * mpmath.pi)
        return scale * (1 + value**2 / second) ** (-(second + 1) / 2)

    end, widths = mean / narrow, [3 * wide / narrow, 30 * wide / narrow]
    near = {
        0,
        *(sign * each for each in (3, 30) for sign in (1, -1)),
        *(end + sign * each for each in widths for sign in (1, -1)),
    }
    points = sorted({-mpmath.inf, end, 10 * end + 100, mpmath.inf, *near})
    p = 2 * mpmath.quad(lambda value: density(value) * above((mean - narrow * value) / wide), points)
    found = Difference(mean, tuple(map(Component, variances, freedoms)), 5).p
    assert found == pytest.approx(float(p), rel=1e-9, abs=0)


def test_one_component_is_students_test_and_its_power_the_noncentral_one() -> None:
    found = Difference(2.5, (Component(1.0, 4),), 5)
    assert found.p == pytest.approx(2 * stats.t.sf(2.5, 4), rel=1e-12)
    assert found.interval() == pytest.approx((2.5 - stats.t.ppf(0.975, 4), 2.5 + stats.t.ppf(0.975, 4)))
    level = 0.05 / 24
    critical = stats.t.ppf(1 - level / 2, 4)
    expected = stats.nct.sf(critical, 4, 9.0) + stats.nct.cdf(-critical, 4, 9.0)
    assert found.power(9.0, level) == pytest.approx(expected, rel=1e-4)
    assert found.power(found.detectable(level), level) == pytest.approx(0.8, abs=1e-5)


def test_a_component_without_variance_adds_nothing() -> None:
    alone, both = Difference(1.0, (Component(0.2, 7),), 5), Difference(1.0, (Component(0.2, 7), Component(0.0, 4)), 5)
    assert both.p == pytest.approx(alone.p)
    assert both.interval() == pytest.approx(alone.interval())
    assert (Difference(1.0, (Component(0.0, 4),), 1).p, Difference(0.0, (Component(0.0, 4),), 1).p) == (0.0, 1.0)


@pytest.mark.parametrize("seeds", quick_first([5, 3, 10]))
@pytest.mark.parametrize("deviation", DEVIATIONS)
@pytest.mark.parametrize("queries", [43, 6980])
def test_equal_systems_are_found_at_most_at_the_level(seeds: int, deviation: float, queries: int) -> None:
    found = rates(World(seeds, deviation, queries), 0.0, DRAWS)
    for level, rate in zip(LEVELS, found, strict=True):
        assert rate <= level + 3 * (level * (1 - level) / DRAWS) ** 0.5


@pytest.mark.parametrize("seeds", quick_first([5, 3, 10]))
@pytest.mark.parametrize("of_seeds", [0.0, 0.01, 0.03])
@pytest.mark.parametrize("of_clusters", [0.0, 0.05, 0.15])
def test_clusters_of_unequal_size_change_little(seeds: int, of_seeds: float, of_clusters: float) -> None:
    """30 modules of 6 to 60 queries: a tenth above the level at most, where modules are all that differs."""
    draws = 20_000
    for level, rate in zip(LEVELS, unequal_rates(seeds, of_seeds, draws, of_clusters), strict=True):
        assert rate <= 1.1 * level + 3 * (level * (1 - level) / draws) ** 0.5


def test_drawn_statistics_are_those_of_the_test() -> None:
    sums = planted(4, 0.03, 3, 0.05, seed=1)
    clusters = np.repeat(np.arange(len(MODULES)).astype(str), MODULES)
    for place, (mean, first, second) in enumerate(zip(*statistics(sums)[:3], strict=True)):
        found = clustered((sums[place] / MODULES[:, None]).repeat(MODULES, axis=0), list(clusters))
        assert found.mean == pytest.approx(mean)
        assert [one.variance for one in found.components] == pytest.approx([first, second])
        assert found.components[0].freedom == pytest.approx(statistics(sums)[3])


def test_gains_of_the_papers_are_found_as_the_protocol_says() -> None:
    assert 0.35 <= rates(World(5, 0.003), 0.010, DRAWS)[1] < 0.37
    assert 0.85 <= rates(World(10, 0.003), 0.010, DRAWS)[1] < 0.87


@pytest.mark.parametrize("of_seeds", [0.0, 0.02])
@pytest.mark.parametrize("gain", [0.0, 0.5], ids=["equal", "above none alone"])
def test_tables_of_objectives_that_share_none_and_control_are_rarely_wrong(of_seeds: float, gain: float) -> None:
    draws = 150
    gains = np.array([[gain, 0.0]] * 4)
    assert wrong_verdicts(5, of_seeds, gains, draws) <= 0.05 + 2 * (0.05 * 0.95 / draws) ** 0.5


def test_the_tables_of_the_protocol_are_those_of_the_simulation() -> None:
    text = PROTOCOL.split("**The verdict on the shipped data**")[0]
    lines = re.findall(r"^\| (\d+) \| ([\d.]+) \|((?: [\d.]+ \|)+)$", text, re.M)
    false = {(int(seeds), level): list(map(float, rest.strip(" |").split(" | "))) for seeds, level, rest in lines}
    assert len(false) == 9 + 12
    for seeds in (3, 5, 10):
        found = np.array([rates(World(seeds, each), 0.0, DRAWS) for each in DEVIATIONS])
        for place, level in enumerate(LEVELS):
            assert false[seeds, f"{level:.5f}"] == pytest.approx(found[:, place], abs=4 * (level / DRAWS) ** 0.5)
    for seeds in (3, 5, 7, 10):
        for deviation in (0.002, 0.003, 0.004):
            world = World(seeds, deviation)
            *power, least = false[seeds, str(deviation)]
            assert power == pytest.approx([rates(world, each, DRAWS)[1] for each in (0.008, 0.010, 0.015)], abs=0.012)
            assert least == pytest.approx(world.detectable(LEVELS[1]), abs=1e-4)


@pytest.mark.slow
def test_the_verdict_on_the_shipped_data_errs_and_speaks_as_the_protocol_says() -> None:
    """570 clusters, Holm, and a gain over both comparators; fewer tables are drawn here than for the page."""
    sizes, draws = shipped_clusters(), 150
    assert (len(sizes), sizes.sum(), round(sizes.sum() ** 2 / (sizes**2).sum())) == (570, 2953, 175)
    lines = re.findall(r"^\| (\d+) \| (0\.00\d) \| (7|19) \|((?: [\d.]+ \|){6})$", PROTOCOL, re.M)
    stated = {(int(seeds), float(at), int(count)): rest.strip(" |").split(" | ") for seeds, at, count, rest in lines}
    assert stated.keys() == {(*each, count) for each in VERDICTS for count in (7, 19)}
    assert all(float(fwer) <= 0.05 for fwer, *_ in stated.values())
    _, one, *_, comparison = map(float, stated[10, 0.003, 7])
    assert verdict_rates(sizes, 10, 0.003, np.zeros(7), draws).fwer <= 0.05
    found = verdict_rates(sizes, 10, 0.003, np.array([0.010, *[0.0] * 6]), draws)
    assert (found.holds, found.one_comparison) == pytest.approx((one, comparison), abs=4 * (0.25 / draws) ** 0.5)
    assert found.holds < found.one_comparison


def test_holm_steps_down() -> None:
    """p of .004, .011, .03 and .2 against 5 % over 4, 3, 2 and 1."""
    p = np.array([[0.03, 0.2, 0.004, 0.011]])
    significant = np.stack([p <= 0.05 / left for left in (4, 3, 2, 1)])
    assert step_down(significant).tolist() == [[False, False, True, True]]

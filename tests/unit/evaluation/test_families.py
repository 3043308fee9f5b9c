"""Several systems against the same comparators: which gain over all of them a test finds."""

import numpy as np
import pytest
from scipy import stats

from encore.evaluation.families import PairedDifference, detectable_gain
from encore.evaluation.significance import Component, Difference


@pytest.mark.parametrize("shared", [0.0, 0.5, 0.9])
def test_the_smallest_detectable_gain_counts_all_comparisons(shared: float) -> None:
    """A gain needs two comparisons, whose errors are shared in part: both are found in 80 % or a little more."""
    tests = [PairedDifference(Difference(0.0, (Component(1e-4, 4),), 5), 1.0, 1.0, p_holm=1.0, family=3)] * 2
    gain, draws = detectable_gain(tests), 20_000
    alone = tests[0].difference.detectable(0.05 / 3)
    generator, error, found = np.random.default_rng(0), tests[0].difference.error, {}
    common, *own = generator.standard_normal((3, draws))
    variances = generator.chisquare(4, (3, draws)) / 4  # of what is shared, and of each
    reach = [shared * variances[0] + (1 - shared) * each for each in variances[1:]]
    for name, true in (("all", gain), ("alone", alone)):
        beyond = [
            true + error * (shared**0.5 * common + (1 - shared) ** 0.5 * each)
            > stats.t.isf(0.05 / 6, 4) * error * scale**0.5
            for each, scale in zip(own, reach, strict=True)
        ]
        found[name] = float(np.mean(beyond[0] & beyond[1]))
    assert found["alone"] < 0.8 or shared == 0.9
    assert 0.78 < found["all"] < 0.95
    assert detectable_gain(tests[:1]) == alone < gain

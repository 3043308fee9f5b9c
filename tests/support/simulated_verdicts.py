"""How often each verdict comes out of simulated estimates whose truth is planted."""

from dataclasses import replace
from functools import cache
from itertools import count

import numpy as np

from encore.evaluation.significance import clustered
from encore.products.claims.verdict import Estimate, Evidence, of_inequalities

DRAWS, QUERIES, SEEDS = 1000, 60, 5


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


def within(estimates, margin=0.15):
    """The two inequalities that say a difference is within a margin."""
    (one,) = estimates
    opposite = replace(one.difference, mean=-one.mean)
    return [Estimate(each.shifted(margin), equivalence=True) for each in (one.difference, opposite)]

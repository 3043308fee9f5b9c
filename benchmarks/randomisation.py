"""The randomisation test of a difference next to SciPy's, in turns in one process; see README.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from encore.storage.program import run

import numpy as np
from harness import comparison, figures, machine, record
from scipy import stats

from encore.errors import EncoreError
from encore.evaluation import significance

OURS, PEER = "Encore", "scipy.stats.permutation_test"
AT_ONCE = 1000  # samples in SciPy's memory
MEANS = (0.0, 0.02)  # of differences that chance explains, and of those that it hardly does, for 500 queries
SCALED, LONGEST = 100_000, 5.0  # samples of the goal, and the seconds that they may take
APART = 5.0  # standard errors between two p values


def main() -> None:
    options = _options()
    before = machine.load()
    generator = np.random.default_rng(0)
    scale = (500 / options.queries) ** 0.5
    tests = [mean * scale + 0.2 * generator.standard_normal(options.queries) for mean in MEANS]
    names = list(map(str, range(options.queries)))
    ways: dict[str, Callable[[], list[float]]] = {
        PEER: lambda: [_theirs(differences, options.samples) for differences in tests],
        OURS: lambda: _ours(tests, names, options.samples),
    }
    found, seconds = comparison.in_turns(ways, options.turns)
    for theirs, own in zip(found[PEER], found[OURS], strict=True):
        error = (2 * max(own * (1 - own), 1 / options.samples) / options.samples) ** 0.5
        if abs(theirs - own) > APART * error:
            raise EncoreError(f"p is {own:g} here and {theirs:g} there; report it as a bug")
    rows = comparison.rows(seconds, len(tests) * options.samples, "samples", base=PEER)
    longest = seconds[OURS] / (len(tests) * options.samples) * SCALED
    contents = {
        "setting": {name: getattr(options, name) for name in ("queries", "samples", "turns")} | {"tests": len(tests)},
        "agreement": "p values differ by less than chance explains: "
        + ", ".join(f"{own:.4f} and {theirs:.4f}" for own, theirs in zip(found[OURS], found[PEER], strict=True)),
        "rows": rows,
        "goals": [
            figures.goal(f"randomisation test of {SCALED:,} samples, seconds of the processor", longest, LONGEST, True)
        ],
    }
    record.write(options.output, options.name, contents, before, ("scipy",))
    print("\n".join([*record.table(rows), str(contents["agreement"])]))


def _theirs(differences: np.ndarray, samples: int) -> float:
    """p of the mean's distance from 0, where signs flip."""
    flipped = {"permutation_type": "samples", "alternative": "two-sided", "vectorized": True}
    drawn = {"n_resamples": samples, "batch": AT_ONCE, "rng": np.random.default_rng(1)}
    return float(stats.permutation_test((differences,), np.mean, **flipped, **drawn).pvalue)


def _ours(tests: list[np.ndarray], names: list[str], samples: int) -> list[float]:
    """The same, each test by itself, every query a cluster of its own."""
    return [significance.randomised([differences[:, None]], names, samples)[0] for differences in tests]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=3, help="of which the best counts")
    record.add_flags(parser, "randomisation")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)

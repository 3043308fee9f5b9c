"""When an objective has a verdict, which, and how often a wrong one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from encore.evaluation import significance
from encore.evaluation.families import PairedDifference, correct
from encore.evaluation.significance import Component, Difference
from encore.products.tables import comparisons as verdicts
from tests.support.small_table import lines_of, plan, row_of, table_of, write_scores


def test_fewer_than_five_seeds_give_no_verdict_but_numbers(tmp_path: Path) -> None:
    line = lines_of(tmp_path, table_of(plan(tmp_path, seeds=4)))["ict", "RR@10"]
    assert line["verdict"] == "too few seeds"
    assert float(line["delta_control"]) > 0.2


def comparison(mean: float, p_holm: float, seeds: int = 5) -> PairedDifference:
    return PairedDifference(Difference(mean, (Component(1e-4, seeds - 1),), seeds), 1.0, 1.0, p_holm, family=3)


def joint(*tests: PairedDifference) -> list[PairedDifference]:
    """The same with the p of a gain over all of them."""
    p_joint = max(1.0 if one.difference.mean < 0 else one.p_holm or 0.0 for one in tests)
    return [replace(one, p_joint=p_joint) for one in tests]


@pytest.mark.parametrize(
    ("none", "control", "word"),
    [
        (comparison(0.1, 0.01), comparison(0.1, 0.01), "holds here"),
        (comparison(0.1, 0.01), comparison(0.1, 0.06), "not distinguishable"),
        (comparison(0.1, 0.06), comparison(0.1, 0.01), "not distinguishable"),
        (comparison(0.1, 0.01), comparison(-0.1, 0.01), "not beyond its compute"),
        (comparison(0.1, 0.06), comparison(-0.1, 0.01), "fails here"),
        (comparison(-0.1, 0.01), comparison(0.1, 0.01), "fails here"),
        (comparison(0.1, 0.01), comparison(0.1, 0.01, seeds=4), "too few seeds"),
    ],
)
def test_a_gain_must_hold_over_none_and_over_control(
    none: PairedDifference, control: PairedDifference, word: str
) -> None:
    assert verdicts.objective_verdict(joint(none, control), proxy_data=True) == word
    papers = {"holds here": "reproduced", "fails here": "contradicted"}
    assert verdicts.objective_verdict(joint(none, control), proxy_data=False) == papers.get(word, word)


def test_wrong_verdicts_stay_under_the_stated_rate() -> None:
    """Planted truth: three objectives that change nothing, with query, module and seed luck. Any verdict is wrong."""
    generator = np.random.default_rng(11)
    member = generator.integers(0, 15, 60)
    clusters = [f"m{number}" for number in member]
    wrong = 0
    for _ in range(1000):
        luck = 0.05 * generator.normal(size=(5, 15, 1))[:, member] + 0.2 * generator.normal(size=(5, 60, 1))
        runs = luck + 0.03 * generator.normal(size=(5, 1, 5)) + 0.1 * generator.normal(size=(5, 60, 5))
        compared = {
            ("", str(row), "rr"): {
                name: PairedDifference(significance.clustered(runs[row] - runs[other], clusters), 1.0, 1.0)
                for other, name in enumerate(("none", "control"))
            }
            for row in (2, 3, 4)
        }
        correct(compared, list(compared), ["none", "control"])
        words = {verdicts.objective_verdict(list(own.values()), proxy_data=True) for own in compared.values()}
        wrong += words != {verdicts.OPEN}
    assert wrong / 1000 <= significance.SIGNIFICANT


def test_a_planted_gain_holds_and_a_planted_loss_fails(tmp_path: Path) -> None:
    table = plan(tmp_path)
    assert lines_of(tmp_path, table_of(table))["ict", "RR@10"]["verdict"] == "holds here"
    for seed in row_of(table, "mlm")["cells"]["rr"]["reads"]:
        write_scores(tmp_path / "worse" / str(seed["seed"]), -0.2, seed["seed"])
        seed["folder"] = str(tmp_path / "worse" / str(seed["seed"]))
    line = lines_of(tmp_path, table_of(table))["mlm", "RR@10"]
    assert (line["verdict"], line["markers"]) == ("fails here", "−†−‡")

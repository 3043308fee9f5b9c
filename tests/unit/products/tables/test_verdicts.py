"""When an objective has a verdict, which, and how often a wrong one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.evaluation import scores, significance
from encore.evaluation.families import PairedDifference, correct
from encore.evaluation.significance import Component, Difference
from encore.products.tables import comparisons as verdicts
from tests.support.small_table import CLUSTERS, lines_of, plan, row_of, table_of, write_scores


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


@pytest.mark.parametrize(
    ("gain", "equivalent", "word"),
    [
        (comparison(0.01, 0.9), 0.04, "equivalent within 0.03"),
        (comparison(0.01, 0.9), 0.06, "not distinguishable"),
        (comparison(0.01, 0.01), 0.04, "holds here"),
        (comparison(-0.01, 0.01), 0.04, "fails here"),
        (comparison(0.01, 0.9, seeds=4), 0.04, "too few seeds"),
    ],
)
def test_what_is_not_told_apart_is_equivalent_if_that_is_shown(
    gain: PairedDifference, equivalent: float, word: str
) -> None:
    """A gain or a loss that is shown is told first, however small it is."""
    against = [replace(one, p_jointly_equivalent=equivalent) for one in joint(gain, gain)]
    assert verdicts.objective_verdict(against, proxy_data=True, margin=0.03) == word
    without = verdicts.OPEN if word.startswith("equivalent") else word
    assert verdicts.objective_verdict(against, proxy_data=True) == without


def simulated(truths: list[float], margin: float, draws: int) -> np.ndarray:
    """Verdicts [draws, objectives] on objectives that truly differ so from both none and control, by query and seed."""
    generator, found = np.random.default_rng(17), []
    member = generator.integers(0, 15, 60)
    clusters = [f"m{number}" for number in member]
    for _ in range(draws):
        noise = 0.02 * generator.normal(size=(5, 15, 1))[:, member] + 0.05 * generator.normal(size=(5, 60, 5))
        runs = noise + 0.02 * generator.normal(size=(5, 1, 5)) + np.array([0.0, 0.0, *truths])[:, None, None]
        compared = {
            str(row): {
                name: PairedDifference(significance.clustered(runs[row] - runs[other], clusters), 1.0, 1.0)
                for other, name in enumerate(("none", "control"))
            }
            for row in (2, 3, 4)
        }
        correct(compared, list(compared), ["none", "control"], margin)
        words = (
            verdicts.objective_verdict(list(own.values()), proxy_data=True, margin=margin) for own in compared.values()
        )
        found.append([word.startswith(verdicts.EQUIVALENT) for word in words])
    return np.array(found)


@pytest.mark.slow
def test_systems_at_the_margin_are_rarely_called_equivalent_and_equal_ones_often_are() -> None:
    """Any of three that differ by the margin, above or below it; the level is that of the family."""
    draws = 500
    for truths in ([0.1, -0.1, 0.1], [0.0, 0.0, -0.1]):
        wrong = simulated(truths, 0.1, draws)[:, np.abs(truths) == 0.1].any(axis=1).mean()
        assert wrong <= significance.SIGNIFICANT + 2 * (0.05 * 0.95 / draws) ** 0.5
    assert simulated([0.0] * 3, 0.1, 100).mean() > 0.8


def test_a_table_with_a_margin_tells_equivalence_with_its_p_and_a_note(tmp_path: Path) -> None:
    """MLM is as good as none and the control; ICT is far above both."""
    table = plan(tmp_path)
    table["significance"]["margin"] = 0.1
    for salt, name in enumerate(("control", "mlm")):
        for seed in row_of(table, name)["cells"]["rr"]["reads"]:
            folder = tmp_path / f"alike-{name}-{seed['seed']}"
            seed["folder"] = write_scores(folder, 0.0, 1000 * (salt + 1) + seed["seed"])
    made = table_of(table)
    lines = lines_of(tmp_path, made)
    assert [lines[row, "RR@10"]["verdict"] for row in ("mlm", "ict")] == ["equivalent within 0.1", "holds here"]
    by_row = {row.id: row.cells["rr"].comparisons for row in made.rows if row.setting == "BM25 negatives"}
    for other in ("none", "control"):
        ours = [lines[row, "RR@10"] for row in ("mlm", "ict")]
        apart = [cell_differences(table, row, other) for row in ("mlm", "ict")]
        expected = significance.holm([significance.clustered(each, CLUSTERS).p_within(0.1) for each in apart])
        assert [float(line[f"p_equivalent_{other}"]) for line in ours] == pytest.approx(expected, rel=1e-9)
        assert [by_row[row][other].p_equivalent for row in ("mlm", "ict")] == pytest.approx(expected, rel=1e-9)
    assert any(note.startswith("equivalent within 0.1: two one-sided tests") for note in made.footnotes)


def test_a_table_without_a_margin_is_what_it_was(tmp_path: Path) -> None:
    made = table_of(plan(tmp_path))
    assert "equivalent" not in made.model_dump_json() + " ".join(lines_of(tmp_path, made)["ict", "RR@10"])


def cell_differences(table: dict[str, Any], row: str, other: str) -> np.ndarray:
    """RR@10 [queries, seeds] of a row less that of another, from their files."""
    folders = ([read["folder"] for read in row_of(table, name)["cells"]["rr"]["reads"]] for name in (row, other))
    ours, theirs = (
        np.stack([scores.read_scores(Path(folder))["test", "RR@10"].values for folder in own], axis=1)
        for own in folders
    )
    return ours - theirs


@pytest.mark.slow
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

"""How close a run is to a reference: by hand and by SciPy, at the ends of each scale, and what is refused."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from encore.config.datasets import Measure
from encore.data.rankings import Ranking, Run
from encore.data.runs import describe
from encore.data.trec_runs import write_trec
from encore.errors import EncoreError
from encore.evaluation.reproducibility import PERSISTENCE, closeness, order
from tests.support import inside

RR = Measure("RR", cutoff=10)
GRADES = {f"q{number}": {f"d{number}": 1} for number in range(6)}


def ranked(*documents: str) -> Ranking:
    return Ranking(list(documents), -np.arange(len(documents), dtype=np.float32))


def answers(ranks: list[int]) -> Run:
    """A run that has each query's relevant document at a rank."""
    run = {}
    for number, rank in enumerate(ranks):
        others = [f"x{place}" for place in range(12)]
        run[f"q{number}"] = ranked(*others[: rank - 1], f"d{number}", *others[rank - 1 :])
    return run


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


def test_effects_are_as_computed_by_hand() -> None:
    ours, theirs = answers([1, 2, 1, 4, 2, 1]), answers([1, 1, 1, 2, 2, 1])
    ours_base, theirs_base = answers([2, 4, 2, 5, 2, 4]), answers([2, 2, 2, 4, 5, 10])
    (found,) = closeness(ours, theirs, GRADES, [RR], (ours_base, theirs_base))
    own, other, own_base, other_base = (
        np.array([1 / (list(ranking.documents).index(f"d{query[1:]}") + 1) for query, ranking in run.items()])
        for run in (ours, theirs, ours_base, theirs_base)
    )
    assert (found.measure, found.ours, found.theirs) == (
        "RR@10",
        pytest.approx(own.mean()),
        pytest.approx(other.mean()),
    )
    assert found.error == pytest.approx(math.sqrt(((own - other) ** 2).mean()))
    assert found.p == pytest.approx(stats.ttest_rel(own, other).pvalue)
    assert found.effect_ratio == pytest.approx((own - own_base).mean() / (other - other_base).mean())
    improvements = [other.mean() / other_base.mean() - 1, own.mean() / own_base.mean() - 1]
    assert found.relative == pytest.approx(improvements[0] - improvements[1])
    (itself,) = closeness(theirs, theirs, GRADES, [RR], (theirs_base, theirs_base))
    assert (itself.effect_ratio, itself.relative, itself.error) == (1.0, 0.0, 0.0)
    (alone,) = closeness(ours, theirs, GRADES, [RR])
    assert (alone.effect_ratio, alone.relative) == (None, None)


def test_a_query_without_an_answer_counts_as_nothing() -> None:
    ours, theirs = answers([1, 1, 1, 1, 1, 1]), answers([1, 1, 1, 1, 1, 1])
    del ours["q3"]
    (found,) = closeness(ours, theirs, GRADES, [RR])
    assert (found.ours, found.theirs) == (pytest.approx(5 / 6), 1.0)
    assert order(ours, theirs, 10).queries == 5


def test_what_cannot_be_compared_is_refused() -> None:
    run, other = answers([1, 2, 3, 4, 5, 6]), {"z": ranked("a")}
    foreign = {query: ranked(*(f"other-{each}" for each in found.documents)) for query, found in run.items()}
    with pytest.raises(EncoreError, match="no document in common; name runs over the same passages"):
        order(run, foreign, 10)
    with pytest.raises(EncoreError, match="no query in common"):
        order(run, other, 10)
    with pytest.raises(EncoreError, match="fewer than 2 queries"):
        closeness(run, run, {"q0": {"d0": 1}}, [RR])
    with pytest.raises(EncoreError, match=r"RR@10: the reference gains nothing over its baseline"):
        closeness(run, run, GRADES, [RR], (run, run))


def test_the_command_prints_what_was_computed(tmp_path: Path) -> None:
    names = {"ours": answers([1, 2, 1, 4, 2, 1]), "theirs": answers([1, 1, 1, 2, 2, 1])}
    for name, run in names.items():
        write_trec(tmp_path / f"{name}.gz", run, describe(name, collection="c", split="s", retrieval=[]))
    judged = "".join(f"{query} 0 {document} 1\n" for query, of in GRADES.items() for document in of)
    (tmp_path / "qrels").write_text(judged)
    files = [str(tmp_path / name) for name in ("ours.gz", "theirs.gz", "qrels")]
    command = ("compare", *files, "--measure", "RR@10")
    done = inside.encore(*command)
    (expected,) = closeness(names["ours"], names["theirs"], GRADES, [RR])
    assert f"RR@10      {expected.ours:.4f}, reference {expected.theirs:.4f}" in done.stdout
    assert "order, of 6 queries that both answer" in done.stdout
    told = json.loads(inside.encore(*command, "--json").stdout)
    assert told["measures"][0]["error"] == expected.error
    for name in names:
        write_trec(
            tmp_path / f"{name}.gz", {"q0": ranked("d0")}, describe(name, collection="c", split="s", retrieval=[])
        )
    told = json.loads(inside.encore(*command, "--json").stdout, parse_constant=pytest.fail)
    assert told["tau"] is None, "no order of one document"
    wrong = inside.encore(*command[:-1], "MRR@x")
    assert wrong.returncode != 0
    assert wrong.stderr.startswith("error: measure 'MRR@x'")


@pytest.mark.parametrize(
    ("judged", "says"),
    [
        ("z1 0 d1 1\n", "judges no query of .*ours.gz; name the judgments of its queries"),
        ("q0 0 d1 1\nq0 0 d1 2\n", "'q0' and 'd1' are judged twice, with other grades"),
    ],
)
def test_judgments_of_other_queries_and_contradictions_are_refused(judged: str, says: str, tmp_path: Path) -> None:
    write_trec(
        tmp_path / "ours.gz", answers([1, 2, 1, 4, 2, 1]), describe("x", collection="c", split="s", retrieval=[])
    )
    (tmp_path / "qrels").write_text(judged)
    done = inside.encore("compare", *(str(tmp_path / name) for name in ("ours.gz", "ours.gz", "qrels")))
    assert done.returncode != 0
    assert re.search(says, done.stderr)
    assert "Traceback" not in done.stderr

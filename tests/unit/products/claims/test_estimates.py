"""Claims on runs: what a contrast of cells is estimated at, and the verdict that follows."""

import re
from dataclasses import replace

import numpy as np
import pytest

from encore.errors import EncoreError
from encore.evaluation.significance import clustered
from encore.products.claims.contrasts import Address, Contrast
from encore.products.claims.estimates import WeightedValues, estimate
from encore.products.claims.judging import RunValues, judge_on_runs
from encore.products.claims.run_claims import family_of
from encore.products.claims.verdict import Evidence, of_inequalities
from encore.products.tables.cell_scores import CellScores
from encore.products.tables.entries import Table
from encore.products.tables.sources.base import CellValues
from tests.support.small_claims import QUERIES, claim
from tests.support.small_claims import cell_values as values

ROWS = ("a", "b", "c")
COLUMNS = ("x", "y")


def cell(row, column="x"):
    return Address("p/t", "", row, column)


def given(cells):
    """Cells by row and column, each itself."""
    known = {cell(*name): [WeightedValues(1.0, value)] for name, value in cells.items()}
    return known.get


def no_number(address):
    return None


def test_a_difference_on_the_same_queries_is_tested_query_by_query():
    a, b = values(0.5, salt=1), values(0.4, salt=2)
    found = estimate(Contrast(((cell("a"), 1), (cell("b"), -1)), least=0.02), given({("a",): a, ("b",): b}), no_number)
    apart = np.stack([x.values - y.values for x, y in zip(a.queries.scored, b.queries.scored, strict=True)], axis=1)
    wanted = clustered(apart - 0.02, QUERIES)
    assert found.mean == pytest.approx(wanted.mean)
    assert found.difference.error == pytest.approx(wanted.error)
    assert found.difference.p == pytest.approx(wanted.p)
    assert found.seeds == 5


def test_seeds_are_paired_by_their_numbers_whatever_their_order():
    order = [4, 2, 0, 3, 1]
    a, b = values(0.5, salt=1), values(0.4, seeds=order, salt=2)
    found = estimate(Contrast(((cell("a"), 1), (cell("b"), -1))), given({("a",): a, ("b",): b}), no_number)
    pairs = [(a.queries.scored[seed], b.queries.scored[order.index(seed)]) for seed in range(5)]
    wanted = clustered(np.stack([x.values - y.values for x, y in pairs], axis=1), QUERIES)
    assert found.mean == pytest.approx(wanted.mean)
    assert found.difference.error == pytest.approx(wanted.error, rel=1e-9)
    assert found.difference.p == pytest.approx(wanted.p, rel=1e-9)


def test_a_system_without_chance_is_paired_with_every_seed():
    found = estimate(
        Contrast(((cell("a"), 1), (cell("b"), -1))),
        given({("a",): values(0.5), ("b",): values(0.4, seeds=(None,))}),
        no_number,
    )
    assert found.seeds == 5
    assert found.mean == pytest.approx(0.1, abs=0.02)
    both = estimate(
        Contrast(((cell("a"), 1), (cell("b"), -1))),
        given({("a",): values(0.5, seeds=(None,)), ("b",): values(0.4, seeds=(None,))}),
        no_number,
    )
    assert both.seeds is None


def test_sums_over_collections_add_their_variances():
    others = [f"r{number}" for number in range(30)]
    first = {("a",): values(0.5, salt=1), ("b",): values(0.4, salt=2)}
    second = {("a", "y"): values(0.5, queries=others, salt=3), ("b", "y"): values(0.4, queries=others, salt=4)}
    terms = [(cell("a"), 1), (cell("b"), -1)]
    more = [(cell("a", "y"), 1), (cell("b", "y"), -1)]
    cells = given(first | second)
    one, other, both = (estimate(Contrast(tuple(each)), cells, no_number) for each in (terms, more, terms + more))
    assert both.mean == pytest.approx(one.mean + other.mean)
    assert both.difference.error < one.difference.error + other.difference.error
    assert both.difference.error > max(one.difference.error, other.difference.error) * 0.9


def test_a_mean_of_columns_is_the_sum_of_its_parts():
    parts = [WeightedValues(0.5, values(0.5, salt=1)), WeightedValues(0.5, values(0.3, salt=2))]
    found = estimate(Contrast(((cell("a"), 1),)), {cell("a"): parts}.get, no_number)
    assert found.mean == pytest.approx(np.mean([part.values.means for part in parts]))


def test_a_printed_mean_of_columns_counts_as_one_training_more_as_a_printed_number_does():
    totals = [0.40, 0.41, 0.39, 0.42, 0.38]
    one, parts = CellValues(list(range(5)), totals), 14
    cells = {cell("a"): [WeightedValues(1.0, one)], cell("b"): [WeightedValues(1 / parts, one)] * parts}
    for row in ("a", "b"):
        contrast = Contrast(((cell(row), 1),), printed=((cell(row), -1),))
        found = estimate(contrast, cells.get, lambda _: 0.4)
        assert found.difference.error == pytest.approx(np.std(totals, ddof=1) * np.sqrt(1 + 1 / 5))


def test_what_has_no_queries_is_tested_over_seeds():
    losses = {
        name: CellValues([0, 1, 2], [mean + 0.01 * seed for seed in range(3)]) for name, mean in (("a", 2), ("b", 1))
    }
    cells = given({("a",): losses["a"], ("b",): losses["b"]})
    found = estimate(Contrast(((cell("a"), 1), (cell("b"), -1))), cells, no_number)
    assert (found.mean, found.seeds) == (pytest.approx(1.0), 3)
    single = given({(name,): CellValues([None], [loss.means[0]]) for name, loss in losses.items()})
    lone = estimate(Contrast(((cell("a"), 1), (cell("b"), -1))), single, no_number)
    assert lone.mean == pytest.approx(1.0)
    assert lone.p_above == 0.5  # one measurement shows nothing but a direction


def test_a_missing_cell_gives_nothing():
    contrast = Contrast(((cell("a"), 1), (cell("b"), -1)))
    assert estimate(contrast, given({("a",): values(0.5)}), no_number) is None
    against = Contrast(((cell("a"), 1),), printed=((cell("a"), -1),))
    assert estimate(against, given({("a",): values(0.5)}), no_number) is None
    assert estimate(against, given({("a",): values(0.5)}), lambda address: 0.4).mean == pytest.approx(0.1, abs=0.02)


def test_rows_without_a_common_seed_are_refused():
    with pytest.raises(EncoreError, match="share no seed"):
        estimate(
            Contrast(((cell("a"), 1), (cell("b"), -1))),
            given({("a",): values(0.5, seeds=(0, 1)), ("b",): values(0.4, seeds=(2, 3))}),
            no_number,
        )


TABLE = Table.model_validate(
    {
        "title": "Small",
        "rows": [{"id": name, "label": name, "system": name} for name in ROWS],
        "columns": [{"id": name, "label": name, "dataset": "d", "split": "s", "measure": name} for name in COLUMNS],
    }
)


def verdict(tests, truths, *, premise=(), proxy_data=False, seeds=(0, 1, 2, 3, 4), printed=no_number, ours=False):
    cells = {
        (row, column): values(truth, seeds=seeds, salt=salt)
        for salt, (row, truth) in enumerate(truths.items())
        for column in COLUMNS
    }
    judged = claim(*tests, premise=[{"table": "p/t", **test} for test in premise])
    judged = judged.model_copy(update={"of_these_data": ours})
    return judge_on_runs(judged, RunValues({"p/t": TABLE}, given(cells), printed, proxy_data))


ABOVE = {"kind": "above", "rows": ["a"], "than": ["b"]}


@pytest.mark.parametrize(
    ("truths", "proxy_data", "word"),
    [
        ({"a": 0.6, "b": 0.4}, False, "reproduced"),
        ({"a": 0.6, "b": 0.4}, True, "holds here"),
        ({"a": 0.4, "b": 0.6}, False, "contradicted"),
        ({"a": 0.4, "b": 0.6}, True, "fails here"),
    ],
)
def test_words(truths, proxy_data, word):
    assert verdict([ABOVE], truths, proxy_data=proxy_data).verdict == word


def test_equal_systems_show_at_most_a_direction():
    found = verdict([ABOVE], {"a": 0.5, "b": 0.5})
    assert found.verdict in ("same direction", "not distinguishable")
    assert found.detectable > 0


def test_a_claim_needs_five_seeds():
    assert verdict([ABOVE], {"a": 0.6, "b": 0.4}, seeds=(0, 1)).verdict == "too few seeds"
    assert verdict([ABOVE], {"a": 0.6, "b": 0.4}, seeds=(None,)).verdict == "reproduced"


@pytest.mark.parametrize("few", ["b", "c"])
def test_the_test_with_the_fewest_seeds_decides_whether_they_are_enough(few):
    both = claim(*({"kind": "above", "rows": ["a"], "than": [other], "columns": ["x"]} for other in "bc"))
    cells = {("a",): values(0.6), ("b",): values(0.4, salt=1), ("c",): values(0.3, salt=2)}
    words = [
        judge_on_runs(both, RunValues({"p/t": TABLE}, given(cells | fewer), no_number, False)).verdict
        for fewer in ({}, {(few,): values(0.4, seeds=(0, 1), salt=3)})
    ]
    assert words == ["reproduced", "too few seeds"]


def test_a_claim_without_its_premise():
    premise = [{"kind": "above", "rows": ["b"], "than": ["c"]}]
    unmet = verdict([ABOVE], {"a": 0.6, "b": 0.4, "c": 0.5}, premise=premise)
    assert unmet.verdict == "premise not met"
    assert re.match(
        r"0 of \d comparisons of the premise hold, \d needed; the weakest is p/t / .*b / .*, c: -0\.\d+ \(p ", unmet.why
    )
    assert verdict([ABOVE], {"a": 0.6, "b": 0.4, "c": 0.2}, premise=premise).verdict == "reproduced"


def test_the_weakest_of_comparisons_without_an_error_is_the_lowest():
    """As of costs, which one machine measured once."""
    single = {name: CellValues([None], [mean]) for name, mean in (("a", 5.0), ("b", 1.0), ("c", 10.0))}
    above = claim({"kind": "above", "rows": ["a"], "than": ["b", "c"], "columns": ["x"]})
    cells = given({(name,): one for name, one in single.items()})
    found = judge_on_runs(above, RunValues({"p/t": TABLE}, cells, no_number, False))
    (tested,) = found.tested
    assert [one.mean for one in tested.estimates] == [4.0, -5.0]
    assert tested.weakest[1].mean == -5.0


def test_queries_of_one_cluster_are_not_testable_here_and_other_claims_are_judged():
    one = values(0.6)
    same = [replace(each, clusters=["the same"] * len(QUERIES)) for each in one.queries.scored]
    one = CellValues(one.seeds, one.means, one.ties, CellScores(one.seeds, same))
    cells = given({("a",): one, ("b",): values(0.4, salt=1)})
    found = judge_on_runs(claim(ABOVE), RunValues({"p/t": TABLE}, cells, no_number, False))
    assert (found.verdict, "nearly all of its queries are one cluster" in found.why) == ("not testable here", True)


def test_what_was_not_run_is_not_testable_here():
    found = verdict([ABOVE], {"a": 0.6})
    assert found.verdict == "not testable here"
    assert "has no value here" in found.why


def test_what_a_paper_only_states_is_not_testable_here():
    stated = claim({"kind": "stated", "needs": "a scale"})
    found = judge_on_runs(stated, RunValues({}, lambda address: None, no_number, False))
    assert (found.verdict, "nothing here measures a scale" in found.why) == ("not testable here", True)


def test_amounts_are_not_testable_on_other_data_unless_the_claim_is_of_these():
    close = {"kind": "close", "rows": ["a"], "to": ["b"], "within": 0.1}
    assert verdict([close], {"a": 0.5, "b": 0.5}).verdict == "reproduced"
    assert verdict([close], {"a": 0.7, "b": 0.5}).verdict == "contradicted"
    assert verdict([close], {"a": 0.5, "b": 0.5}, proxy_data=True).verdict == "not testable here"
    assert verdict([close], {"a": 0.5, "b": 0.5}, proxy_data=True, ours=True).verdict == "holds here"


def test_a_printed_value_is_reproduced_within_its_margin_and_too_good_fails_too():
    value = {"kind": "close", "rows": ["a"], "to": "printed", "within": 0.05}
    assert verdict([value], {"a": 0.5}, printed=lambda address: 0.51).verdict == "reproduced"
    assert verdict([value], {"a": 0.5}, printed=lambda address: 0.40).verdict == "contradicted"
    assert verdict([value], {"a": 0.5}, printed=lambda address: 0.60).verdict == "contradicted"


def test_several_tests_must_all_hold():
    less = {"kind": "above", "rows": ["c"], "than": ["a"]}
    assert verdict([ABOVE, less], {"a": 0.6, "b": 0.4, "c": 0.2}).verdict == "contradicted"
    assert verdict([ABOVE, less], {"a": 0.6, "b": 0.4, "c": 0.8}).verdict == "reproduced"


def test_orders_are_compared():
    table = TABLE.model_copy(
        update={"rows": [row.model_copy(update={"setting": each}) for each in ("one", "two") for row in TABLE.rows]}
    )
    alike = claim({"kind": "alike", "rows": list(ROWS), "settings": ["one", "two"]})

    def cells(address, turned):
        truth = {"a": 0.6, "b": 0.5, "c": 0.4}[address.row]
        truth = 1 - truth if turned and address.setting == "two" else truth
        return [WeightedValues(1.0, values(truth, salt=ord(address.row)))]

    for turned, word in ((False, "reproduced"), (True, "contradicted")):
        runs = RunValues({"p/t": table}, lambda address, turned=turned: cells(address, turned), no_number, False)
        assert judge_on_runs(alike, runs).verdict == word


@pytest.mark.parametrize(("or_equal", "evidence"), [(True, Evidence.SHOWN), (False, Evidence.OPEN)])
def test_systems_that_answer_every_query_alike_fulfil_at_least_as_good_and_not_better(or_equal, evidence):
    contrast = Contrast(((cell("a"), 1), (cell("b"), -1)), or_equal=or_equal)
    found = estimate(contrast, given({("a",): values(0.5), ("b",): values(0.5)}), no_number)
    assert found.holds is or_equal
    assert of_inequalities([found], 1) is evidence


def test_families_of_measures_are_those_of_the_file_of_spreads():
    assert family_of("RR@10", "test") == family_of("RR(rel=3)@10", "test") == "RR"
    assert family_of("nDCG@10", "graded") == "nDCG"
    assert (family_of("R@20", "test"), family_of("R(rel=3)@100", "test")) == ("R to 20", "R from 50")
    assert family_of("R(rel=1)@1000", "graded") == "R of many"
    assert family_of("Success@5", "test") == ""

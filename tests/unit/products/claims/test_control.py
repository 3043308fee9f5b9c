"""Claims on runs: rows that a paper copied, cells that cannot be had, and the second verdict against the control."""

import csv
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from encore.products.claims import run_claims
from encore.products.claims.contrasts import Address, Contrast
from encore.products.claims.estimates import WeightedValues, estimate
from encore.products.claims.judging import RunValues, judge_control_on_runs, judge_on_runs
from encore.products.slices import NOT_BUILT
from encore.products.tables.entries import Table
from encore.products.tables.sources.base import CellValues
from tests.support.small_claims import SEEDS, cell_values, claim

ROWS = [{"id": name, "label": name, "system": name} for name in ("a", "b", "control")]
COPIED = [{"id": name, "label": name, "reported_only": "Others 2020"} for name in ("c", "d")]
TABLE = Table.model_validate(
    {
        "title": "Small",
        "reported": "reported/t.csv",
        "rows": ROWS + COPIED,
        "columns": [
            {"id": "x", "label": "x", "dataset": "d", "split": "s", "measure": "RR@10"},
            {"id": "cost", "label": "cost", "dataset": "d", "split": "s", "efficiency": "latency"},
        ],
    }
)
PRINTED = {("c", "x"): 0.5, ("d", "x"): 0.4, ("c", "cost"): 100.0}
ABOVE = {"kind": "above", "table": "p/t", "rows": ["a"], "than": ["b"], "columns": ["x"]}
COMPARED = {**ABOVE, "than": ["c"]}


def runs(truths, *, proxy_data=False, seeds=SEEDS, drift=0.0, missing=MappingProxyType({})):
    known = {
        (row, column): [WeightedValues(1.0, cell_values(truth, seeds, salt=salt, spread=0.2, drift=drift))]
        for salt, (row, truth) in enumerate(truths.items())
        for column in ("x", "cost")
    }
    return RunValues(
        {"p/t": TABLE},
        lambda address: known.get((address.row, address.column)),
        lambda address: PRINTED.get((address.row, address.column)),
        proxy_data,
        missing,
    )


@pytest.mark.parametrize(("truth", "word"), [(0.7, "reproduced"), (0.3, "contradicted")])
def test_a_copied_row_is_its_printed_number(truth, word):
    assert judge_on_runs(claim(COMPARED), runs({"a": truth})).verdict == word


def test_a_copied_number_is_one_training_on_queries_that_err_in_part_alike():
    """Its training varies as one of ours, and a share of both systems' variance over queries does not cancel."""
    near = replace(runs({"a": 0.54}, drift=0.01), shares=lambda address: 0.26)
    (tested,) = judge_on_runs(claim(COMPARED), near).tested
    ours = cell_values(0.54, spread=0.2, drift=0.01)
    of_seeds, of_queries = tested.estimates[0].difference.components
    assert of_seeds == pytest.approx((np.var(ours.means, ddof=1) * (1 + 1 / 5), 4))
    mean = np.mean([one.values for one in ours.queries.scored], axis=0)
    assert of_queries == pytest.approx((0.26 * 2 * mean.var(ddof=1) / 40, 39))
    assert judge_on_runs(claim(COMPARED), near).verdict == "same direction"
    assert judge_on_runs(claim({**COMPARED, "than": ["d"]}), near).verdict == "reproduced"


def test_our_own_printed_number_was_taken_on_the_same_queries(monkeypatch):
    monkeypatch.setitem(PRINTED, ("a", "x"), 0.54)
    value = {"kind": "close", "table": "p/t", "rows": ["a"], "to": "printed", "columns": ["x"], "within": 0.1}
    (tested,) = judge_on_runs(claim(value), runs({"a": 0.54}, drift=0.001)).tested
    ours = cell_values(0.54, spread=0.2, drift=0.001).means
    assert tested.estimates[0].difference.components == (pytest.approx((np.var(ours, ddof=1) * (1 + 1 / 5), 4)),)


def test_equal_systems_are_rarely_shown_above_a_copied_one():
    """Their printed training is one draw like ours; with sd / sqrt(S) alone this errs in 32 %."""
    generator, found = np.random.default_rng(2), []
    contrast = Contrast(((Address("p/t", "", "a", "x"), 1),), printed=((Address("p/t", "", "c", "x"), -1),))
    for _ in range(1000):
        ours = generator.normal(0, 0.01, 6)
        cell = [WeightedValues(1.0, CellValues(list(range(5)), list(ours[:5])))]
        found.append(estimate(contrast, lambda address, cell=cell: cell, lambda address, ours=ours: ours[5]))
    assert np.mean([one.p_above <= 0.025 for one in found]) <= 0.025 + 2 * (0.025 / 1000) ** 0.5


def test_what_has_no_chance_in_it_is_compared_on_its_queries():
    assert judge_on_runs(claim(COMPARED), runs({"a": 0.6}, seeds=(None,))).verdict == "reproduced"
    assert judge_on_runs(claim(COMPARED), runs({"a": 0.3}, seeds=(None,))).verdict == "contradicted"


@pytest.mark.parametrize(
    ("test", "proxy_data", "why"),
    [
        (COMPARED, True, "c / x is copied from Others 2020, on other data than this run's"),
        ({**COMPARED, "rows": ["d"]}, False, "neither is run here"),
        ({**COMPARED, "columns": ["cost"]}, False, "a cost measured on another machine"),
        ({**COMPARED, "than": ["d"]}, False, "the paper prints no number"),
    ],
    ids=["stand-in", "both copied", "cost", "not printed"],
)
def test_what_copied_rows_cannot_say(monkeypatch, test, proxy_data, why):
    monkeypatch.delitem(PRINTED, ("d", "x"))
    found = judge_on_runs(claim(test), runs({"a": 0.6}, proxy_data=proxy_data))
    assert found.verdict == "not testable here"
    assert why in found.why


def test_a_missing_cell_has_a_reason():
    absent = {Address("p/t", "", "b", "x"): "no honest stand-in"}
    found = judge_on_runs(claim(ABOVE), runs({"a": 0.6}, missing=absent))
    assert (found.verdict, found.why) == ("not testable here", "p/t / b / x has no value here: no honest stand-in")


def test_on_proxy_data_comparisons_without_data_are_left_out():
    absent = {Address("p/t", "", "b", "x"): "no honest stand-in"}
    both = {**ABOVE, "than": ["b", "control"]}
    truths = {"a": 0.9, "control": 0.2}
    here = runs(truths, proxy_data=True, missing=absent)
    found = judge_on_runs(claim(both), here)
    assert found.verdict == "holds here"
    assert found.why == "1 of 2 comparisons left out: p/t / b / x has no value here: no honest stand-in"
    assert judge_on_runs(claim({**ABOVE, "than": ["c", "control"]}), here).why.startswith(
        "1 of 2 comparisons left out: p/t / c"
    )
    whole = judge_on_runs(claim(ABOVE, both), here)
    assert (whole.verdict, whole.why[:33]) == ("holds here", "2 of 3 comparisons left out: p/t ")
    apart = judge_on_runs(claim(ABOVE, {**ABOVE, "than": ["control"]}), here)
    assert apart.why == "1 of 2 comparisons left out: p/t / b / x has no value here: no honest stand-in"
    for test in (ABOVE, {**both, "at_least": 2}, {"kind": "no-winner", "table": "p/t", "row": "a", "than": "b"}):
        assert judge_on_runs(claim(test), here).verdict == "not testable here"
    too_few = judge_on_runs(claim({**ABOVE, "than": ["control"]}, {**both, "at_least": 2}), here)
    assert too_few.verdict == "not testable here"
    assert too_few.why.startswith("1 of 2 comparisons have values here, and 2 must hold: p/t / b / x has no value here")
    papers = runs(truths, missing=absent)
    assert judge_on_runs(claim(both), papers).verdict == "not testable here"
    unbuilt = runs(truths, proxy_data=True, missing=dict.fromkeys(absent, NOT_BUILT))
    assert judge_on_runs(claim(both), unbuilt).verdict == "not testable here"


def test_how_much_is_not_asked_of_other_data_but_no_worse_is():
    more, no_worse = {**ABOVE, "by": 0.05}, {**ABOVE, "by": -0.05, "or_equal": True}
    truths = {"a": 0.9, "b": 0.3}
    assert judge_on_runs(claim(more), runs(truths)).verdict == "reproduced"
    assert judge_on_runs(claim(more), runs(truths, proxy_data=True)).verdict == "not testable here"
    assert judge_on_runs(claim(no_worse), runs(truths, proxy_data=True)).verdict == "holds here"


CONTROL = [{**ABOVE, "than": ["control"]}]


@pytest.mark.parametrize(("control", "word"), [(0.2, "holds here"), (0.95, "fails here")])
def test_a_gain_that_holds_may_not_survive_the_control(control, word):
    found = claim(ABOVE, control=CONTROL)
    here = runs({"a": 0.6, "b": 0.2, "control": control}, proxy_data=True)
    assert judge_on_runs(found, here).verdict == "holds here"
    assert judge_control_on_runs(found, here).verdict == word
    assert judge_control_on_runs(claim(ABOVE), here) is None


def test_both_verdicts_are_written(tmp_path, monkeypatch):
    gap = {"table": "p/t", "setting": "", "row": "b", "column": "x", "why": "no honest stand-in"}
    shape = {
        "rows": [row.model_dump(include={"id", "setting", "reported_only"}) for row in TABLE.rows],
        "columns": [{"id": column.id, "source": column.source} for column in TABLE.columns],
    }
    given = run_claims.ClaimsSlice.model_validate(
        {
            "name": "claims",
            "claims": {
                "C1": {"paper": "p", "claim": claim({**ABOVE, "than": ["control"]}, control=CONTROL)},
                "C2": {"paper": "p", "claim": claim(ABOVE)},
                "C3": {"paper": "p", "claim": claim(ABOVE, control=[{**ABOVE, "table": "gone"}])},
            },
            "shapes": {"p/t": shape},
            "tables": {},
            "unavailable": {"gone": "no such data"},
            "missing": [gap],
        }
    )
    here = runs({"a": 0.9, "control": 0.2})
    monkeypatch.setattr(run_claims, "_cells", lambda tables: here.cells)
    run_claims.write_run_claims(tmp_path, given, tmp_path)
    with (tmp_path / "claims.csv").open(newline="", encoding="utf-8") as file:
        lines = {line["id"]: line for line in csv.DictReader(file)}
    assert (lines["C1"]["verdict"], lines["C1"]["survives_control"]) == ("holds here", "holds here")
    assert float(lines["C1"]["control_estimate"]) == pytest.approx(0.7, abs=0.1)
    assert (lines["C2"]["survives_control"], lines["C2"]["why"]) == (
        "",
        "p/t / b / x has no value here: no honest stand-in",
    )
    assert (lines["C3"]["survives_control"], lines["C3"]["control_why"]) == ("not testable here", "no such data")
    assert (lines["C1"]["chance"], lines["C2"]["chance"]) == ("0.5", "")
    page = (tmp_path / "claims.md").read_text()
    assert "Of 1 claims with a chance 1 agree with the estimates; 0.5 would by chance." in page
    assert "## p" in page
    assert "| C1 | s | p | holds here | holds here |" in page


def test_the_page_counts_what_agrees_by_chance_and_names_what_was_left_out():
    lines = []
    for verdict, chance, why in (
        ("same direction", "0.5", ""),
        ("not distinguishable", "0.25", "60 of 90 comparisons left out: no data"),
        ("holds here", "0.5", ""),
        ("premise not met", "", ""),
    ):
        line = dict.fromkeys(run_claims.COLUMNS, "") | {"verdict": verdict, "chance": chance, "why": why}
        lines.append(line | {"inequalities": "30", "needed": "30", "held": "30"})
    page = run_claims.page("Claims", lines)
    assert "Of 3 claims with a chance 2 agree with the estimates; 1.2 would by chance." in page
    assert page.count("30 of 30, 60 left out") == 1


@pytest.mark.parametrize(("rows", "word"), [("a", "same direction"), ("b", "opposite direction")])
def test_what_is_measured_once_has_a_direction_of_its_own(rows, word):
    """A cost: one value without a seed or an error, so nothing is left to chance, and nothing is shown."""
    once = runs({})
    costs = {"a": 20.0, "b": 10.0}
    once = replace(
        once, cells=lambda at: [WeightedValues(1.0, CellValues([None], [costs[at.row]]))] if at.row in costs else None
    )
    test = {**ABOVE, "rows": [rows], "than": [{"a": "b", "b": "a"}[rows]], "columns": ["cost"]}
    assert judge_on_runs(claim(test), once).verdict == word

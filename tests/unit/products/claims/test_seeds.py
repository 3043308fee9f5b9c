"""How many seeds a claim needs: against the test's own power, and what `encore preflight claims` prints of it."""

from pathlib import Path

import pytest

from encore.evaluation.significance import Component, Difference
from encore.products.catalogue import load_plan
from encore.products.claims.entries import Claim, read_claims
from encore.products.claims.power import Power
from encore.products.claims.printed_claims import printed_values
from encore.products.claims.seeds import NEVER, TRIED, ExpectedDifference, seeds_needed, seeds_text

PAPERS = Path("config/papers")


def expected(mean, queries=6980, of_seeds=0.003):
    return ExpectedDifference(mean, 0.0625 / queries, queries, 0.64, 2 * of_seeds**2, 0.0)


@pytest.mark.parametrize("seeds", [5, 10, 20])
def test_what_is_expected_to_be_shown_has_about_the_power(seeds):
    """Ten seeds find .0097 with 80 %, five .016: docs/protocol.md; the approximation is within a seventh."""
    of_queries, of_seeds = 0.0225 + 0.04 / seeds, (2 * 0.003**2 + 0.04 / 6980) / seeds
    exact = Difference(0.0, (Component(of_queries / 6980, 6979), Component(of_seeds, seeds - 1)), seeds)
    least = exact.detectable(0.05 / 8)
    assert expected(least * 7 / 6).shown_with(seeds, 0.05 / 8)
    assert not expected(least * 6 / 7).shown_with(seeds, 0.05 / 8)


def test_more_seeds_show_more_and_a_copied_training_never_less_than_its_own_luck():
    shown = [expected(0.0097).shown_with(seeds, 0.05) for seeds in TRIED]
    assert shown == sorted(shown)
    assert shown[-1]
    copied = ExpectedDifference(0.0097, 0.0625 / 6980, 6980, 0.64, 0.003**2, 0.01**2)
    assert not copied.shown_with(1000, 0.05)


def test_claims_need_seeds_by_their_weakest_needed_comparison(catalogue):
    tables = catalogue.tables
    power = Power(PAPERS, tables, printed_values(PAPERS, tables))
    claims = {name: claim for name, (_, claim) in read_claims(PAPERS).items()}
    assert seeds_needed(claims["C24"], power) == 5  # tens of points on many queries
    assert seeds_needed(claims["C38"], power) == NEVER  # .001 of nDCG@10 on 43 queries
    for unknown in ("C02", "C10", "C41", "C48", "C71", "C72", "C108"):  # against, no winner, orders, figures, costs
        assert seeds_needed(claims[unknown], power) is None
    above = {"kind": "above", "table": "costa/table1", "rows": ["costa"], "than": ["bert"], "columns": ["mrr10"]}
    alone = Claim.model_validate({"says": "s", "place": "p", "tests": [above]})
    assert seeds_needed(alone, power) == 5


@pytest.mark.usefixtures("at_the_root")
def test_a_run_knows_what_its_seeds_can_show():
    text = seeds_text(load_plan(Path("config/paper.yaml")))
    assert "Seeds that claims need (80 % power" in text
    assert "  more than 50: " in text
    assert "This run has 1; a verdict needs 5 or more." in text
    assert "not known on proxy data" in seeds_text(load_plan(Path("config/config.yaml")))

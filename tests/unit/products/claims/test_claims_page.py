"""What docs/claims.md and the configuration's page say of claims is so."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from encore.commands.__main__ import main
from encore.products.claims.contrasts import copied_from
from encore.products.claims.entries import KINDS, Claim, read_claims, read_papers
from encore.products.claims.plan import all_shapes, cells_of, chosen_claims
from encore.products.claims.verdict import Evidence, of_inequalities
from tests.support.shipped import plan_with
from tests.support.simulated_verdicts import every, rates, within

ROOT = Path(__file__).parents[4]
PAPERS = Path("config/papers")
PAGE = (ROOT / "docs/claims.md").read_text()
PROTOCOL = (ROOT / "docs/protocol.md").read_text()
ON_REAL_TEXT = [paper for paper, fields in read_papers().items() if fields.claims == "named"]


def test_the_example_is_a_claim_on_tables_that_there_are(catalogue):
    page = (ROOT / "config/README.md").read_text()
    example = yaml.safe_load(re.search(r"## Claims\n.*?```yaml\n(.*?)```", page, re.S)[1])
    claim = Claim.model_validate(example["C38"])
    found = read_claims(PAPERS)["C38"][1]
    assert (claim.says, claim.tests, claim.control) == (found.says, found.tests, found.control)
    for test in (*claim.premise, *claim.tests, *claim.control):
        assert test.contrasts(catalogue.tables)


def test_every_kind_of_test_is_explained():
    grammar = PAGE.split("## Tests")[1].split("kind of figure")[0]
    assert re.findall(r"^\| `([\w-]+)` \| ", grammar, re.M) == list(KINDS)


def test_the_page_counts_the_claims():
    of_real_text = [name for name, (paper, _) in read_claims(PAPERS).items() if paper in ON_REAL_TEXT]
    assert f"There are {len(read_claims(PAPERS)) - len(of_real_text)}." in PAGE
    assert f"{of_real_text[0]} to {of_real_text[-1]} repeat" in PAGE


def test_a_run_with_all_claims_judges_none_that_a_run_has_to_name(catalogue):
    """Those are of collections that most runs do not have."""
    asked_for = {name for name, (paper, _) in read_claims().items() if paper in ON_REAL_TEXT}
    assert ON_REAL_TEXT == ["real"]
    assert chosen_claims(plan_with(catalogue, "nano"), read_claims()).keys() == read_claims().keys() - asked_for
    named = min(asked_for)
    assert list(chosen_claims(plan_with(catalogue, "nano", {"claims": [named]}), read_claims())) == [named]


def test_every_claim_of_a_control_is_about_the_control():
    controlled = {name: claim.control for name, (_, claim) in read_claims(PAPERS).items() if claim.control}
    assert controlled.keys() == {"C01", "C29", "C31", "C38", "C40"}
    for tests in controlled.values():
        assert all(test.kind == "above" and test.than == ["control"] and "/" not in test.table for test in tests)


def test_claims_about_rows_that_are_printed_only_are_those_that_the_page_names(catalogue):
    shapes = all_shapes(catalogue)
    copied = [
        name
        for name, (paper, claim) in read_claims(PAPERS).items()
        if paper not in ON_REAL_TEXT and any(copied_from(cell, shapes) for cell in cells_of(name, claim, shapes))
    ]
    told = re.search(r"Comparisons with such rows, .*? are in (.*?)\.\n", PAGE, re.DOTALL)
    assert re.findall(r"C\d+", told[1]) == copied


@pytest.mark.parametrize(
    ("truth", "judge", "truths", "wrong"),
    [
        ("equal systems", every, [0.0], Evidence.SHOWN),
        ("one of three comparisons equal, all needed", every, [0.0, 0.3, 0.3], Evidence.SHOWN),
        (
            "three of five equal, three needed",
            lambda estimates: of_inequalities(estimates, 3),
            [0.3, 0.3, 0.0, 0.0, 0.0],
            Evidence.SHOWN,
        ),
        ("hardly above", every, [1e-9], Evidence.REFUTED),
        pytest.param("eight hardly above, all needed", every, [1e-9] * 8, Evidence.REFUTED, marks=pytest.mark.slow),
        ("a difference as large as the margin", lambda estimates: every(within(estimates)), [0.15], Evidence.SHOWN),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_the_rates_of_the_protocol_are_those_of_the_simulation(truth, judge, truths, wrong):
    says = re.search(rf"^\| {truth} \| [\w ]+ \| ([\d.]+) % \|$", PROTOCOL, re.M)
    assert 100 * rates(judge, truths)[wrong] == pytest.approx(float(says[1]), abs=0.05)


def test_the_command_prints_the_page_of_the_runs_or_how_to_make_it(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["encore", "claims"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    assert "snakemake results/claims.csv" in capsys.readouterr().err
    Path("results").mkdir()
    Path("results/claims.md").write_text("# The claims\n")
    with pytest.raises(SystemExit) as left:
        main()
    assert (left.value.code, capsys.readouterr().out) == (0, "# The claims\n")

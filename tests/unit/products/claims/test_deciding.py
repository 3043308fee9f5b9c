"""What decides a claim, as `encore claims C48` tells it; and that a forecast takes claims and figures."""

import csv
import json
import sys
from pathlib import Path

import pytest

from encore.commands.__main__ import main
from encore.errors import EncoreError
from encore.evaluation.significance import Component, Difference
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.claims import deciding, run_claims
from encore.products.claims.entries import read_claims
from encore.products.claims.judging import EvaluatedTest
from encore.products.claims.plan import claims_plan
from encore.products.claims.run_claims import COLUMNS
from encore.products.claims.verdict import Estimate, Evidence, of_inequalities

ROOT = Path(__file__).parents[4]
PAPERS = ROOT / "config/papers"

pytestmark = pytest.mark.usefixtures("at_the_root")


@pytest.fixture(scope="module")
def plan():
    return load_plan(ROOT / "config/nano.yaml")


def claim_folders(plan, name):
    """The folders that a claim rests on, and why cells of it have no value here."""
    reads, reasons = deciding.claim_reads(plan, name, read_claims(PAPERS)[name][1])
    return list(dict.fromkeys(read.folder for own in reads.values() for read in own)), reasons


def test_a_claim_of_a_figure_is_told_with_its_points_and_folders(plan):
    told = deciding.claim_text(plan, "C48").splitlines()
    assert told[0] == "C48 (costa; section 5.5 and figure 4): With 2,000 queries COSTA passes BM25."
    assert told[1] == "all of: above, 2 comparisons, all must hold"
    assert told[2] == "  costa/figure4 / MRR@10, MS MARCO dev / costa / costa-low-2000, BM25"
    assert any(line.startswith("rests on 4 folders of this run, ") for line in told)
    found, reasons = claim_folders(plan, "C48")
    assert [("~sample=" in folder, "bm25" in folder) for folder in found] == [
        *((sampled, False) for sampled in (False, True, True)),
        (False, True),
    ]
    assert not reasons


def test_a_claim_of_a_table_has_its_control_and_a_picture_no_number(plan):
    told = deciding.claim_text(plan, "C38")
    assert "all of: above, 24 comparisons, all must hold" in told
    assert "all of: above, 16 comparisons, all must hold" in told
    assert "  and 12 more" in told
    assert "control: above, 2 comparisons" in told
    assert "table1 / BM25 negatives / costa / rr10, control" in told
    assert "no number decides it" in deciding.claim_text(plan, "C71")


def test_what_has_no_value_here_is_told_with_the_reason(plan):
    assert (
        "sections" in deciding.claim_text(plan, "C70").split("without a value here:")[1]
    )  # no graded judgments in nano


def test_the_verdict_on_runs_is_told_once_it_is_there(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(deciding, "RUNS", tmp_path / "claims.csv")
    assert "on runs: not judged; make it with: snakemake" in deciding.claim_text(plan, "C48")
    line = dict.fromkeys(COLUMNS, "") | {"id": "C48", "verdict": "holds here", "weakest": "a, b", "estimate": "0.1"}
    with (tmp_path / "claims.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerow(line)
    assert "on runs: holds here; weakest: a, b, 0.1" in deciding.claim_text(plan, "C48")
    (tmp_path / "claims.csv").write_text("id,verdict\nC48,holds here\n")
    with pytest.raises(EncoreError, match=r"claims.csv has no column why, weakest, estimate"):
        deciding.claim_text(plan, "C48")


def test_claims_that_are_named_read_what_they_rest_on_alone(plan):
    named = ["C03", "C38", "C48", "C57"]  # with a mean of columns, a control, points of a figure, and gains
    one = Plan(plan.config.model_copy(update={"claims": named}), plan.catalogue)
    folders = {folder for name in named for folder in claim_folders(plan, name)[0]}
    assert set(map(str, claims_plan(one).reads())) == folders
    content = claims_plan(one).dumped()
    assert list(content["claims"]) == sorted(named)
    written = run_claims.ClaimsSlice.model_validate(json.loads(json.dumps(content)))
    assert {str(folder) for folder in written.reads()} == folders


def test_a_claim_that_there_is_not_is_refused_with_the_nearest(plan):
    with pytest.raises(EncoreError, match=r"config/nano\.yaml: claims: there is no claim 'C999'; did you mean C99"):
        claims_plan(Plan(plan.config.model_copy(update={"claims": ["C999"]}), plan.catalogue)).dumped()


@pytest.mark.slow
def test_every_claim_rests_on_no_other_folder_than_the_ledger_reads(plan):
    read = set(map(str, claims_plan(plan).reads()))
    found = {name: claim_folders(plan, name) for name in read_claims(PAPERS)}
    assert {folder for folders, _ in found.values() for folder in folders} <= read
    # Of records of a machine, of pictures (C71, C120), of what is only stated (C127, C128).
    without = {"C17", "C34", "C71", "C89", "C108", "C109", "C120", "C127", "C128"}
    assert {name for name, (folders, reasons) in found.items() if not folders and not reasons} == without
    assert "rests on no folder" in deciding.claim_text(plan, "C71")


def test_an_unknown_claim_is_refused_by_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["encore", "claims", "c49o"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    assert "there is no claim 'C49O'; did you mean C49" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("means", "needed", "held", "evidence"),
    [
        ((0.1, 0.2, -0.1), 2, 2, Evidence.DIRECTION),
        ((0.1, 0.2, -0.1), 3, 2, Evidence.OPEN),
        ((-0.1, -0.2, 0.1), 2, 1, Evidence.OPEN),
    ],
)
def test_what_is_too_uncertain_to_be_shown_has_the_direction_of_its_estimates(means, needed, held, evidence):
    """An estimate above 0 is on the claim's side; each of these could as well be on the other."""
    estimates = tuple(Estimate(Difference(mean, (Component(1.0, 60),), 5)) for mean in means)
    assert of_inequalities(estimates, needed) is evidence
    assert EvaluatedTest((), estimates, needed, evidence).held == held

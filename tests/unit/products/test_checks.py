"""Published scores next to ours: what is compared, how far apart they may be, and what is refused before any job."""

import csv
from pathlib import Path

import numpy as np
import pytest

from encore.errors import EncoreError
from encore.evaluation.scores import Scored, write_scores
from encore.products.catalogue import load_plan
from encore.products.kinds import BY_RULE
from encore.products.known_numbers import ChecksSlice, checks_plan, write_checks
from encore.products.targets import everything_declared

ROOT = Path(__file__).parents[3]
KNOWN = {
    "system": "bm25",
    "dataset": "msmarco-passage",
    "measure": "RR@10",
    "published": 0.184,
    "within": 0.001,
    "source": "a page",
}


@pytest.mark.usefixtures("at_the_root")
def test_a_known_number_is_compared_with_the_scores_that_tables_show(make):
    plan = make({"checks": [KNOWN, KNOWN | {"system": "bert-base", "measure": "R@100"}]})
    bm25, start = checks_plan(plan).dumped()["rows"]
    assert [check.label for check in ChecksSlice.model_validate(checks_plan(plan).dumped()).rows] == [
        bm25["label"],
        start["label"],
    ]
    assert bm25["reads"] == [plan.scores("bm25", None, "msmarco-passage", "test").folder]
    assert start["reads"] == [plan.scores("bert-base", plan.config.seeds[0], "msmarco-passage", "test").folder]
    assert BY_RULE["checks"].reads(checks_plan(plan), "checks")[0] == f"{bm25['reads'][0]}/manifest.json"
    assert "results/checks.csv" in everything_declared(plan)
    assert "results/checks.csv" not in everything_declared(make())


@pytest.mark.usefixtures("at_the_root")
@pytest.mark.parametrize("path", sorted(ROOT.glob("config/checks/*.yaml")), ids=lambda path: path.stem)
def test_files_of_known_numbers_plan(path):
    rows = checks_plan(load_plan(path)).dumped()["rows"]
    assert len({(row["system"], row["dataset"], row["split"], row["measure"]) for row in rows}) == len(rows) > 0
    assert all(0 < row["published"] < 1 and row["within"] <= 0.002 for row in rows)


@pytest.mark.usefixtures("at_the_root")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"split": "tset"}, r"checks\.0: 'msmarco-passage' has no split 'tset'; did you mean test"),
        ({"measure": "RR@11"}, r"checks\.0: 'RR@11' is not measured on 'test'; did you mean RR@10"),
    ],
)
def test_what_is_not_measured_is_refused_with_its_place(make, change, says):
    with pytest.raises(EncoreError, match=says):
        checks_plan(make({"checks": [KNOWN | change]})).dumped()


@pytest.mark.usefixtures("at_the_root")
def test_a_run_without_known_numbers_is_told_where_there_are_some(make):
    with pytest.raises(EncoreError, match="name no known number; take a file of config/checks"):
        BY_RULE["checks"].slice(make(), "checks")


def test_a_score_agrees_within_its_tolerance_on_both_sides(tmp_path):
    """Of two queries with 0.25 and 0.75 the mean is 0.5."""
    values, none = np.array([0.25, 0.75]), np.zeros(2)
    scored = Scored(["a", "b"], ["a", "b"], values, values, values, none == 0, none.astype(np.int8))
    write_scores(tmp_path, {("test", "RR@10"): scored})
    published = {0.5: "agrees", 0.509: "agrees", 0.491: "agrees", 0.511: "differs", 0.489: "differs"}
    row = KNOWN | {"split": "test", "within": 0.01, "label": "bm25", "reads": [str(tmp_path)]}
    content = {"name": "checks", "rows": [row | {"published": number} for number in published]}
    assert (
        write_checks(tmp_path, ChecksSlice.model_validate(content), tmp_path) == "3 of 5 agree with what is published"
    )
    lines = list(csv.DictReader((tmp_path / "checks.csv").open()))
    assert {float(line["published"]): line["verdict"] for line in lines} == published
    assert [line["difference"] for line in lines][:2] == ["0.0", "-0.009"]
    page = (tmp_path / "checks.md").read_text()
    assert "| bm25 | msmarco-passage | test | RR@10 | 0.4890 ± 0.01 | 0.5000 | differs | a page |" in page

"""The page of objectives names what there is: every objective, step and reading, and lineages to ask for."""

import re
from pathlib import Path

import pytest
import yaml

from encore import objectives
from encore.products.catalogue import load_plan

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/objectives.md").read_text()
STEPS = yaml.safe_load((ROOT / "config/steps.yaml").read_text())
PRETRAINING = {name: step["objective"] for name, step in STEPS.items() if step["kind"] == "pretrain"}
SAID, READ = (
    [line.split("|")[1:-1] for line in re.findall(r"^\| `.*$", part, re.M)] for part in PAGE.split("\nh is the pooled")
)


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


@pytest.fixture(scope="module")
def plan():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield load_plan()


def test_every_objective_and_every_step_of_a_paper_has_its_place():
    """An objective of one's own, whose steps say `source: ours`, needs no row; a row that there is must be right."""
    named = [quoted(row[0])[0] for row in SAID]
    assert set(named) <= set(objectives.names())
    published = {step: name for step, name in PRETRAINING.items() if name in named or not own(step)}
    assert {step: quoted(row[0])[0] for row in SAID for step in quoted(row[1])} == published


def own(step):
    return STEPS[step].get("source", "").startswith("ours")


@pytest.mark.parametrize("step", [step for row in READ for step in quoted(row[0])])
def test_readings_can_be_run(plan, step):
    plan.resolve.lineage(f"bert-base+{step}")


@pytest.mark.parametrize("lineage", re.findall(r"\b((?:bert-base|two-tower-128)\+[^\s`#]+)", PAGE))
def test_lineages_named_can_be_asked_for(plan, lineage):
    plan.resolve.lineage(lineage)

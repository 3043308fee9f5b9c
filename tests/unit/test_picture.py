"""The README's picture shows the rules and the plan as they are."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from encore.project import load_plan

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "workflow" / "scripts" / "picture.py"


@pytest.fixture(scope="module")
def picture():
    spec = importlib.util.spec_from_file_location("picture", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_rule_that_makes_files_has_its_place(picture):
    rules = (ROOT / "workflow" / "rules").glob("*.smk")
    makes_files = {
        name
        for file in rules
        for name, body in re.findall(r"^rule (\w+):\n(.*?)(?=^rule |\Z)", file.read_text(), re.M | re.S)
        if "    output:" in body
    }
    assert makes_files == set(picture.RULES)


def test_what_is_drawn_is_what_the_plan_makes(picture, monkeypatch):
    monkeypatch.chdir(ROOT)
    jobs, arrows = picture.stages(load_plan())
    assert set(jobs) <= set(picture.RULES), "some rules are for other runs"
    assert {("search", "negatives"), ("lucene_search", "negatives"), ("start", "finetune")} <= arrows
    assert ("collection", "evaluate") not in arrows  # it follows from the arrow from a run


def test_the_picture_is_up_to_date(tmp_path):
    drawn = tmp_path / "dag.svg"
    subprocess.run([sys.executable, SCRIPT, "--output", drawn], cwd=ROOT, check=True)
    assert drawn.read_text() == (ROOT / "docs" / "dag.svg").read_text(), "draw it anew with `make picture`"

"""The pictures of the README and of docs/systems.md show the rules and the plan as they are."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.plan.project import load_plan

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "workflow" / "scripts" / "picture.py"
PICTURES = {"dag": "table1", "recipes": "table2"}  # what `make picture` draws


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


@pytest.mark.parametrize("layout", ["PRETRAINING", "RECIPES"])
def test_no_two_rules_have_one_place(picture, layout):
    places = getattr(picture, layout).places
    assert set(places) <= set(picture.RULES)
    assert len(set(places.values())) == len(places)


def test_the_pictures_name_every_rule(picture):
    """In a box of one, or else in the lines below one."""
    shown = {name: (ROOT / "docs" / f"{name}.svg").read_text() for name in PICTURES}
    boxes = {name: set(re.findall(r"<tspan font-weight='bold'>(\w+)</tspan>", text)) for name, text in shown.items()}
    below = {name: set(re.findall(r"(\w+) \(", text)) for name, text in shown.items()}
    assert set().union(*boxes.values(), *below.values()) == set(picture.RULES)
    assert not set().union(*boxes.values()) & set().union(*below.values())


def test_what_is_drawn_is_what_the_plan_makes(picture, monkeypatch):
    monkeypatch.chdir(ROOT)
    jobs, arrows = picture.stages(load_plan(), ["table1"])
    assert picture.layout_of(jobs) is picture.PRETRAINING
    assert {("search", "negatives"), ("lucene_search", "negatives"), ("start", "finetune")} <= arrows
    assert ("collection", "evaluate") not in arrows  # it follows from the arrow from a run
    jobs, arrows = picture.stages(load_plan(), ["table2"])
    assert picture.layout_of(jobs) is picture.RECIPES
    assert {
        ("finetune", "teacher_scores"),
        ("teacher_scores", "finetune"),
        ("negatives", "teacher_scores"),
        ("lucene_search", "rerank"),
    } <= arrows


def test_rules_that_no_picture_holds_are_refused(picture):
    with pytest.raises(EncoreError, match=r"has a place for pretrain; draw fewer tables"):
        picture.layout_of(["pretrain", "finetune", "rerank", "teacher_scores"])


@pytest.mark.parametrize(("name", "table"), PICTURES.items())
def test_the_pictures_are_up_to_date(tmp_path, name, table):
    drawn = tmp_path / "drawn.svg"
    subprocess.run([sys.executable, SCRIPT, "--tables", table, "--output", drawn], cwd=ROOT, check=True)
    assert drawn.read_text() == (ROOT / "docs" / f"{name}.svg").read_text(), "draw it anew with `make picture`"

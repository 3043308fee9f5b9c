"""What the pages say about files and numbers is so."""

import copy
import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from encore.data.beir import BeirFields
from encore.plan.project import DEFAULT_RUN, load_plan
from encore.plan.tables import table_scores

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for folder in ("docs", "config", "benchmarks") for path in (ROOT / folder).glob("*.md")),
    ]
)
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", page.read_text())
    for name, anchor in links:
        if "://" in name:
            continue
        target = page.parent / name if name else page
        assert target.exists(), f"{name} is not there"
        assert not anchor or anchor in anchors(target.read_text()), f"{name} has no section {anchor}"


def anchors(text: str) -> set[str]:
    """The sections of a page as links name them."""
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {"#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_pages_are_found():
    assert {"README.md", "design.md", "protocol.md", "pydocs.md", "add-an-objective.md"} <= {
        page.name for page in PAGES
    }


def test_the_example_of_an_own_collection_is_valid():
    page = (ROOT / "docs/collections.md").read_text()
    example = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.S)[1])
    own = BeirFields.model_validate(example["datasets"]["own"])
    assert {split.role for split in own.splits.values()} == {"train", "valid", "test"}
    assert set(example["scale"]["datasets"].values()) == {"own"}


def test_the_example_of_a_change_makes_as_many_jobs_as_it_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    run = yaml.safe_load(DEFAULT_RUN.read_text())
    changed = copy.deepcopy(run)
    changed["scale"]["steps"] |= yaml.safe_load(re.search(r"^    (ict: \{.*\})$", README, re.M)[1])
    differing = {
        key for key, value in changed["scale"]["steps"]["ict"].items() if run["scale"]["steps"]["ict"].get(key) != value
    }
    assert differing == {"temperature"}, "the README's line must be the configuration's but for the temperature"
    before, after = (_folders(each) for each in (run, changed))
    says = int(re.search(r"plans (\d+) jobs", README)[1])
    assert "snakemake results/tables/table1.csv --profile local -n" in README
    assert says == len(after - before) + len(["table1"])


def _folders(run):
    """All that table 1, the example's target, is made from."""
    plan = load_plan(DEFAULT_RUN, run)
    return {each.folder for scores in table_scores(plan, "table1") for each in scores.ancestors()}


def test_no_page_promises_a_file_of_the_configuration_that_is_not_there():
    named = {name for page in PAGES for name in re.findall(r"`(config/[\w./-]+\.(?:yaml|csv|json))`", page.read_text())}
    assert len(named) > 5
    assert sorted(name for name in named - {"config/own.yaml"} if not (ROOT / name).exists()) == []


def _drawing():
    """``docs/draw.py`` as a module."""
    described = importlib.util.spec_from_file_location("draw_pictures", ROOT / "docs/draw.py")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["table1", "table2", "rooms"])
def test_pictures_show_what_is_there(name):
    drawing = _drawing()
    page = (ROOT / drawing.PICTURES[name][0]).read_text()
    assert drawing.drawn_anew(name) == page, "run `make picture`"

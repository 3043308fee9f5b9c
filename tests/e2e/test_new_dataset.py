"""The page about a new kind of dataset, followed to the letter."""

import json
import re
import sys

import pytest

from tests.support.clones import BIN, REPOSITORY, Clone, Done

PAGE = (REPOSITORY / "docs/add-a-dataset.md").read_text()
LINES = "what is lift\tWhat holds a wing up.\nwhat is drag\tThe force that slows it.\nwhat is yaw\tA left turn.\n"
SIZE = """
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.products.catalogue import load_plan
from pathlib import Path

plan = load_plan(Path("config/faq.yaml"))
size = CollectionSizes(plan, read_stated(Path("config/sizes.yaml"))).of(plan.collection("faq"))
print(size.passages.count, size.topics("test"), [note for note in size.notes if "length" not in note])
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def added(clone: Clone) -> Clone:
    """A clone with the page's file, and a run with its dataset."""
    (path,) = re.findall(r"The\s+file\s+is\s+`([\w/.]+)`", PAGE)
    (code,), (entry,) = blocks("python"), blocks("yaml")
    (clone.root / path).write_text(code)
    (clone.root / "data").mkdir(exist_ok=True)
    (clone.root / "data/faq.tsv").write_text(LINES)
    run = f"title: Questions\n{entry}".replace("config/config.yaml", "config/nano.yaml")
    (clone.root / "config/faq.yaml").write_text(run)
    return clone


def library(clone: Clone, *arguments: str) -> Done:
    """Python with the clone's library."""
    return clone.run(sys.executable, *arguments, env={"PYTHONPATH": str(clone.root / "src")})


def encore(clone: Clone, *arguments: str) -> Done:
    return library(clone, "-m", "encore.commands", *arguments, "--config", "config/faq.yaml")


def built(clone: Clone, targets: list[str]) -> Done:
    options = ("--profile", "local", "--configfile", "config/faq.yaml")
    return clone.run(str(BIN / "snakemake"), *targets, *options, env={"PYTHONPATH": str(clone.root / "src")})


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 75


def test_a_kind_of_one_file_is_planned_counted_and_built(added: Clone) -> None:
    listed = encore(added, "targets", "faq").succeeded().split()
    assert re.fullmatch(r"results/collections/faq-[0-9a-f]{8}/manifest\.json", listed[0])
    assert library(added, "-c", SIZE).succeeded().splitlines()[-1] == "3 3.0 []"
    assert "faq: passages unknown" not in encore(added, "preflight").succeeded()
    built(added, listed).succeeded()
    folder = added.folder("collections", "faq")
    statistics = json.loads((folder / "statistics.json").read_text())
    assert (statistics["passages"], statistics["splits"]["test"]["judgments"]) == (3, 3)
    assert json.loads((folder / "manifest.json").read_text())["stage"] == "collection.faq"
    assert (folder / "qrels/test.tsv").read_text().splitlines()[1] == "q1\ta1\t1"


def test_mistakes_are_told_in_one_line(added: Clone) -> None:
    run = added.root / "config/faq.yaml"
    text = run.read_text()
    run.write_text(text.replace("kind: faq", "kind: fak"))
    assert "datasets.faq: unknown kind of dataset 'fak'; did you mean faq?" in encore(added, "targets", "faq").error()
    run.write_text(text.replace("path: data", "files: data"))
    assert "datasets.faq.files: unknown key" in encore(added, "targets", "faq").error()
    run.write_text(text)
    (added.root / "data/faq.tsv").write_text(LINES.replace("drag\t", "drag "))
    listed = encore(added, "targets", "faq").succeeded().split()
    refused = "data/faq.tsv, line 2: needs `question<TAB>answer`; fix or remove the line"
    assert refused in built(added, listed).output

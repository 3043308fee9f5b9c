"""The page about a new objective, followed to the letter by somebody who has run nano before."""

import csv
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.support.clones import REPOSITORY, Clone

PAGE = (REPOSITORY / "docs/add-an-objective.md").read_text()
UNLIKE_OURS = Path(__file__).with_name("replaced.py")  # an objective that is not built on one of ours
MODEL = "tiny+halves+marco-bm25-s0"
TRAINED = {"pretrain tiny+halves-s0", f"finetune {MODEL}", f"evaluate {MODEL} pydocs-stdlib.test"}
ONLY_ITS_OWN = {
    "pretrain tiny+halves-s0",
    f"finetune {MODEL}",
    f"encode {MODEL} pydocs-stdlib 000-of-001",
    f"search {MODEL} pydocs-stdlib.test",
    f"evaluate {MODEL} pydocs-stdlib.test",
    "table table1",
    "figure table1",
    "curves",
    "report",
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def add(clone: Clone) -> str:
    """Write the file and the entry where the page says; the file's place."""
    (path,) = re.findall(r"The\s+file\s+is\s+`([\w/.]+)`", PAGE)
    (code,), entry = blocks("python"), blocks("yaml")[0]
    (clone.root / path).write_text(code)
    with (clone.root / "config/steps.yaml").open("a") as steps:
        steps.write(entry)
    return path


def add_row(clone: Clone) -> None:
    """Give the new objective its row of a table; nano asks for its rows by name."""
    row = blocks("yaml")[1].strip()
    insert(clone, "config/papers/encore/tables.yaml", "\ntable1:\n(?:.*\n)*?  rows:\n", f"    {row}\n")
    insert(clone, "config/nano.yaml", r"\btable1: \[", "halves, ")


def sources(clone: Clone) -> dict[str, str]:
    """The text of every file that a commit would hold, by its place."""
    folders = ("src", "config", "workflow", "tests", "docs", "benchmarks", "profiles")
    paths = [*clone.root.glob("*"), *(path for folder in folders for path in (clone.root / folder).rglob("*"))]
    return {
        str(path.relative_to(clone.root)): path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if path.is_file() and "__pycache__" not in path.parts
    }


def insert(clone: Clone, name: str, after: str, text: str) -> None:
    path = clone.root / name
    changed, places = re.subn(after, lambda found: found[0] + text, path.read_text(), count=1)
    assert places == 1, f"{name} has no {after!r}"
    path.write_text(changed)


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 66


def test_a_new_objective_is_one_new_file_and_one_added_line(nano: Clone) -> None:
    """With no other change its lineage is planned."""
    before = sources(nano)
    path = add(nano)
    after = sources(nano)
    assert after.keys() - before.keys() == {path}
    assert before.keys() <= after.keys()
    assert {name for name in before if after[name] != before[name]} == {"config/steps.yaml"}
    added = after["config/steps.yaml"].removeprefix(before["config/steps.yaml"])
    assert added.splitlines() == blocks("yaml")[0].splitlines()
    assert len(added.splitlines()) == 1

    own = {"PYTHONPATH": str(nano.root / "src")}
    config = ("--config", "config/nano.yaml")
    listed = nano.run(
        sys.executable, "-m", "encore.commands", "targets", "bert-base+halves+marco-bm25", *config, env=own
    )
    assert nano.planned(*listed.succeeded().split()) >= TRAINED


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with two new objectives: the page's, and one that is built on nothing but the base."""
    clone = Clone.fresh(tmp_path_factory.mktemp("objectives") / "clone")
    add(clone)
    (clone.root / "src/encore/objectives/replaced.py").write_text(UNLIKE_OURS.read_text())
    return clone


@pytest.mark.parametrize("name", ["halves", "replaced"])
def test_the_printed_command_tests_a_new_objective_and_passes(extended: Clone, name: str) -> None:
    (printed,) = re.findall(r"`(pytest [^`]*)`", PAGE)
    command = shlex.split(printed.replace("halves", name))
    own = {"PYTHONPATH": str(extended.root / "src"), "PYTEST_ADDOPTS": "-v -p no:cacheprovider"}
    output = extended.run(sys.executable, "-m", *command, env=own).succeeded()
    assert len(re.findall(r"^tests/unit/\S+::.* PASSED", output, re.M)) >= 12, output


def test_the_page_s_code_passes_the_linter_and_the_formatter(extended: Clone) -> None:
    path = re.findall(r"The\s+file\s+is\s+`([\w/.]+)`", PAGE)[0]
    extended.run(sys.executable, "-m", "ruff", "check", "--no-cache", path).succeeded()
    extended.run(sys.executable, "-m", "ruff", "format", "--check", "--no-cache", path).succeeded()


def test_the_page_gives_a_row_with_a_number(nano: Clone) -> None:
    """Nothing but the new model is trained, and the table has its row."""
    add(nano)
    add_row(nano)
    assert nano.built() == ONLY_ITS_OWN
    with (nano.root / "results/tables/table1.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["row"] == "halves"]
    measured = {(row["measure"], row["split"]): float(row["reproduced"]) for row in rows if row["reproduced"]}
    assert ("RR@10", "test") in measured
    own = {"PYTHONPATH": str(nano.root / "src")}
    shown = ("show", "bert-base+halves+marco-bm25", "--config", "config/nano.yaml")
    said = nano.run(sys.executable, "-m", "encore.commands", *shown, env=own).succeeded()
    assert f"{measured['RR@10', 'test']:.3f}" in said
    assert all(0 <= value <= 1 for value in measured.values())
    losses = (nano.folder("models", "tiny+halves-s0") / "losses.tsv").read_text().splitlines()
    assert losses[0].split("\t") == ["step", "loss", "mlm", "halves"]

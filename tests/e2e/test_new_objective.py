"""The page about a new objective, followed to the letter by somebody who has run nano before."""

import csv
import re

from clones import REPOSITORY, Clone

PAGE = (REPOSITORY / "docs/add-an-objective.md").read_text()
MODEL = "tiny+halves+marco-bm25-s0"
ONLY_ITS_OWN = {
    "pretrain tiny+halves-s0",
    f"finetune {MODEL}",
    f"encode {MODEL} pydocs-stdlib 000-of-001",
    f"search {MODEL} pydocs-stdlib.test",
    f"evaluate {MODEL} pydocs-stdlib.test",
    "table table1",
    "figure table1",
    "curves pretraining",
    "claims_printed",  # of all rows of a table that claims are about
    "report",
}


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


def follow(clone: Clone) -> None:
    """Write the file, the entry, its size and its row where the page says; nano asks for its rows by name."""
    (path,) = re.findall(r"The file is `([\w/.]+)`", PAGE)
    (clone.root / path).write_text(block("python"))
    entry, size, row = (re.sub(r"\s+#.*", "", line) for line in block("yaml").splitlines())
    with (clone.root / "config/steps.yaml").open("a") as steps:
        steps.write(f"\n{entry}\n")
    insert(clone, "config/nano.yaml", "\n  steps:\n", f"    {size}\n")
    insert(clone, "config/papers/encore/tables.yaml", "\ntable1:\n(?:.*\n)*?  rows:\n", f"    {row}\n")
    insert(clone, "config/nano.yaml", r"\btable1: \[", "halves, ")


def insert(clone: Clone, name: str, after: str, text: str) -> None:
    path = clone.root / name
    changed, places = re.subn(after, lambda found: found[0] + text, path.read_text(), count=1)
    assert places == 1, f"{name} has no {after!r}"
    path.write_text(changed)


def test_a_step_that_claims_a_paper_needs_its_ledger(clone: Clone) -> None:
    with (clone.root / "config/steps.yaml").open("a") as steps:
        steps.write("\nhalves: {<<: *costa, batch: 32, source: a paper}\n")
    said = clone.nano("-n").error()
    assert "step 'halves' in config/steps.yaml: no ledger says where batch=32 comes from" in said


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) < 60


def test_the_page_gives_a_row_with_a_number(nano: Clone) -> None:
    """Nothing but the new model is trained, and the table has its row."""
    follow(nano)
    assert nano.built() == ONLY_ITS_OWN
    with (nano.root / "results/tables/table1.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["row"] == "halves"]
    measured = {(row["measure"], row["split"]): float(row["reproduced"]) for row in rows if row["reproduced"]}
    assert ("RR@10", "test") in measured
    assert all(0 <= value <= 1 for value in measured.values())
    losses = (nano.folder("models", "tiny+halves-s0") / "losses.tsv").read_text().splitlines()
    assert losses[0].split("\t") == ["step", "loss", "mlm", "halves"]

"""A copied study is audited with a paper of its own, whose printed numbers no checkout has."""

import shutil
from pathlib import Path

import pytest

from encore.commands.audit import copies
from encore.products.record import make_product
from encore.storage.files import write_json
from tests.support import inside, small_table

REPORTED = "config/papers/mine/reported/table1.csv"
PRINTED = "row_label,dataset,metric,value\nICT,pydocs,RR@10,.512\n"


def made(root: Path, paper: str) -> None:
    """A paper's table 1, next to the numbers that the study's own paper prints."""
    content = small_table.plan(root, seeds=1) | {"paper": paper, "reported": REPORTED}
    for row in content["rows"]:
        row["cells"]["rr"]["reported"] = {"row_label": row["label"], "dataset": "pydocs", "metric": "RR@10"}
    write_json(root / "plan.json", content)
    tables = Path("results/tables", paper)
    tables.mkdir(parents=True)
    make_product("table", root / "plan.json", None, inside.files("table", "table1", tables))


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study that was copied into the working folder, which is a checkout without its paper."""
    for folder in ("study", "checkout/config/papers/costa/reported"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(copies, "_labels", lambda table, place: [])  # of scores that are made up, with no spec
    monkeypatch.chdir(tmp_path / "study")
    Path(REPORTED).parent.mkdir(parents=True)
    Path(REPORTED).write_text(PRINTED)
    made(tmp_path / "scores", "mine")
    monkeypatch.chdir(tmp_path / "checkout")
    shutil.move(tmp_path / "study", "study")
    return Path("study")


def found(folder: Path) -> list[str]:
    """What the audit says of the tables of a copy, and not of their scores."""
    findings = copies.audit_copy(folder, None)[0].findings
    return [each.reason for each in findings if each.place.startswith("results/tables/")]


def test_printed_numbers_of_a_copied_studys_own_paper_are_read_from_the_copy(study: Path) -> None:
    """Such a table was refused, whatever the study had in ``config/papers``."""
    assert "0.512" in (study / "results/tables/mine/table1.csv").read_text()
    assert found(study) == []
    assert "printed numbers are this checkout's, and mine's are the copy's own" in copies.known_of(study)


def test_another_number_than_the_copys_paper_prints_is_found(study: Path) -> None:
    (study / REPORTED).write_text(PRINTED.replace(".512", ".521"))
    assert any("reported is '0.512', comes out again as '0.521'" in each for each in found(study))


def test_results_alone_have_no_paper_of_their_own(study: Path) -> None:
    assert any(f"takes numbers from '{REPORTED}', which is no file of" in each for each in found(study / "results"))


def test_a_copys_paper_prints_nothing_for_a_paper_of_the_checkout(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.chdir(study)
        made(tmp_path / "scores", "costa")
    assert any(f"takes numbers from '{REPORTED}', which is no file of" in each for each in found(study))


def test_the_checkouts_numbers_replace_those_of_the_copy(study: Path) -> None:
    Path(REPORTED).parent.mkdir(parents=True)
    Path(REPORTED).write_text(PRINTED.replace(".512", ".521"))
    assert any("reported is '0.512', comes out again as '0.521'" in each for each in found(study))

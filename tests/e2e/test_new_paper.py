"""The page about a new paper, followed to the letter by somebody who has run nano before."""

import csv
import re
import shlex
import shutil
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.products.catalogue import load_catalogue
from tests.support.clones import BIN, REPOSITORY, Clone, jobs
from tests.support.documented import of_page

PLACE = REPOSITORY / "docs/add-a-paper.md"
PAGE = PLACE.read_text()
RUN = "config/mine.yaml"
FILES = dict(re.findall(r"`([\w/]+\.\w+)`[:;](?:(?!```).)*```\w+\n(.*?)```", PAGE, re.DOTALL))
(FOLDER,) = re.findall(r"here `(config/papers/\w+)/`", PAGE)
TRAINED_ELSEWHERE = {"pretrain", "finetune", "encode", "lucene_index"}  # nano has it all


def add(root: Path) -> None:
    """Write the files where the page says."""
    for name, text in FILES.items():
        path = root / (name if name == RUN else f"{FOLDER}/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.quick
def test_the_page_is_short_and_has_every_file() -> None:
    assert len(PAGE.split()) <= 400
    assert [*FILES] == ["tables.yaml", "reported/table1.csv", "figures.yaml", "claims.yaml", "paper.yaml", RUN]


@pytest.mark.quick
def test_a_folder_whose_name_is_no_part_of_a_target_is_refused(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    for name in ("My-Paper", "mine.2"):
        added = tmp_path / f"config/papers/{name}"
        added.mkdir()
        (added / "tables.yaml").write_text(FILES["tables.yaml"])
        with pytest.raises(EncoreError, match=rf"{name}/tables.yaml: '{name}' is part of a target; name it with"):
            load_catalogue(tmp_path / "config")
        shutil.rmtree(added)


def test_a_folder_has_its_table_its_figure_and_its_verdicts(nano: Clone) -> None:
    """The page's own commands; nothing is trained that nano has."""
    add(nano.root)
    commands = [shlex.split(command.text) for command in of_page(PLACE, PLACE.name) if not command.inline]
    said = [nano.program(str(BIN / words[0]), *words[1:]).succeeded() for words in commands]
    made = jobs("".join(said))
    assert {"table mine/table1", "draw mine/figure1", "claims", "report"} <= made
    assert not TRAINED_ELSEWHERE & {job.split()[0] for job in made}

    with (nano.root / "results/tables/mine/table1.csv").open() as file:
        rows = {row["row"]: row for row in csv.DictReader(file)}
    assert [(row["reported"], row["reproduced"] != "") for row in rows.values()] == [
        *(("0.184", True), ("0.31", True), ("0.324", True)),
        ("0.339", False),
    ]
    with (nano.root / "results/claims.csv").open() as file:
        claims = {row["id"]: row for row in csv.DictReader(file)}
    assert {name: (row["paper"], row["verdict"]) for name, row in claims.items()} == {
        "C1001": ("mine", "too few seeds"),
        "C1002": ("mine", "too few seeds"),
    }
    lead = float(rows["ict"]["reproduced"]) - float(rows["bert"]["reproduced"])
    assert float(claims["C1001"]["estimate"]) == pytest.approx(lead)
    assert (nano.root / "results/figures/mine/figure1.svg").is_file()
    page = (nano.root / "results/report/index.html").read_text()
    assert "My paper, table 1" in page, "where C1001 is stated"
    assert "COSTA, section 5.1" in page
    assert "SEED" in said[-1]


def test_a_study_has_a_paper_of_its_own_next_to_the_programs(clone: Clone, tmp_path: Path) -> None:
    study = tmp_path / "study"
    add(study)
    typed = str(BIN / "snakemake"), "results/tables/table1.csv", "all", "--profile", "local"
    asked = (*typed, "--directory", str(study), "--configfile", str(study / RUN), "-n")
    assert {"table mine/table1", "draw mine/figure1", "table table1"} <= jobs(clone.run(*asked).succeeded())
    (study / FOLDER).rename(study / FOLDER.replace("mine", "costa"))
    refused = clone.run(*asked).error()
    assert "config/papers/costa/tables.yaml: the program has a paper of that name; give the folder another" in refused

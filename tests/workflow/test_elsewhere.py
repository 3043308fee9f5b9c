"""Encore's workflow on a study in another folder, by ``--directory`` and as a module."""

import csv
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support.clones import BIN, REPOSITORY, Clone, Done, jobs

SNAKEMAKE = str(BIN / "snakemake")
RUN = "mine.yaml"
MODULE = """
configfile: "mine.yaml"


module encore:
    snakefile: "{snakefile}"
    config: config


use rule * from encore
"""
THEIRS = """
onstart:
    print("their own start")


rule theirs:
    output: "theirs.txt"
    shell: "touch {output}"
"""


@pytest.fixture
def study(tmp_path: Path) -> Clone:
    """A folder that is no clone: a run of two lines, which takes over one of the program's."""
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / RUN).write_text("extends: config/nano.yaml\ntitle: Mine\n")
    return Clone(tmp_path / "study")


def made_in(study: Clone, done: Done) -> str:
    """The collection that was made, with nothing of the machine in what its manifest says."""
    assert done.code == 0, done.output
    (manifest,) = study.root.glob("results/collections/pydocs-stdlib-*/manifest.json")
    assert str(study.root) not in manifest.read_text()
    assert str(REPOSITORY) not in manifest.read_text()
    return f"results/collections/{manifest.parent.name}/manifest.json"


def target(study: Clone) -> str:
    done = study.run(str(BIN / "encore"), "targets", "--config", RUN, "pydocs-stdlib")
    assert done.code == 0, done.output
    return done.output.split()[-1]


@pytest.mark.slow
def test_a_study_keeps_its_own_results_beside_its_own_run(clone: Clone, study: Clone) -> None:
    wanted = target(study)
    command = (SNAKEMAKE, wanted, "--profile", "local", "--directory", str(study.root))
    done = clone.run(*command, "--configfile", str(study.root / RUN))
    assert made_in(study, done) == wanted
    assert f"encore audit --config {RUN}" in done.output, "as it is typed in the study"
    assert not list(clone.root.glob("results/collections/*"))
    again = study.run(
        SNAKEMAKE, wanted, "-n", "--cores", "1", "-s", f"{clone.root}/workflow/Snakefile", "--configfile", RUN
    )
    assert "Nothing to be done" in again.output


@pytest.mark.slow
def test_the_workflow_is_a_module_of_a_study_s_own(clone: Clone, study: Clone) -> None:
    (study.root / "workflow/scripts").mkdir(parents=True)
    snakefile = f"{clone.root}/workflow/Snakefile"
    (study.root / "workflow/Snakefile").write_text(THEIRS + MODULE.replace("{snakefile}", snakefile))
    wanted = target(study)
    done = study.run(SNAKEMAKE, wanted, "theirs.txt", "--cores", "2")
    assert made_in(study, done) == wanted
    assert (study.root / "theirs.txt").exists()
    assert "their own start" in done.output
    assert "Mine: what was requested is made" in done.output


def follow_the_page(study: Clone) -> dict[str, str]:
    """Give the study what docs/study.md prints; gives the surroundings of its commands."""
    page = (REPOSITORY / "docs/study.md").read_text()
    (snakefile,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (copying,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    for folder in ("config", "workflow"):
        (study.root / folder).mkdir()
    (study.root / "config" / RUN).write_text((study.root / RUN).read_text())
    (study.root / "workflow/Snakefile").write_text(snakefile)
    with_library = {"PYTHONPATH": str(REPOSITORY / "src"), "PATH": f"{BIN}:{os.environ['PATH']}"}
    assert study.run("bash", "-c", copying, env=with_library).code == 0
    return with_library


@pytest.mark.slow
def test_the_page_s_snakefile_plans_a_rule_of_the_study_that_takes_a_table(study: Clone) -> None:
    with_library = follow_the_page(study)
    done = study.run(SNAKEMAKE, "-n", "--quiet", "rules", "--profile", "local", env=with_library)
    planned = dict(re.findall(r"^(\w+) +(\d+)$", done.succeeded(), re.MULTILINE))
    assert (planned["best"], planned["table"], planned["all"]) == ("1", "1", "1")
    shown = study.run(str(BIN / "encore"), "show", "table1", env=with_library)
    assert "no run has made table1 here yet; build it, or name the run's file with --config" in shown.error()


@pytest.mark.slow
def test_the_page_s_rule_reads_the_table_that_encore_made(nano: Clone, study: Clone) -> None:
    with_library = follow_the_page(study)
    for made in ("results", ".snakemake"):
        (nano.root / made).rename(study.root / made)
    done = study.run(SNAKEMAKE, "--profile", "local", env=with_library)
    assert jobs(done.succeeded()) == {"table table1", "best"}
    with (study.root / "results/tables/table1.csv").open() as file:
        values = {row["label"]: float(row["reproduced"]) for row in csv.DictReader(file) if row["column"] == "rr10"}
    assert max(values, key=values.__getitem__) in (study.root / "results/best.txt").read_text()


@pytest.mark.slow
def test_a_workflow_that_snakedeploy_deployed_comes_from_its_repository(clone: Clone, study: Clone) -> None:
    """That is: a Snakefile with a repository's address, and the repository's ``config/`` to change."""
    shutil.copytree(clone.root, study.root / "repository", symlinks=True, ignore=shutil.ignore_patterns("results"))
    git = ("git", "-C", "repository", "-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "All"]):
        assert study.run(*git, *words).code == 0
    shutil.copytree(study.root / "repository/config", study.root / "config")
    (study.root / "config/config.yaml").write_text((study.root / RUN).read_text())
    (study.root / "workflow").mkdir()
    address = MODULE.replace('"{snakefile}"', 'gitfile("repository", path="workflow/Snakefile", ref="HEAD")')
    (study.root / "workflow/Snakefile").write_text(address.replace(RUN, "config/config.yaml"))
    wanted = target(study)
    assert made_in(study, study.run(SNAKEMAKE, wanted, "--cores", "2")) == wanted
    planned = study.run(SNAKEMAKE, "results/tables/table1.csv", "-n", "--cores", "2", "--quiet", "rules")
    assert re.search(r"^table +1$", planned.output, re.MULTILINE), planned.output


@pytest.mark.slow
def test_a_study_without_a_run_is_told_to_name_one(clone: Clone, tmp_path: Path) -> None:
    done = Clone(tmp_path).run(SNAKEMAKE, "-n", "--cores", "1", "-s", f"{clone.root}/workflow/Snakefile")
    assert "--configfile" in done.error()

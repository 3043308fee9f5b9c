"""A cluster's job knows the name of its own target: what the person asked for says how that is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.plan import project
from encore.plan.plan import Plan
from encore.plan.tables import declared, table_plan, wanted_tables
from encore.targets import lineage_targets, needed_by, recall, remember

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("at_the_root")


@pytest.mark.parametrize("lineage", ["bert-base+costa-low-500", "bert-base+marco-bm25~queries=50"])
def test_a_job_finds_all_that_an_undeclared_lineage_is_made_from(lineage: str) -> None:
    person = project.load_plan()
    asked = [target.rsplit("/", 1)[0] for target in lineage_targets(person, lineage)]
    wanted = {artifact.folder: artifact for folder in asked for artifact in person.find(folder).ancestors()}
    job = Plan(person.config, person.catalogue)
    missing = [folder for folder in wanted if not _finds(job, folder)]
    assert [folder for folder in missing if folder.startswith("results/negatives/bm25-")]
    for folder, artifact in wanted.items():
        job = Plan(person.config, person.catalogue)
        job.asked = asked
        assert job.find(folder).spec == artifact.spec


def test_what_another_configuration_was_asked_for_does_no_harm() -> None:
    plan = project.load_plan()
    plan.asked = ["results/models/tiny+marco-bm25-s0-00000000", "results/scores/no+lineage-s0-00000000/x-00000000"]
    with pytest.raises(EncoreError, match="is nothing that this configuration makes"):
        plan.find("results/negatives/bm25-812f4a43/pydocs.train.50-00000000")


def test_targets_are_remembered_once_and_declared_tables_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = project.load_plan()
    monkeypatch.chdir(tmp_path)
    assert recall() == []
    first, second = "results/models/a-s0-12345678", "results/scores/a-s0-12345678/b.test-12345678"
    remember(plan, [f"{first}/manifest.json", "results/tables/table1.csv", "results/tables/costa/table1.md"])
    remember(plan, [f"./{second}/scores.parquet", str(tmp_path / first / "manifest.json"), "results/claims.csv"])
    assert recall() == [first, "results/tables/costa/table1", second, "results/claims"]


def test_a_table_that_was_asked_for_is_planned_like_a_declared_one() -> None:
    person, job = project.load_plan(), project.load_plan()
    wanted = table_plan(person, "costa/table4")
    job.asked = [
        "results/tables/costa/table4",
        "results/tables/costa/table4",
        "results/tables/no/table",
        "results/claims",
    ]
    assert wanted_tables(job) == [*job.config.tables, "costa/table4"]
    assert declared(job)["costa/table4"] == wanted


def _finds(plan: Plan, folder: str) -> bool:
    try:
        plan.find(folder)
    except EncoreError:
        return False
    return True


def test_every_system_can_be_asked_for_by_name_and_found_by_its_folder() -> None:
    """Though no fusion can choose its weight on collections of questions, which know no RR@10."""
    person = project.load_plan()
    for name in person.catalogue.systems:
        targets = lineage_targets(person, name)
        assert targets, name
        for folder in (target.rsplit("/", 1)[0] for target in targets):
            assert folder.startswith(f"results/scores/{name}-")
            job = Plan(person.config, person.catalogue)
            assert job.find(folder).spec == person.find(folder).spec


def test_a_target_needs_what_it_is_made_from_and_no_other_table_s_data() -> None:
    """A set of BEIR that has to be brought by hand stops no run that does not read it."""
    plan = project.load_plan(Path("config/paper.yaml"))
    for name in ("costa/table4", "beir"):
        table_plan(plan, name)
    collections = {
        target: {
            made.name.rpartition("-")[0] for made in needed_by(plan, [target]) if made.stage.startswith("collection")
        }
        for target in (
            "results/tables/costa/table4.csv",
            "results/figures/costa/figure4.png",
            "results/tables/beir.csv",
            "results/claims.csv",
        )
    }
    assert not any(name.startswith("beir-") for name in collections["results/tables/costa/table4.csv"])
    assert any(name.startswith("beir-") for name in collections["results/tables/beir.csv"])
    assert collections["results/claims.csv"] >= collections["results/tables/beir.csv"]
    assert collections["results/figures/costa/figure4.png"] == {
        "msmarco-passage",
        "msmarco-passage-titles",
        "wikipedia",
    }
    assert {made.folder for made in needed_by(plan, [])} > {
        made.folder for made in needed_by(plan, ["results/tables/table1.csv"])
    }

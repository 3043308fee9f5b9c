"""Teachers in the plan: what is shared, what a change renames, what is refused before any job starts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from tests.support.shipped import plan_with

COLBERT = "bert-base-tct+colbert"
TCT = f"{COLBERT}+tct"
Make = Callable[..., Plan]


pytestmark = pytest.mark.usefixtures("at_the_root")


@pytest.fixture
def make(catalogue: Any) -> Make:
    """A plan of nano whose steps have other fields."""
    return lambda **steps: plan_with(
        catalogue, "nano", steps={name.replace("_", "-"): fields for name, fields in steps.items()}
    )


def model(plan: Plan, lineage: str) -> Artifact:
    return plan.model(plan.resolve.lineage(lineage), 0)


def teacher_outputs(plan: Plan, lineage: str) -> list[Artifact]:
    return [artifact for role, artifact in model(plan, lineage).inputs.items() if role.startswith("teacher")]


def test_students_of_one_teacher_share_what_it_said(make: Make) -> None:
    plan = make()
    assert teacher_outputs(plan, f"{COLBERT}+kd-t2") == teacher_outputs(plan, f"{COLBERT}+margin-mse") != []
    (said,) = teacher_outputs(plan, TCT)
    assert said.folder.startswith(f"results/teachers/{model(plan, COLBERT).name}/pydocs-stdlib.train.200-")
    assert said.inputs["model"] is model(plan, COLBERT)
    assert said.inputs["negatives"] is model(plan, TCT).inputs["negatives"]
    assert teacher_outputs(plan, f"{TCT}+tct-hn") != [said], "other negatives, so other passages"


@pytest.mark.parametrize("change", [{"teacher_temperature": 0.5}, {"learning_rate": 1e-4}, {"per_query": 2}])
def test_how_a_student_learns_renames_the_student_alone(make: Make, change: dict[str, Any]) -> None:
    before, after = make(), make(tct=change)
    assert teacher_outputs(before, TCT)[0].folder == teacher_outputs(after, TCT)[0].folder
    assert model(before, TCT).folder != model(after, TCT).folder
    assert {*before.made} - {*after.made} == {model(before, TCT).folder}


def test_how_a_teacher_learned_renames_its_students(make: Make) -> None:
    before, after = make(), make(colbert={"learning_rate": 1e-4})
    assert teacher_outputs(before, TCT)[0].folder != teacher_outputs(after, TCT)[0].folder
    assert model(before, TCT).folder != model(after, TCT).folder


def test_a_teacher_is_the_same_by_its_name_and_as_the_parent(make: Make) -> None:
    named = make(tct={"teachers": [COLBERT]})
    assert model(named, TCT).folder == model(make(), TCT).folder


def test_a_student_from_pre_training_has_its_teacher_and_other_weights(make: Make) -> None:
    plan = make(tct={"start": "pretrained"})
    student = model(plan, TCT)
    assert student.inputs["weights"] is model(plan, "bert-base-tct")
    assert teacher_outputs(plan, TCT)[0].folder == teacher_outputs(make(), TCT)[0].folder
    assert student.folder != model(make(), TCT).folder


def test_the_teacher_of_tct_hn_plus_learned_from_the_same_negatives(make: Make) -> None:
    plan = make()
    student, teacher = model(plan, f"{TCT}+tct-hn-plus"), model(plan, f"{COLBERT}+colbert-hn")
    assert student.inputs["negatives"] is teacher.inputs["negatives"]
    assert teacher.inputs["negatives"].inputs["run"].inputs["model"] is model(plan, TCT)
    assert teacher_outputs(plan, f"{TCT}+tct-hn-plus")[0].inputs["model"] is teacher
    assert teacher_outputs(plan, f"{TCT}+tct-hn")[0].inputs["model"] is model(plan, COLBERT)
    assert not teacher_outputs(plan, f"{TCT}+hn")


def test_an_ensemble_is_a_folder_for_each_teacher(make: Make) -> None:
    plan = make(tct={"teachers": ["parent", "bert-base+marco-bm25"]})
    assert [said.inputs["model"] for said in teacher_outputs(plan, TCT)] == [
        model(plan, COLBERT),
        model(plan, "bert-base+marco-bm25"),
    ]
    assert teacher_outputs(plan, TCT)[0].folder == teacher_outputs(make(), TCT)[0].folder


def test_what_a_lineage_has_learned_from_is_its_teachers_and_miners_as_well(make: Make) -> None:
    plan = make()
    behind = plan.resolve.learned_from(plan.resolve.lineage(f"{TCT}+tct-hn-plus"))
    names = [f"{TCT}+tct-hn-plus", TCT, COLBERT, f"{COLBERT}+colbert-hn"]
    assert {str(lineage) for lineage in behind} == {str(plan.resolve.lineage(name)) for name in names}
    circle = make(colbert_hn={"mined_by": f"{TCT}+tct-hn-plus"})
    assert len(circle.resolve.learned_from(circle.resolve.lineage(f"{TCT}+tct-hn-plus"))) == 3, (
        "a circle comes to an end"
    )


def test_scores_of_a_source_are_fetched_first(make: Make) -> None:
    plan = make(kd_t2={"teachers": [], "negatives": "none", "teacher_scores": "msmarco-teacher-t2"})
    (said,) = teacher_outputs(plan, f"{COLBERT}+kd-t2")
    assert said.inputs["fetched"].folder.startswith("results/sources/msmarco-teacher-t2-")
    assert said.spec["fetched"] == said.inputs["fetched"].name
    assert (said.source, "content" in said.spec) == (None, False)
    assert make().find(said.inputs["fetched"].folder).stage == "fetch_source"


def test_published_scores_stand_for_a_teacher(make: Make, tmp_path: Path) -> None:
    published = {"teachers": [], "negatives": "none"}
    plan = make(kd_t2=published | {"teacher_scores": str(tmp_path)})
    with pytest.raises(EncoreError, match=r"step 'kd-t2': .teacher_scores: .* is neither a file nor a folder of files"):
        model(plan, f"{COLBERT}+kd-t2")
    (tmp_path / "one.tsv").write_text("1\t2\tq\td\te\n")
    (said,) = teacher_outputs(plan, f"{COLBERT}+kd-t2")
    assert said.folder.startswith("results/teachers/published/pydocs-stdlib.train-")
    assert set(said.inputs) == {"tokens"}
    assert said.source == str(tmp_path)
    moved = tmp_path.with_name("moved")
    tmp_path.rename(moved)
    again = make(kd_t2=published | {"teacher_scores": str(moved)})
    assert model(again, f"{COLBERT}+kd-t2").folder == model(plan, f"{COLBERT}+kd-t2").folder
    assert again.find(said.folder).spec == said.spec
    (moved / "one.tsv").write_text("3\t2\tq\td\te\n")
    other = make(kd_t2=published | {"teacher_scores": str(moved)})
    assert teacher_outputs(other, f"{COLBERT}+kd-t2")[0].folder != said.folder

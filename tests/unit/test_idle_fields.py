"""Fields of a fine-tuning step that would do nothing, or leave nothing to learn, are refused before any job."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from encore import project
from encore.errors import EncoreError
from encore.recipe import FinetuneStep
from encore.targets import lineage_targets

STEP = {
    "kind": "finetune", "collection": "c", "epochs": 1, "batch": 8, "learning_rate": 1e-5, "length": 128,
    "negatives": "mined",
}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"scorer": "cross-encoder", "negatives": "none"}, "reads its own negatives only"),
        ({"scorer": "cross-encoder", "pool": 4}, "reads no passages of other queries"),
        ({"teacher_temperature": 0.25}, "has no teacher to divide by"),
        ({"loss": "kl-pairwise", "teachers": ("parent", "parent")}, "a teacher stands twice"),
    ],
)
def test_what_would_do_nothing_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        FinetuneStep.model_validate(STEP | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"scorer": "cross-encoder"},
        {"scorer": "late-interaction", "negatives": "none"},
        {"loss": "kl-in-batch", "teachers": ("parent", "other"), "teacher_temperature": 0.25, "pool": 4},
    ],
)
def test_what_does_something_is_not(fields: dict[str, object]) -> None:
    assert FinetuneStep.model_validate(STEP | fields)


def test_an_index_of_what_has_no_vectors_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    plan = project.load_plan()
    assert lineage_targets(plan, "bert-base+colbert") == [plan.model(plan.lineage("bert-base+colbert"), 0).manifest]
    with pytest.raises(EncoreError, match="whose texts have no single vector to search"):
        lineage_targets(plan, "bert-base+colbert@hnsw")

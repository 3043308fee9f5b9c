"""Fields of a fine-tuning step that would do nothing, or leave nothing to learn, are refused before any job."""

import pytest
from pydantic import ValidationError

from encore.config.finetuning import FinetuneStep

pytestmark = pytest.mark.usefixtures("at_the_root")

STEP = {
    "kind": "finetune", "collection": "c", "epochs": 1, "batch": 8, "learning_rate": 1e-5, "length": 128,
    "negatives": "mined",
}  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"scorer": "cross-encoder", "negatives": "none"}, "reads its own negatives only"),
        ({"scorer": "cross-encoder", "in_batch_group": 4}, "reads no passages of other queries"),
        ({"loss": "pointwise"}, "let `scorer` be cross-encoder"),
        ({"teacher_temperature": 0.25}, "has no teacher to divide by"),
        ({"loss": "kl-pairwise", "teachers": ("parent", "parent")}, "a teacher is twice"),
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
        {"loss": "kl-in-batch", "teachers": ("parent", "other"), "teacher_temperature": 0.25, "in_batch_group": 4},
    ],
)
def test_what_does_something_is_not(fields: dict[str, object]) -> None:
    assert FinetuneStep.model_validate(STEP | fields)


PAIRS = {"loss": "margin-mse", "teachers": ("parent",)}


@pytest.mark.parametrize(
    ("fields", "idle", "used"),
    [
        ({}, set(), {"first_rank", "depth", "negatives_kept", "exclude_relevant"}),
        ({"negatives": "bm25"}, set(), {"first_rank", "depth", "negatives_kept"}),
        ({"negatives": "bm25", "triples": "t"}, {"first_rank", "depth"}, {"negatives_kept"}),
        ({"negatives": "bm25", "published_negatives": True}, {"first_rank", "depth"}, {"negatives_kept"}),
        ({"negatives": "bm25+mined", "triples": "t"}, set(), {"first_rank", "depth"}),
        ({"negatives": "systems"}, {"first_rank", "depth", "negatives_kept"}, {"margin", "per_system"}),
        ({"loss": "pairwise-in-batch"}, set(), {"exclude_relevant"}),
        ({"loss": "kl-in-batch", "teachers": ("parent",)}, {"exclude_relevant"}, {"replacement"}),
        (PAIRS, {"exclude_relevant"}, {"replacement"}),
        (PAIRS | {"margin_bins": 3}, {"exclude_relevant", "replacement"}, {"per_query"}),
        # The rank to which BM25 lists the scores that a residual is of:
        ({"loss": "residual", "teachers": ("bm25",), "negatives": "bm25", "triples": "t"}, {"first_rank"}, {"depth"}),
    ],
)
def test_a_field_that_nothing_reads_is_idle(fields: dict[str, object], idle: set[str], used: set[str]) -> None:
    found = FinetuneStep.model_validate(STEP | fields).idle
    assert idle <= found
    assert not used & found

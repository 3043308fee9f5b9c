"""Fields of a fine-tuning step that would do nothing, or leave nothing to learn, are refused before any job."""

from typing import Any

import pytest
from pydantic import ValidationError

from encore.config.finetuning import FinetuneStep
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.targets import lineage_targets
from tests.support.shipped import plan_with

pytestmark = pytest.mark.usefixtures("at_the_root")

STEP = {
    "kind": "finetune", "collection": "c", "epochs": 1, "batch": 8, "learning_rate": 1e-5, "length": 128,
    "negatives": "mined",
}  # fmt: skip


@pytest.fixture(scope="module")
def default() -> Plan:
    return load_plan()


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


@pytest.mark.parametrize(
    ("override", "field"),
    [
        ("token_dimension=16", "token_dimension"),
        ("normalised=both", "normalised"),
        ("margin=5", "margin"),
        ("negatives=none~replacement=true", "replacement"),
        ("negatives=none~per_query=3", "per_query"),
        ("validation_pool=7", "validation_pool"),
        ("exclude_relevant=false~loss=pairwise", "exclude_relevant"),
        ("exclude_relevant=false~scorer=cross-encoder", "exclude_relevant"),
    ],
)
def test_a_name_overrides_no_field_that_changes_nothing(default: Plan, override: str, field: str) -> None:
    with pytest.raises(EncoreError, match=f"{field} changes nothing") as refused:
        default.resolve.lineage(f"bert-base+marco-bm25~{override}")
    assert "\n" not in str(refused.value)


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


WRONG: dict[str, tuple[str, dict[str, dict[str, Any]], str]] = {
    "a text too long": ("bert-base+marco-bm25~length=600", {}, "reads 600 tokens of a text, and 'micro-bert' has 160"),
    "a text to pre-train on": ("bert-base+mlm~length=600", {}, "'micro-bert' has 160 positions; lower `length`,"),
    "a query too long": ("bert-base+ict~query_length=161", {}, "reads 161 .* positions; lower `query_length`,"),
    "a query too long to tune on": ("bert-base+marco-bm25~query_length=161", {}, "reads 161 .*; lower `query_length`,"),
    "a pair too long": (
        "bert-base+cross-encoder",
        {"steps": {"cross-encoder": {"length": 129, "query_length": 32}}},
        "reads 161 tokens of a text, and 'micro-bert' has 160 positions; lower `length` or `query_length`,",
    ),
    "a new start of nothing": ("bert-base+bow-ft-hn", {}, "no fine-tuning comes before it"),
    "passes of a step that has a number of steps": (
        "bert-base+mlm",
        {"steps": {"mlm": {"epochs": 3, "steps": 10}}},
        "scale.steps.mlm: epochs changes nothing, since it trains for 10 steps; add `steps: null`$",
    ),
    "an index of a system": ("bm25@hnsw", {}, "'bm25' is a system, and only a lineage can be here"),
    "a system that is none": ("bm26", {}, "no system either; did you mean bm25"),
    "a pool": (
        "bert-base+marco-bm25~in_batch_group=5",
        {},
        "in_batch_group is 5, which does not divide the batch of 32 queries$",
    ),
    "a system that teaches": (
        "bert-base+colbert+tct",
        {"steps": {"tct": {"teachers": ["bm25-colbert"]}}},
        "step 'tct', teachers: 'bm25-colbert' is a system",
    ),
    "an unknown system that mines": (
        "bert-base+marco-bm25+marco-hn",
        {"steps": {"marco-hn": {"mined_by": "hybird"}}},
        "step 'marco-hn', mined_by: .*did you mean hybrid",
    ),
    "a fusion of what is not there": ("hybrid", {"systems": {"hybrid": {"sparse": "bm26"}}}, "did you mean bm25"),
    "a fusion of token vectors": (
        "hybrid",
        {"systems": {"hybrid": {"dense": "bert-base-tct+colbert"}}},
        "system 'hybrid': lineage 'bert-base-tct[+]colbert' ends with a late-interaction scorer",
    ),
    "a residual of what is trained": (
        "clear",
        {"steps": {"clear": {"teachers": ["hybrid"]}}},
        "step 'clear', teachers: a residual is of what a system without training leaves, and 'hybrid' is none",
    ),
    "a whole collection ranked by pairs": (
        "me-bert",
        {"systems": {"me-bert": {"ranker": "bert-base+cross-encoder"}}},
        "system 'me-bert': .*cross-encoder is a cross-encoder scorer.*name a `first` stage",
    ),
    "a ranker that is none": (
        "bm25-colbert",
        {"systems": {"bm25-colbert": {"ranker": "bm25"}}},
        "system 'bm25-colbert': 'bm25' is a system",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_what_cannot_be_is_one_line_before_any_job(catalogue: Catalogue, mistake: str) -> None:
    name, scale, says = WRONG[mistake]
    with pytest.raises(EncoreError, match=says) as refused:
        lineage_targets(plan_with(catalogue, "config", **scale), name)
    assert "\n" not in str(refused.value)
    assert "{" not in str(refused.value), "no dump of the whole entry"


def test_an_index_of_what_has_no_vectors_is_refused(default: Plan) -> None:
    colbert = default.model(default.resolve.lineage("bert-base+colbert"), 0)
    assert lineage_targets(default, "bert-base+colbert") == [colbert.manifest]
    with pytest.raises(EncoreError, match="whose texts have no single vector to search"):
        lineage_targets(default, "bert-base+colbert@hnsw")

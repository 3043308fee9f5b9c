"""Plans of collections made of others: draws of questions, and documents of passages."""

import pytest

from encore.errors import EncoreError
from encore.plan.artifacts.collections import named_collection
from encore.plan.artifacts.systems import shards
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.targets import lineage_targets
from tests.support.shipped import plan_with

REQA = "two-tower+reqa-80"
pytestmark = pytest.mark.usefixtures("at_the_root")


@pytest.fixture
def default(catalogue):
    return plan_with(catalogue, "config")


def test_a_collection_made_of_another_names_it(default):
    made = named_collection(default, "marco-documents-100k")
    assert made.spec["collection"] == named_collection(default, "msmarco-document").name
    assert made.stage == "collection.subset"


def test_a_step_without_negatives_has_none_and_learns_from_its_own_split(default):
    model = default.model(default.resolve.lineage(REQA), 0)
    assert "negatives" not in model.inputs
    assert (model.spec["step"]["train_split"], model.spec["step"]["valid_split"]) == ("train-80", "valid-80")


@pytest.mark.parametrize(
    ("lineage", "dataset", "split", "fair"),
    [
        (REQA, "squad-reqa", "test-80", True),
        (REQA, "squad-reqa", "test-80.sentence", True),
        (REQA, "squad-reqa", "test-1", False),
        (REQA, "squad-reqa", "test-80-s1", False),
        (REQA, "nq-reqa", "test-1", True),
        ("two-tower+reqa-80~collection=nq-reqa", "pydocs-reqa-b-open", "test-1", False),
        ("two-tower+reqa-80~collection=nq-reqa", "pydocs-reqa-b-open", "test-80", True),
        ("two-tower+ict", "squad-reqa", "test-1", True),
        ("bm25", "squad-reqa", "test-1", True),
    ],
)
def test_no_model_is_asked_what_it_may_have_learned(default, lineage, dataset, split, fair):
    seed = None if lineage == "bm25" else 0
    if fair:
        assert default.scores(lineage, seed, dataset, split).inputs["run"].spec["split"] == split.partition(".")[0]
        return
    with pytest.raises(EncoreError, match="learned from another draw"):
        default.scores(lineage, seed, dataset, split)


def test_a_lineage_is_asked_the_draw_that_it_learned_from_and_no_other(default):
    asked = {target.split("/")[3].rsplit("-", 1)[0] for target in lineage_targets(default, REQA)}
    assert {name for name in asked if "reqa" in name} == {"pydocs-reqa-a.test-80"}
    plain = {target.split("/")[3].rsplit("-", 1)[0] for target in lineage_targets(default, "two-tower+ict")}
    assert not [name for name in plain if "reqa" in name]


def test_a_model_of_passages_reads_as_much_of_documents_as_they_say(catalogue):
    plan = Plan(load_plan().config, catalogue)
    passages, documents = (
        plan.resolve.lineage("bert-base+marco-bm25"),
        plan.resolve.lineage("bert-base+marco-bm25+marco-doc-1"),
    )
    assert [plan.resolve.passage_length(passages, name) for name in ("msmarco-passage", "msmarco-document")] == [
        64,
        160,
    ]
    assert plan.resolve.passage_length(documents, "msmarco-document") == 160
    (shard,) = shards(plan, passages, 0, "msmarco-document")
    assert shard.spec["length"] == 160
    assert "length" not in plan.collection("msmarco-document").spec

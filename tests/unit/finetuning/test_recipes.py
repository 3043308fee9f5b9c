"""The papers' fine-tuning recipes by name: what each goes on from, what it learns from, and which labels it may see."""

import json
from copy import deepcopy

import pytest

from encore.config.finetuning import FinetuneStep
from encore.data.collection import Collection, Judgment, topics, write_collection
from encore.errors import EncoreError
from encore.plan.catalogue import read_step
from tests.support.shipped import plan_with, run_file

DEFAULT = run_file("config")
PASSAGES = "bert-base+costa+marco-bm25+marco-hn"


pytestmark = pytest.mark.usefixtures("at_the_root")


@pytest.fixture
def make(catalogue):
    """A plan of the embedded default with other steps or datasets."""
    return lambda steps=None, **changes: plan_with(catalogue, "config", changes, steps=steps or {})


def model(plan, lineage, seed=0):
    return plan.model(plan.resolve.lineage(lineage), seed)


def miner(artifact):
    """The model whose run the negatives of a model come from."""
    negatives = artifact.inputs["negatives"]
    return negatives.inputs.get("mined", negatives).inputs["run"].inputs["model"]


def test_documents_go_on_from_the_passages_and_mine_with_the_current_model(make):
    plan = make()
    first, second = (model(plan, PASSAGES + rest) for rest in ("+marco-doc-1", "+marco-doc-1+marco-doc-2"))
    assert first.inputs["weights"] is miner(first) is model(plan, PASSAGES)
    assert second.inputs["weights"] is miner(second) is first
    assert first.inputs["negatives"].inputs["collection"] is plan.collection("msmarco-document")
    assert plan.collection("msmarco-document") is not plan.collection("msmarco-passage")
    assert not first.inputs["negatives"].owner.startswith("bm25")


@pytest.mark.parametrize(
    ("chain", "restarts"),
    [("bert-base+bow+bow-ft-bm25+bow-ft-hn", True), ("bert-base+cpdae+cpdae-ft-bm25+cpdae-ft-hn", False)],
)
def test_a_second_stage_starts_where_its_paper_says(make, chain, restarts):
    plan = make()
    pretrained, warmed, last = (model(plan, chain.rsplit("+", parts)[0] if parts else chain) for parts in (2, 1, 0))
    assert last.inputs["weights"] is (pretrained if restarts else warmed)
    assert miner(last) is warmed


def test_the_window_of_bow_is_the_slice_of_its_released_code(make, catalogue):
    released = list(range(1, 1001))[2:200]  # `--depth 2 200`: the ranks that are left
    spec = model(make(), "bert-base+bow+bow-ft-bm25+bow-ft-hn").inputs["negatives"].spec
    assert spec["first_rank"] == released[0]
    assert catalogue.steps["bow-ft-hn"]["depth"] == released[-1]


def test_question_answering_takes_both_kinds_of_negatives_and_every_answer(make, tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "d", "title": "", "text": "t"}) + "\n")
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "t"}) + "\n")
    (tmp_path / "answers.jsonl").write_text(json.dumps({"_id": "q", "answers": ["t"]}) + "\n")
    (tmp_path / "qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    questions = {"kind": "beir", "path": str(tmp_path), "splits": {"train": {"role": "train"}}}
    own = {"nq-open": "nq-here", "trivia-qa": "trivia-here"}
    scale = DEFAULT["scale"] | {"datasets": DEFAULT["scale"]["datasets"] | own, "absent": {}}
    here = {"datasets": dict.fromkeys(own.values(), questions), "scale": deepcopy(scale)}
    with pytest.raises(EncoreError, match="dataset 'nq-here' lists no negatives"):
        model(make(**here), "bert-base+bow+bow-qa-1")
    plan = make({key: {"published_negatives": False} for key in ("bow-qa-1", "bow-qa-2")}, **here)
    first, second = (model(plan, "bert-base+bow" + rest) for rest in ("+bow-qa-1", "+bow-qa-1+bow-qa-2"))
    assert first.inputs["negatives"].spec["answers"] == "left out"
    both = second.inputs["negatives"]
    assert both.stage == "merged_negatives"
    assert both.inputs["bm25"] is first.inputs["negatives"]
    assert both.inputs["mined"].spec["answers"] == "positives"
    assert second.inputs["weights"] is model(plan, "bert-base+bow")
    assert model(plan, "bert-base+bow+bow-qa-1~collection=trivia-qa").folder != first.folder


def test_question_answering_learns_from_the_negatives_that_dpr_publishes(make):
    scale = deepcopy(DEFAULT["scale"]) | {"absent": {}}
    scale["finetune"]["queries"] = None
    plan = make(scale=scale)
    first, second = (model(plan, "bert-base+bow" + rest) for rest in ("+bow-qa-1", "+bow-qa-1+bow-qa-2"))
    listed, both = first.inputs["negatives"], second.inputs["negatives"]
    assert (listed.stage, listed.owner[:10], set(listed.inputs)) == (
        "negatives_from_dataset",
        "published-",
        {"collection"},
    )
    assert listed.inputs["collection"] is plan.collection("nq-open")
    assert both.inputs["bm25"] is listed
    assert (both.inputs["mined"].spec["answers"], both.inputs["mined"].spec["depth"]) == ("positives", 100)
    assert plan.find(listed.folder) is listed


def test_published_negatives_replace_bm25s_alone(make):
    for other in ({"triples": "msmarco-triples-small"}, {"negatives": "none"}, {"negatives": "mined"}):
        with pytest.raises(EncoreError, match="published negatives replace BM25's"):
            make({"bow-qa-1": other})


def test_the_beir_recipe_needs_its_file(make, tmp_path):
    published = {"negatives": "systems"}
    with pytest.raises(EncoreError, match="systems_file"):
        model(make({"bow-beir": published | {"systems_file": None}}), "bert-base+bow+bow-beir")
    path = tmp_path / "hard-negatives.jsonl"
    path.write_text(json.dumps({"qid": "q", "pos": [], "neg": {}}) + "\n")
    made = model(make({"bow-beir": published | {"systems_file": str(path)}}), "bert-base+bow+bow-beir").inputs[
        "negatives"
    ]
    assert (made.spec["form"], made.spec["margin"], made.spec["per_system"]) == ("systems", 3.0, 5)


def test_the_pairwise_reading_shares_its_negatives_with_the_list_wise_one(make):
    plan = make()
    pairs, lists = (model(plan, f"bert-base+cpdae+{name}") for name in ("cpdae-ft-bm25", "marco-bm25"))
    assert pairs.inputs["negatives"] is lists.inputs["negatives"]
    assert pairs.folder != lists.folder


# Few labels

FEW = [f"costa-low-{size}" for size in (500, 1000, 2000, 5000)]
FEW += [f"cpdae-low-{kind}{size}" for kind in ("", "doc-") for size in (100, 1000, 10000)]


@pytest.mark.parametrize("name", FEW)
def test_few_labels_are_a_recorded_sample_straight_after_pretraining(make, catalogue, name):
    step = read_step(catalogue.steps[name])
    assert isinstance(step, FinetuneStep)
    assert step.queries == int(name.rsplit("-", 1)[-1])
    assert (step.negatives, step.sample, step.validate_every) == ("bm25", 0, None), "the last checkpoint"
    plan = make()
    samples = [model(plan, f"bert-base+costa+{name}{rest}") for rest in ("", "~sample=1", "~sample=2")]
    assert len({made.folder for made in samples}) == 3
    assert {made.inputs["weights"].folder for made in samples} == {model(plan, "bert-base+costa").folder}
    runs = [made.inputs["negatives"].inputs["run"].spec for made in samples]
    assert [(run["split"], run["sample"]) for run in runs] == [("train", 0), ("train", 1), ("train", 2)]
    assert {run["queries"] for run in runs} == {
        plan.resolve.step(plan.resolve.lineage(f"bert-base+{name}").steps[0]).queries
    }


def test_a_larger_sample_contains_a_smaller_one_and_samples_differ(tmp_path):
    names = [f"q{i}" for i in range(300)]
    write_collection(
        tmp_path,
        [{"_id": "d", "title": "", "text": "t"}],
        [{"_id": name, "text": "t"} for name in names],
        {"train": [Judgment(name, "d", 1) for name in names]},
    )
    drawn = {
        (size, sample): set(topics(Collection(tmp_path), "train", size, sample))
        for size in (20, 60)
        for sample in (0, 1, 2)
    }
    for sample in (0, 1, 2):
        assert drawn[20, sample] < drawn[60, sample]
    assert len({frozenset(drawn[60, sample]) for sample in (0, 1, 2)}) == 3

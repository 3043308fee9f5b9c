"""Which negatives a fine-tuning is planned with, and where they come from."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from encore.errors import EncoreError
from encore.plan.artifact import Topics, names
from encore.products.catalogue import load_plan
from tests.support.own_folder import folder, judged, new

ICT = "bert-base+ict+marco-bm25+marco-hn"
pytestmark = pytest.mark.usefixtures("at_the_root")


def test_mined_negatives_come_from_the_parents_own_run(make):
    plan = make()
    model = plan.model(plan.resolve.lineage(ICT), 0)
    assert model.inputs["negatives"].inputs["run"].inputs["model"] is model.inputs["weights"]


def test_negatives_can_be_mined_by_another_lineage(make):
    miner = "bert-base+mlm+marco-bm25"
    plan = make(steps={"marco-hn": {"mined_by": miner}})
    model, asked = plan.model(plan.resolve.lineage(ICT), 3), plan.model(plan.resolve.lineage(miner), 3)
    assert model.inputs["negatives"].inputs["run"].inputs["model"] is asked
    assert "mined_by" not in model.spec["step"], "the negatives' folder says it"
    own = make(steps={"marco-hn": {"mined_by": "bert-base+ict+marco-bm25"}})
    assert (
        own.model(own.resolve.lineage(ICT), 0).folder == (plain := make()).model(plain.resolve.lineage(ICT), 0).folder
    )


def test_denoised_negatives_are_those_that_a_cross_encoder_has_ranked_again(make):
    plan = make()
    model = plan.model(plan.resolve.lineage("bert-base-dpr+rocketqa-0+rocketqa-1"), 0)
    negatives = model.inputs["negatives"]
    run, retriever = negatives.inputs["run"], plan.model(plan.resolve.lineage("bert-base-dpr+rocketqa-0"), 0)
    assert (negatives.spec["negatives_below"], run.stage) == (0.1, "rerank")
    assert run.inputs["first"].inputs["model"] is retriever
    ranker = run.inputs["model"]
    assert ranker.inputs["negatives"].inputs["run"].inputs["model"] is retriever
    assert ranker.inputs["weights"] is plan.model(plan.resolve.lineage("bert-base"), 0)
    assert model.inputs["weights"] is plan.model(plan.resolve.lineage("bert-base-dpr"), 0)
    assert {"negatives_below", "mined_by", "kept"}.isdisjoint(retriever.spec["step"])


def test_the_first_ranks_are_those_before_the_ranking_again(make):
    """As RocketQA's code takes them; a sample needs no order, and its folder does not name one."""
    denoised = "bert-base-dpr+rocketqa-0+rocketqa-1"
    first = negatives_of(make(), denoised)
    assert first.inputs["first"] is first.inputs["run"].inputs["first"]
    assert first.spec["kept"] == "first"
    drawn = negatives_of(make(steps={"rocketqa-1": {"kept": "random"}}), denoised)
    assert ("first" in drawn.inputs, "kept" in drawn.spec) == (False, False)
    own = negatives_of(make(steps={"marco-hn": {"kept": "first"}}), ICT)
    assert set(own.inputs) == {"run", "collection"}


def test_a_step_without_negatives_reads_none(make):
    plan = make(steps={"marco-bm25": {"negatives": "none"}})
    model = plan.model(plan.resolve.lineage("bert-base+marco-bm25"), 0)
    assert set(model.inputs) == {"tokens", "weights", "collection"}
    assert "negatives" not in {artifact.stage for artifact in model.ancestors()}


def test_mined_negatives_are_made_of_what_their_spec_names(make):
    """BM25 with another k1 leaves them, and what learns from them, as they are."""
    mined = negatives_of(make(), ICT)
    assert names(mined.inputs).items() <= mined.spec.items()


@pytest.fixture
def triples(tmp_path):
    path = tmp_path / "triples.tsv"
    path.write_text("q\tp\tn\n")
    return path


def negatives_of(plan, lineage="bert-base+marco-bm25", seed=0):
    return plan.model(plan.resolve.lineage(lineage), seed).inputs["negatives"]


def test_a_file_is_read_once_for_every_sample_of_queries(make, triples):
    plan = make(steps={name: {"triples": str(triples)} for name in ("marco-bm25", "costa-low-500")})
    whole, few = (negatives_of(plan, f"bert-base+{name}") for name in ("marco-bm25", "costa-low-500"))
    assert few is whole is negatives_of(plan, "bert-base+costa-low-500~sample=2")
    assert (whole.spec["queries"], whole.spec["sample"]) == (None, 0)
    assert negatives_of(plan, seed=1) is not whole, "each seed draws negatives of its own"


def test_the_sample_of_training_queries_follows_the_seed(make):
    plan = make()
    lineage = plan.resolve.lineage("bert-base+mlm+marco-bm25+marco-hn")
    runs = [plan.model(lineage, seed).inputs["negatives"].inputs["run"] for seed in (0, 1, 2)]
    assert [run.spec["sample"] for run in runs] == [0, 1000, 2000]
    others = [negatives_of(plan, seed=seed).inputs["run"] for seed in (0, 1, 2)]
    assert [run.spec["sample"] for run in others] == [0, 1000, 2000]
    every = make(steps={"marco-bm25": {"queries": None}})
    of_all = {
        every.model(every.resolve.lineage("bert-base+marco-bm25"), seed).inputs["negatives"].inputs["run"].folder
        for seed in (0, 1)
    }
    assert len(of_all) == 1, "without a sample all seeds share BM25's run"
    student = plan.resolve.lineage("bert-base-tct+colbert+tct")
    assert plan.model(student, 2).inputs["teacher0"].spec["sample"] == 2000


def test_triples_stand_for_bm25s_negatives_by_their_content(make, triples):
    steps = {"marco-bm25": {"triples": str(triples)}}
    plan = make(steps=steps)
    made = negatives_of(plan)
    assert (made.stage, made.source, set(made.inputs)) == ("negatives_from_file", str(triples), {"collection"})
    assert str(triples) not in json.dumps(made.spec), "a file may lie anywhere"
    moved = triples.rename(triples.with_name("elsewhere.tsv"))
    renamed = make(steps={"marco-bm25": {"triples": str(moved)}})
    assert negatives_of(renamed).folder == made.folder
    lineage = "bert-base+marco-bm25"
    assert renamed.model(plan.resolve.lineage(lineage), 0).folder == plan.model(plan.resolve.lineage(lineage), 0).folder
    moved.write_text("q\tp\tother\n")
    assert negatives_of(make(steps={"marco-bm25": {"triples": str(moved)}})).folder != made.folder
    with pytest.raises(EncoreError, match="is missing"):
        negatives_of(make(steps=steps))


def test_negatives_of_several_systems_are_those_of_a_file(make, triples):
    made = negatives_of(make(steps={"marco-bm25": {"negatives": "systems", "systems_file": str(triples)}}))
    assert (made.spec["form"], made.spec["margin"], made.spec["per_system"]) == ("systems", 3.0, 5)
    assert "keep" not in made.spec


def test_bm25_and_mined_negatives_are_merged(make):
    plan = make(steps={"marco-hn": {"negatives": "bm25+mined"}})
    both = negatives_of(plan, ICT)
    assert both.stage == "merged_negatives"
    assert both.inputs["bm25"] is negatives_of(plan, "bert-base+ict+marco-bm25")
    assert both.inputs["mined"].inputs["run"].inputs["model"] is plan.model(
        plan.resolve.lineage("bert-base+ict+marco-bm25"), 0
    )


def test_further_positives_are_those_that_the_model_retrieved(make):
    plan = make(steps={"marco-hn": {"negatives": "bm25+mined", "positives": "answers"}})
    both = negatives_of(plan, ICT)
    assert {role: made.spec["answers"] for role, made in both.inputs.items()} == {
        "bm25": "left out",
        "mined": "positives",
    }
    left_out = negatives_of(make(steps={"marco-bm25": {"exclude_answers": True}}))
    assert left_out.folder == both.inputs["bm25"].folder


def test_positives_that_nothing_retrieves_are_refused(make, triples):
    """A list that replaces BM25's run has no retrieved positives; mined negatives keep theirs."""
    answers = {"positives": "answers", "triples": str(triples)}
    with pytest.raises(EncoreError, match=r"from a list instead \(.*triples\.tsv\); give the step `positives: judged`"):
        negatives_of(make(steps={"marco-bm25": answers}))
    with pytest.raises(EncoreError, match=r"from a list instead \(the dataset\)"):
        negatives_of(make(steps={"bow-qa-1": {"positives": "answers"}}), "bert-base+bow-qa-1")
    both = negatives_of(make(steps={"marco-hn": {"negatives": "bm25+mined", **answers}}), ICT)
    assert both.inputs["bm25"].stage == "negatives_from_file"
    assert both.inputs["mined"].spec["answers"] == "positives"


@pytest.mark.parametrize("negatives", ["bm25", "bm25+mined", "systems"])
def test_answers_are_not_left_out_of_lists_in_silence(make, triples, negatives):
    """Nothing looks through a file of the user's; without the field it is taken, and runs are looked through."""
    named = {"systems_file" if negatives == "systems" else "triples": str(triples)}
    step = {"negatives": negatives, "published_negatives": False, **named}
    with pytest.raises(EncoreError, match=r"^`exclude_answers` looks .* listed \(.*triples\.tsv\); take .*: false`$"):
        negatives_of(make(steps={"marco-hn": {**step, "exclude_answers": True}}), ICT)
    assert negatives_of(make(steps={"marco-hn": step}), ICT).stage != "negatives"
    mined = negatives_of(make(steps={"marco-hn": {"exclude_answers": True}}), ICT)
    assert mined.spec["answers"] == "left out"
    published = negatives_of(make(), "bert-base+bow-qa-1")
    assert published.stage == "negatives_from_dataset", "DPR's have none"


@pytest.mark.slow
def test_answers_are_not_left_out_of_what_a_dataset_lists_in_silence(bare):
    folder({"train": [*judged(0, 300), "q0\td1\t0"], "test": judged(300, 400)})
    new("own", "--beir", "data/own")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    lineage = "bert-base+marco-bm25~exclude_answers=true"
    assert negatives_of(load_plan(Path("config/own.yaml"), run), lineage).spec["answers"] == "left out"
    run["datasets"]["own"]["listed_negatives"] = True
    with pytest.raises(EncoreError, match=r"negatives are listed \(the dataset\); take"):
        negatives_of(load_plan(Path("config/own.yaml"), run), lineage)


@pytest.mark.slow
def test_what_is_no_negative_is_told_to_all_that_learn_from_negatives(bare, triples):
    """Where the dataset says so: to BM25's, mined, published and listed ones, to steps and to teachers."""
    folder({"train": [*judged(0, 300), "q0\td1\t0"], "test": judged(300, 400)})
    new("own", "--beir", "data/own")
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    flags = {"ignore_identical_ids": True, "ignore_copies": True}
    stages = set()
    for listed, fields in ((True, {}), (False, {"triples": str(triples)})):
        run["datasets"]["own"] |= {**flags, "listed_negatives": listed}
        run["scale"]["steps"] = {"marco-bm25": fields}
        plan = load_plan(Path("config/own.yaml"), run)
        for lineage in ("bert-base+marco-bm25+marco-hn", "bert-base-tct+colbert+tct"):
            plan.model(plan.resolve.lineage(lineage), 0)
        learned = [each for each in plan.made.values() if each.stage.startswith(("negatives", "finetune", "teacher_"))]
        assert all(each.spec.items() >= flags.items() for each in learned)
        stages |= {each.stage for each in learned}
    assert stages >= {"finetune", "negatives", "negatives_from_dataset", "negatives_from_file", "teacher_scores"}


def test_a_window_of_ranks_is_in_the_negatives_name(make):
    plain, window = make(), make(steps={"marco-hn": {"first_rank": 2}})
    specs = [plan.model(plan.resolve.lineage(ICT), 0).inputs["negatives"].spec for plan in (plain, window)]
    assert "first_rank" not in specs[0]
    assert specs[1] == specs[0] | {"first_rank": 2}


def test_a_pretrained_start_takes_weights_behind_the_fine_tuning(make):
    plan = make(steps={"marco-hn": {"start": "pretrained"}})
    model = plan.model(plan.resolve.lineage(ICT), 0)
    assert model.inputs["weights"] is plan.model(plan.resolve.lineage("bert-base+ict"), 0)
    assert model.inputs["negatives"].inputs["run"].inputs["model"] is plan.model(
        plan.resolve.lineage("bert-base+ict+marco-bm25"), 0
    )


WARM = "bert-base+ance-bm25"


def test_a_round_of_mining_is_a_step_that_its_own_parent_mines_for(make):
    """ANCE: the same step again and again, each from the model and the run of the one before."""
    plan = make()
    rounds = [plan.model(plan.resolve.lineage(WARM + "+ance" * count), 0) for count in range(4)]
    for before, after in pairwise(rounds):
        assert after.inputs["weights"] is after.inputs["negatives"].inputs["run"].inputs["model"] is before
    assert len({made.folder for made in rounds}) == 4


def test_queries_alone_are_trained_against_the_parents_vectors_and_searched_in_them(make):
    """ADORE: one index for the training and for what it makes; how many shards it has renames nothing."""
    star, adore = WARM + "+star", WARM + "+star+adore"
    plan, sharded = make(), make({"execution": {"shards": 3}})
    model, cut = (each.model(each.resolve.lineage(adore), 0) for each in (plan, sharded))
    assert "negatives" not in model.inputs
    assert model.folder == cut.folder
    assert [role for role in cut.inputs if role.startswith("shard")] == ["shard0", "shard1", "shard2"]
    topics = Topics("test", 100)
    runs = [plan.run(lineage, 0, "msmarco-passage", topics) for lineage in (star, adore)]
    assert model.inputs["shard0"] is runs[0].inputs["shard0"] is runs[1].inputs["shard0"]
    assert runs[0].inputs["model"] is model.inputs["weights"]
    assert runs[1].inputs["model"] is model

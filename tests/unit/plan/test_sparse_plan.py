"""What BM25 and fusions are made of: planned from the shipped configuration."""

import re

import pytest

from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan import folders
from encore.plan.artifacts.collections import tokenizer
from encore.plan.plan import Plan
from encore.products.targets import lineage_targets
from tests.support.shipped import run_file

NANO = run_file("nano")


pytestmark = pytest.mark.usefixtures("at_the_root")


@pytest.fixture
def make(catalogue):
    """A plan of nano, with fields of systems changed, or with other expansions."""

    def plan(expansions=None, **systems):
        scale = NANO["scale"] | {"systems": {**NANO["scale"]["systems"], **systems}}
        scale["doc2query"] = expansions or scale["doc2query"]
        return Plan(RunConfig.model_validate(NANO | {"scale": scale}), catalogue)

    return plan


def run_of(plan, system, seed=0, split="test"):
    return plan.scores(system, seed, "msmarco-passage", split).inputs["run"]


def test_one_index_serves_every_pair_of_parameters(make):
    plan = make()
    runs = [run_of(plan, name) for name in ("bm25", "bm25-tuned", "bm25-documents")]
    assert len({run.folder for run in runs}) == 3
    assert len({run.inputs["index"].folder for run in runs}) == 1


def test_a_fusion_is_made_of_both_runs_and_a_weight(make):
    run = run_of(make(), "hybrid")
    assert re.fullmatch(r"results/runs/hybrid-s0-[0-9a-f]{8}/pydocs-stdlib\.test-[0-9a-f]{8}", run.folder)
    assert set(run.inputs) == {"sparse", "dense", "weight"}
    assert [run.inputs[role].stage for role in ("sparse", "dense")] == ["lucene_search", "search"]


def test_a_weight_is_chosen_on_queries_that_no_table_reports(make):
    plan = make()
    weight = run_of(plan, "hybrid").inputs["weight"]
    runs = {role: made for role, made in weight.inputs.items() if role != "collection"}
    assert set(runs) == {"sparse_train", "dense_train", "sparse_held_out", "dense_held_out"}
    roles = {plan.resolve.dataset("msmarco-passage").fields.splits[run.spec["split"]].role for run in runs.values()}
    assert roles == {"train", "valid"}
    assert weight.spec["splits"] == {"train": "train", "held-out": "valid"}


@pytest.mark.parametrize(
    "change",
    [{"weights": {"from": 0.1, "to": 0.2, "step": 0.1}}, {"queries": 7}, {"tuned_on": "held-out"}, {"depth": 50}],
)
def test_how_a_weight_is_chosen_is_part_of_the_name(make, change):
    before = run_of(make(), "hybrid")
    after = run_of(make(hybrid=change), "hybrid")
    assert before.owner != after.owner
    assert before.folder != after.folder


def test_seeds_have_fusions_of_their_own_and_share_bm25(make):
    plan = make()
    zero, one = run_of(plan, "hybrid", 0), run_of(plan, "hybrid", 1)
    assert zero.owner != one.owner
    assert zero.inputs["sparse"] is one.inputs["sparse"]
    assert plan.resolve.has_chance("hybrid")
    assert not plan.resolve.has_chance("bm25")


def test_a_fusion_can_be_found_by_its_folder(make):
    folder = run_of(make(), "hybrid").folder
    assert make().find(folder).folder == folder


def test_every_folder_of_a_run_belongs_to_one_rule(make):
    plan = make()
    owners = {run_of(plan, name).owner: name for name in ("bm25", "bm25-tuned", "hybrid", "bert-base+marco-bm25")}
    for owner, name in owners.items():
        kinds = [
            kind
            for kind, pattern in {
                "lineage": folders.lineages(plan.resolve),
                "bm25": folders.systems(plan.resolve, "bm25"),
                "fusion": folders.systems(plan.resolve, "fusion"),
            }.items()
            if re.fullmatch(pattern, owner)
        ]
        assert len(kinds) == 1, (name, kinds)


def ancestors(artifact):
    return {each.folder for each in artifact.ancestors()}


def test_an_expanded_index_is_one_of_its_own(make):
    plan = make()
    plain, expanded = (run_of(plan, name).inputs["index"] for name in ("bm25", "bm25-doct5"))
    assert set(plain.inputs) == {"collection"}
    assert "predicted_queries" not in plain.spec
    assert set(expanded.inputs) == {"collection", "predicted_queries"}
    assert expanded.folder.startswith("results/indexes/lucene/pydocs-stdlib+tiny-t5-")


def test_an_expander_learns_from_training_queries_with_the_vocabulary_of_the_collection(make):
    plan = make()
    expander = run_of(plan, "bm25-doct5").inputs["index"].inputs["predicted_queries"].inputs["doc2query_model"]
    assert set(expander.inputs) == {"collection", "tokenizer"}
    assert expander.inputs["tokenizer"] is tokenizer(plan, plan.catalogue.backbones["tiny"])
    assert expander.spec["expansion"]["train_split"] == "train"
    assert not [role for role in expander.spec["expansion"] if role in ("per_passage", "top_k", "kind", "seed")]


@pytest.mark.parametrize("split", ["test", "valid", "graded", "nowhere"])
def test_an_expander_that_would_learn_from_other_queries_is_refused(make, monkeypatch, split):
    plan = make()
    changed = plan.catalogue.doc2query["tiny-t5"].model_copy(update={"train_split": split})
    monkeypatch.setitem(plan.catalogue.doc2query, "tiny-t5", changed)
    with pytest.raises(EncoreError, match=f"{split!r} is not a split of role train of 'pydocs-stdlib'; it has train"):
        run_of(plan, "bm25-doct5")


def test_how_queries_are_sampled_trains_nothing_again(make, monkeypatch):
    before = run_of(make(), "bm25-doct5")
    plan = make()
    changed = plan.catalogue.doc2query["tiny-t5"].model_copy(update={"per_passage": 3})
    monkeypatch.setitem(plan.catalogue.doc2query, "tiny-t5", changed)
    after = run_of(plan, "bm25-doct5")
    assert before.owner != after.owner
    assert {folder for folder in ancestors(before) - ancestors(after) if "/doc2query_models/" in folder} == set()
    assert len([folder for folder in ancestors(before) - ancestors(after) if "/predicted_queries/" in folder]) == 1


def test_seeds_of_a_run_do_not_touch_expansions(make):
    plan = make()
    assert not plan.resolve.has_chance("bm25-doct5")
    assert run_of(plan, "bm25-doct5", None) is run_of(plan, "bm25-doct5", 1)
    zero, one = run_of(plan, "hybrid-doct5", 0), run_of(plan, "hybrid-doct5", 1)
    assert zero.inputs["sparse"] is one.inputs["sparse"]


def test_published_expansions_are_fetched_or_known_by_their_content(make, monkeypatch, tmp_path):
    expansions = run_of(make({"doct5": "doct5"}), "bm25-doct5").inputs["index"].inputs["predicted_queries"]
    assert (expansions.inputs["fetched"].stage, expansions.source) == ("fetch_source", None)
    owners = []
    for name, text in [("one.txt", "a\n"), ("two.txt", "a\n"), ("two.txt", "b\n")]:
        (tmp_path / name).write_text(text)
        fresh = make({"doct5": "doct5"})
        fields = fresh.catalogue.doc2query["doct5"].model_copy(update={"path": str(tmp_path / name), "samples": None})
        monkeypatch.setitem(fresh.catalogue.doc2query, "doct5", fields)
        run = run_of(fresh, "bm25-doct5")
        assert run.inputs["index"].inputs["predicted_queries"].source == str(tmp_path / name)
        owners.append(run.owner)
    assert owners[0] == owners[1] != owners[2]


def test_unknown_expansions_are_refused(make):
    with pytest.raises(EncoreError, match=r"scale\.doc2query: unknown name 'doc5'; did you mean doct5"):
        make({"doc5": "tiny-t5"})


def test_the_scores_of_a_system_are_found_by_its_name(make):
    plan = make()
    for name in ("bm25-doct5", "hybrid"):
        targets = lineage_targets(plan, name)
        assert plan.scores(name, 0, "msmarco-passage", "test").manifest in targets
        assert all(f"results/scores/{name}" in target for target in targets)

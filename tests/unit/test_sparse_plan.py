"""What BM25 and fusions are made of: planned from the shipped configuration."""

import re
from pathlib import Path

import pytest
import yaml

from encore import project
from encore.config import RunConfig
from encore.errors import EncoreError
from encore.plan import Plan

ROOT = Path(__file__).parents[2]
NANO = yaml.safe_load((ROOT / "config/nano.yaml").read_text())


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def catalogue():
    return project.load_catalogue(ROOT / "config")


@pytest.fixture
def make(catalogue):
    """A plan of nano, with fields of systems changed."""

    def plan(**systems):
        scale = NANO["scale"] | {"systems": {**NANO["scale"]["systems"], **systems}}
        return Plan(RunConfig.model_validate(NANO | {"scale": scale}), catalogue, project.impl)

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
    roles = {plan.dataset("msmarco-passage").splits[run.spec["split"]].role for run in runs.values()}
    assert roles == {"train", "valid"}
    assert weight.spec["splits"] == {"train": "train", "held-out": "valid"}


@pytest.mark.parametrize(
    "change",
    [{"weights": {"from": 0.1, "to": 0.2, "step": 0.1}}, {"queries": 7}, {"tuned_on": "held-out"}, {"depth": 50}],
)
def test_how_a_weight_is_chosen_is_part_of_the_name(make, change):
    before = run_of(make(), "hybrid")
    after = run_of(make(hybrid=NANO["scale"]["systems"]["hybrid"] | change), "hybrid")
    assert before.owner != after.owner
    assert before.folder != after.folder


def test_seeds_have_fusions_of_their_own_and_share_bm25(make):
    plan = make()
    zero, one = run_of(plan, "hybrid", 0), run_of(plan, "hybrid", 1)
    assert zero.owner != one.owner
    assert zero.inputs["sparse"] is one.inputs["sparse"]
    assert plan.has_chance("hybrid")
    assert not plan.has_chance("bm25")


def test_a_fusion_can_be_found_by_its_folder(make):
    folder = run_of(make(), "hybrid").folder
    assert make().find(folder).folder == folder


def test_every_folder_of_a_run_belongs_to_one_rule(make):
    plan = make()
    folders = {run_of(plan, name).owner: name for name in ("bm25", "bm25-tuned", "hybrid", "bert-base+marco-bm25")}
    for owner, name in folders.items():
        kinds = [
            kind
            for kind, pattern in {
                "lineage": plan.lineages(),
                "bm25": plan.systems("bm25"),
                "fusion": plan.systems("fusion"),
            }.items()
            if re.fullmatch(pattern, owner)
        ]
        assert len(kinds) == 1, (name, kinds)


def test_a_measure_that_the_dataset_lacks_is_refused(make):
    with pytest.raises(EncoreError, match="best at 'RR@11', which dataset 'pydocs-stdlib' lacks; did you mean RR@10"):
        run_of(make(hybrid={"measure": "RR@11"}), "hybrid")


def test_a_scaled_system_must_be_right(make):
    with pytest.raises(EncoreError, match=r"scale\.systems: unknown name 'hybird'; did you mean hybrid"):
        make(hybird={"depth": 1})
    with pytest.raises(EncoreError, match=r"scale\.systems: hybrid.*dpeth"):
        make(hybrid={"dpeth": 1})

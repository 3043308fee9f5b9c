"""Reranking: what a scorer orders stands above what it does not, and the program's run is what the scores say."""

import json

import numpy as np
import pytest
import yaml

from encore.config.run import RunConfig
from encore.data.collection import QuerySample
from encore.data.rankings import Ranking, rank
from encore.data.runs import describe, read_header, read_run, write_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.scoring import open_scorer
from encore.finetuning.step import FinetuneInputs
from encore.models.encoder import Encoder
from encore.plan import folders
from encore.plan.artifact import Topics
from encore.plan.plan import Plan
from encore.products.catalogue import Path, load_catalogue
from encore.retrieval.rerank import Reranking, above, rerank
from encore.storage.manifest import record
from tests.support import inside
from tests.support.little_memory import in_little_memory
from tests.support.small_home import NUMERICS, STEP, finetuned

ROOT = Path(__file__).parents[3]
SPEC = {
    "split": "test", "queries": None, "sample": 0, "depth": 15, "reranked": 8, "numerics": NUMERICS,
    "system": "ours", "collection": "c",
}  # fmt: skip


def ranking(**scores: float) -> Ranking:
    return rank(list(scores), list(scores.values()))


def test_the_rest_stays_below_in_its_order_and_with_its_ties():
    first = ranking(a=9, b=8, c=7, d=7, e=2, f=1)
    best = rank(["a", "b"], [-3.25, 5.0])
    found = above(best, first, 10)
    assert found.documents == ["b", "a", "d", "c", "e", "f"]
    assert found.scores.tolist() == [5.0, -3.25, -5.0, -5.0, -6.0, -7.0]
    assert above(best, first, 3).documents == ["b", "a", "d"]
    assert above(rank(list("fedcba"), range(6)), first, 10).documents == list("abcdef"), "nothing is left below"


@pytest.mark.parametrize("lowest", [-1e3, -0.5, 0.0, 17.3])
def test_every_score_below_is_lower_and_reads_back(lowest):
    first = rank([f"d{i:04}" for i in range(1000)], np.linspace(20, 1, 1000))
    best = rank(first.documents[:10], np.linspace(lowest + 3, lowest, 10))
    found = above(best, first, 1000)
    assert (np.diff(found.scores) < 0).all()
    assert found.documents[10:] == first.documents[10:]


def test_scores_that_leave_no_room_are_refused():
    with pytest.raises(EncoreError, match="training diverged"):
        above(rank(["a"], [-1e9]), ranking(a=2, b=1), 10)


class Fixed:
    """Scores by (query, passage) rows, and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def score(self, queries, passages, report, state=None, spec=None):
        self.asked = list(zip(queries.tolist(), passages.tolist(), strict=True))
        report(len(queries))
        return (queries * 100 - passages).astype(np.float32)


def test_each_query_gets_its_own_scores(home):
    store, scorer = TokenStore(home / "tokens"), Fixed()
    run = {"q7": ranking(d3=5, d9=4, d1=3), "q2": ranking(d9=1), "q5": ranking()}
    found, pairs = rerank(run, scorer, store, Reranking(QuerySample("test"), 15, NUMERICS, "ours", "c", reranked=2))
    assert pairs == 3
    assert scorer.asked == [(7, 3), (7, 9), (2, 9)]
    assert found["q7"].documents == ["d3", "d9", "d1"]
    assert found["q7"].scores.tolist() == [697.0, 691.0, 690.0]
    assert found["q2"].scores.tolist() == [191.0]
    assert list(found) == ["q7", "q2", "q5"]
    with pytest.raises(EncoreError, match="'dX' is in the run, but not in the token store"):
        rerank(
            {"q1": ranking(dX=1)}, scorer, store, Reranking(QuerySample("test"), 15, NUMERICS, "ours", "c", reranked=8)
        )


@pytest.fixture(scope="module", params=["late-interaction", "cross-encoder", "vector"])
def ranker(request, home, negatives):
    places = [home / name for name in ("tokens", "collection", "start", "negatives")]
    step = {**STEP, "scorer": request.param, "token_dimension": 8, "length": 8}
    del step["validate_every"]
    output = home / f"ranker-{request.param}"
    with record(output, stage="finetune", spec={}, inputs=places):
        finetuned(step, FinetuneInputs(*places), output, home / "state")
    return output


@pytest.fixture(scope="module")
def first(home):
    rng = np.random.default_rng(3)
    run = {f"q{i}": rank([f"d{row}" for row in rng.permutation(64)[:20]], np.linspace(9, 1, 20)) for i in range(52, 64)}
    stage = [{"name": "bm25", "method": "fake"}]
    with record(home / "first", stage="lucene_search", spec={}, inputs=[]):
        write_run(home / "first", run, describe("bm", collection="c", split="test", retrieval=stage))
    return home / "first"


def test_the_program_ranks_by_the_models_scores(home, first, ranker):
    inputs = {"model": ranker.name, "tokens": "tokens", "first": "first"}
    output = f"again-{ranker.name}"
    assert "12 queries ranked again, 96 pairs scored" in inside.made("rerank", SPEC, inputs, output, home)
    before, after = (read_run(home / name) for name in ("first", output))
    store = TokenStore(home / "tokens")
    scorer = open_scorer(ranker, store)
    changed = 0
    for query, found in after.items():
        top = before[query].documents[:8]
        rows = np.array([int(document[1:]) for document in top])
        expected = rank(top, scorer.score(np.full(8, int(query[1:])), rows))
        assert found.documents == [*expected.documents, *before[query].documents[8:15]]
        np.testing.assert_allclose(found.scores[:8], expected.scores, rtol=1e-4, atol=1e-5)
        changed += expected.documents != top
    assert changed > 6, "a ranker that changes nothing proves nothing"
    stages = read_header(home / output)["method"]["retrieval"]
    assert [stage["name"] for stage in stages] == ["bm25", "reranking"]
    inside.made("rerank", SPEC, inputs, f"{output}-twice", home)
    same = [(home / name / "run.npz").read_bytes() for name in (output, f"{output}-twice")]
    assert same[0] == same[1]
    assert json.loads((home / output / "manifest.json").read_text())["results"] == {"queries": 12, "pairs": 96}


def test_the_program_continues_in_smaller_parts_where_memory_runs_out(home, first, ranker, monkeypatch):
    """There is memory for three texts at a time; the runs are those that all of it makes."""
    inputs = {"model": ranker.name, "tokens": "tokens", "first": "first"}
    assert "out of memory" not in inside.made("rerank", SPEC, inputs, f"in-all-{ranker.name}", home)
    sizes = in_little_memory(monkeypatch, Encoder, "forward", 3)
    said = inside.made("rerank", SPEC, inputs, f"in-little-{ranker.name}", home)
    assert "out of memory; continuing with " in said
    assert sizes[0] > 3 >= sizes[-1]
    expected, found = (read_run(home / f"{name}-{ranker.name}") for name in ("in-all", "in-little"))
    assert {query: its.documents for query, its in found.items()} == {
        query: its.documents for query, its in expected.items()
    }
    for query, its in expected.items():
        np.testing.assert_allclose(found[query].scores, its.scores, rtol=1e-4, atol=1e-5)


# The plan


@pytest.fixture
def make(monkeypatch):
    monkeypatch.chdir(ROOT)
    catalogue = load_catalogue(ROOT / "config")
    nano = yaml.safe_load((ROOT / "config/nano.yaml").read_text())

    def plan(**systems):
        scale = {**nano["scale"], "systems": {**nano["scale"]["systems"], **systems}}
        return Plan(RunConfig.model_validate({**nano, "scale": scale}), catalogue)

    return plan


def test_a_rerank_run_is_made_of_the_first_stage_and_a_model(make):
    plan = make()
    topics = Topics("test", plan.config.depth)
    run = plan.run("bm25-colbert", 0, "msmarco-passage", topics)
    assert run.stage == "rerank"
    assert run.inputs["first"] is plan.run("bm25", None, "msmarco-passage", topics)
    assert run.inputs["model"] is plan.model(plan.resolve.lineage("bert-base+colbert"), 0)
    assert run.owner.startswith("bm25-colbert-s0-")
    assert run.spec["reranked"] == 20
    assert make().find(run.folder) == run, "found from its name alone"
    assert plan.resolve.has_chance("bm25-colbert")
    assert plan.scores("bm25-colbert", 0, "msmarco-passage", "test").inputs["run"] is run


def test_depth_seed_and_model_rename_the_run_and_the_first_stage_only_where_it_is_too_short(make):
    topics = Topics("test", 30)
    runs = {
        name: plan.run("bm25-colbert", seed, "msmarco-passage", topics)
        for name, plan, seed in (
            ("same", make(), 0), ("seed", make(), 1), ("deep", make(**{"bm25-colbert": {"depth": 40}}), 0),
            ("other", make(**{"bm25-colbert": {"ranker": "bert-base+colbert~temperature=0.5", "depth": 20}}), 0),
        )
    }  # fmt: skip
    assert len({run.folder for run in runs.values()}) == 4
    assert runs["deep"].inputs["first"].spec["depth"] == 40
    assert {runs[name].inputs["first"].spec["depth"] for name in ("same", "seed", "other")} == {30}


def test_its_latency_is_measured_behind_that_of_the_first_stage(make):
    plan = make()
    found = plan.latency("bm25-colbert", 0, "msmarco-passage", "test")
    assert set(found.inputs) == {"collection", "model", "tokens", "first", "part0"}
    assert found.inputs["part0"] is plan.latency("bm25", None, "msmarco-passage", "test")


def test_a_dense_first_stage_may_be_ranked_again(make):
    plan = make(**{"bm25-colbert": {"first": "bert-base+marco-bm25"}})
    run = plan.run("bm25-colbert", 0, "msmarco-passage", Topics("test", 1000))
    assert run.inputs["first"].stage == "search"


def test_no_model_is_mistaken_for_a_system(make):
    import re

    plan = make()
    run = plan.run("bm25-colbert", 0, "msmarco-passage", Topics("test", 1000))
    assert re.fullmatch(folders.systems(plan.resolve, "rerank"), run.owner)
    assert not re.fullmatch(folders.lineages(plan.resolve), run.owner)

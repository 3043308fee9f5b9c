"""What jobs request of a cluster: in the demo, for MS MARCO's passages and for 33 million; and what that rests on."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from encore.commands.preflight.jobs import CUDA, LONGEST, Requests
from encore.commands.preflight.sizes import SIZES
from encore.config.run import RunConfig
from encore.plan.artifact import Artifact, Topics, upstream
from encore.plan.artifacts.collections import named_collection
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.retrieval import lucene
from encore.stages.lucene_search import HEAP, HITS
from encore.stages.needs import SPARE_MEMORY
from tests.support.small_forecast import estimate, planned

ROOT = Path(__file__).parents[3]
HOUR, WEEK = 60, 7 * 24 * 60
# Minutes and GB that a job takes at least, as far as it was measured, and that it may request at most. Of the training
# queries (495,959) BM25 keeps 200 passages, a model 200 of 8.8 million and of 33.
MS_MARCO = {
    "collection": (3, 3 * HOUR, 0.43 * 1.2, 0.43 * 2),
    "tokens": (3, 2 * HOUR, 0.5, 2),
    "lucene_index": (8, 2 * HOUR, 2, 4),
    # 129 minutes of made-up text, and 330 by what Pyserini prints (12.5 queries a second on each of two threads), for
    # both of which a request of 480 is enough. Memory is that of Java and Python together.
    "lucene_search": (240, 24 * HOUR, 1.2 * 3.95, 2 * 3.95),
    "encode": (1, 4 * HOUR, 2, 16),
    "search": (5, 12 * HOUR, 1.2 * 9.5, 2 * 9.5),  # 3 of it for CUDA; a GPU node takes one for each GPU
    "build_index": (6 * HOUR, 2 * 24 * HOUR, 1.2 * 29.5, 2 * 29.5),  # the vectors in a graph
    "search_index": (3, 24 * HOUR, 27.2, 64),
    "finetune": (1, 24 * HOUR, 2, 128),
    "negatives": (4, 2 * HOUR, 2.33 * 1.2, 2.33 * 2),
    "evaluate": (0.15, 2 * HOUR, 0.66 * 1.2, 0.66 * 2),
}
LARGE = {  # what grows with the passages, in 33 million of them
    "collection": (12, 12 * HOUR, 0.4, 8),
    "tokens": (12, 4 * HOUR, 2, 16),
    "lucene_index": (27, 12 * HOUR, 2, 40),
    "lucene_search": (640, 48 * HOUR, 1.02 + 4, 16),
    "encode": (4, 12 * HOUR, 2, 16),
    "search": (5, 24 * HOUR, 1.5, 32),
    "build_index": (24 * HOUR, WEEK, 1.2 * 110, 2 * 110),
    "search_index": (9, 24 * HOUR, 101, 200),  # the index is read at 200 MB a second
    "negatives": (4, 2 * HOUR, 2.33 * 1.2, 8),  # as many lines, but of more passages
}


def plan_of(run: str, catalogue: Catalogue, passages: int | None = None) -> Plan:
    if passages:
        known = catalogue.datasets["msmarco-passage"]
        larger = known.model_copy(update={"expected": known.expected | {"passages": passages}})  # type: ignore[attr-defined]
        catalogue = replace(catalogue, datasets=catalogue.datasets | {"msmarco-passage": larger})
    return Plan(RunConfig.model_validate(yaml.safe_load((ROOT / f"config/{run}.yaml").read_text())), catalogue)


def jobs(plan: Plan) -> dict[str, Artifact]:
    """A job of each rule on the passages that people search: a model, its index, BM25, and runs of training queries."""
    model, train = "bert-base+marco-bm25", Topics("train", 200)
    dense, sparse = (plan.run(system, seed, "msmarco-passage", train) for system, seed in ((model, 0), ("bm25", None)))
    mined = plan.model(plan.resolve.lineage(f"{model}+marco-hn"), 0)
    scores = plan.scores(f"{model}@hnsw", 0, "msmarco-passage", "test")
    found = {made.stage.partition(".")[0]: made for made in upstream([mined, scores, sparse])}
    collection, tokens = dense.inputs["collection"], dense.inputs["tokens"]
    return found | {"search": dense, "lucene_search": sparse, "collection": collection, "tokens": tokens}


@pytest.mark.parametrize("passages", [8_841_823, 33_000_000])
def test_no_job_is_killed_for_its_size_at_its_first_attempt(
    at_the_root: None, catalogue: Catalogue, passages: int
) -> None:
    plan = plan_of("paper", catalogue, passages)
    requests, made = Requests(plan), jobs(plan)
    bounds = MS_MARCO | (LARGE if passages > 1e7 else {})
    for rule, (minutes, most_minutes, gigabytes, most_gigabytes) in bounds.items():
        asked, memory = requests.minutes(made[rule], 0), requests.memory_mb(made[rule], 0) / 1000
        assert 2 * minutes <= asked <= min(most_minutes, LONGEST), f"{rule}: {asked} minutes"
        assert gigabytes < memory <= most_gigabytes, f"{rule}: {memory} GB"


def test_a_search_by_shard_requests_the_memory_of_its_shard(at_the_root: None, catalogue: Catalogue) -> None:
    """Each encodes the queries, and merging what is found multiplies nothing, so it requests no memory for CUDA."""
    paper, asked = plan_of("paper", catalogue, 138_364_198), Topics("test", 1000)
    requested = []
    for changes in ({}, {"search_by_shard": True}):
        execution = paper.config.execution.model_copy(update={"shards": 16, **changes})
        plan = Plan(paper.config.model_copy(update={"execution": execution}), paper.catalogue)
        run = plan.run("bert-base+marco-bm25", 0, "msmarco-passage", asked)
        requested += [(Requests(plan), made) for made in (run, run.inputs.get("hit0")) if made]
    whole, merging, apart = (requests.memory_mb(made, 0) for requests, made in requested)
    of_each = SPARE_MEMORY * 72 * 138_364_198 / 1e6  # MB: passages' ids and rows
    assert whole - apart == pytest.approx(of_each * 15 / 16, abs=200)
    assert whole - merging > SPARE_MEMORY * CUDA / 1e6


def test_the_demo_requests_the_least(at_the_root: None, catalogue: Catalogue) -> None:
    plan = plan_of("config", catalogue)
    requests = Requests(plan)
    for rule, made in jobs(plan).items():
        assert (requests.memory_mb(made, 8_000), requests.minutes(made, 60)) == (8_000, 60), rule


def test_each_process_of_a_training_has_its_own_memory(at_the_root: None, catalogue: Catalogue) -> None:
    paper = plan_of("paper", catalogue)
    pretrained = paper.model(paper.resolve.lineage("two-tower+ict"), 0)
    one = paper.config.execution.model_copy(update={"processes": 1})
    alone = Requests(Plan(paper.config.model_copy(update={"execution": one}), paper.catalogue))
    assert Requests(paper).memory_mb(pretrained, 0) > 7 * alone.memory_mb(pretrained, 0)
    assert Requests(paper).minutes(pretrained, 24 * HOUR) > 24 * HOUR


def test_articles_request_more_than_a_small_set_of_passages(at_the_root: None, catalogue: Catalogue) -> None:
    paper = plan_of("paper", catalogue)
    requests = Requests(paper)
    wikipedia, set_of_beir = (named_collection(paper, name) for name in ("wikipedia", "beir-scifact"))
    assert requests.memory_mb(wikipedia, 4000) > 4000
    assert 2 * HOUR < requests.minutes(wikipedia, 30) <= 6 * HOUR, "7 million articles on 16 cores"
    assert (requests.memory_mb(set_of_beir, 4000), requests.minutes(set_of_beir, 30)) == (4000, 30)


def test_more_to_do_takes_no_less(bare: Path) -> None:
    """Ten times the passages and queries: each job's operations, time, memory and disk grow, or stay."""
    plan = planned()
    small, sizes = estimate(plan), yaml.safe_load(SIZES.read_text())
    entry = sizes["pydocs-stdlib"]
    entry |= {name: 10 * entry[name] for name in ("passages", "sections")}
    entry["queries"] = {split: 10 * count for split, count in entry["queries"].items()}
    SIZES.write_text(yaml.safe_dump(sizes))
    large = estimate(plan)
    pairs = list(zip(small.jobs, large.jobs, strict=True))
    assert sum(b.needs.disk > a.needs.disk for a, b in pairs) > 15
    for a, b in pairs:
        for need in ("operations", "memory", "gpu_memory", "disk", "vectors", "core_seconds"):
            assert getattr(b.needs, need) >= getattr(a.needs, need), f"{need} of {a.artifact.folder}"


def test_what_bm25_holds_at_once_is_what_the_search_asks_for() -> None:
    assert (HITS, HEAP) == (lucene.HITS, 2**20 * lucene.SEARCHING_MB)
    assert lucene.HITS * lucene.HEAP_OF_A_HIT <= HEAP


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("depth", [200, 1000])
def test_every_search_with_bm25_fits_a_small_node(
    at_the_root: None, catalogue: Catalogue, split: str, depth: int
) -> None:
    """Java's heap and Python's arrays together; 1000 passages of all training queries are 5e8 hits, of which Java alone
    would hold 42 GB."""
    for name in ("small", "paper"):
        plan = plan_of(name, catalogue)
        made = plan.run("bm25", None, "msmarco-passage", Topics(split, depth))
        assert HEAP / 1e6 < Requests(plan).memory_mb(made, 0) < 20_000

"""What docs/scales.md says of 138 million passages is what the forecast says of each stage."""

import re
from pathlib import Path

import pytest

from encore.commands.preflight.forecast import HOUR, Forecast
from encore.commands.preflight.forecast_text import size
from encore.config.run import Limits
from encore.config.validation import read_yaml
from tests.support.small_forecast import estimate, planned

ROOT = Path(__file__).parents[3]
PAPER = Path("config/paper.yaml")
MODEL = "bert-base+marco-bm25"
BY_SHARD = "the same, "  # rows of a run with `search_by_shard`
STAGES = {  # by the stage and what is special of a job's folder
    "collection": ("collection", "v2"),
    "tokens": ("tokens", "v2"),
    "lucene_index": ("lucene_index", ""),
    "lucene_search, 200 of each training query": ("lucene_search", ".train"),
    "negatives, of BM25": ("negatives", "bm25"),
    "finetune": ("finetune", ""),
    "encode, one of 16 shards": ("encode", ""),
    "search, 1000 of each test query": ("search", ".test"),
    "search, 200 of each training query": ("search", ".train"),
    "the same, of one of 16 shards": ("search_shard", ".train"),
    "the same, of hits in 16 shards": ("search", ".train"),
    "build_index, 16 bits": ("build_index", "@fp16"),
    "build_index, IVF-PQ": ("build_index", "@ivfpq"),
    "build_index, HNSW": ("build_index", "@hnsw"),
    "search_index, 16 bits": ("search_index", "@fp16"),
    "search_index, IVF-PQ": ("search_index", "@ivfpq"),
    "search_index, HNSW": ("search_index", "@hnsw"),
    "evaluate": ("evaluate", "@ivfpq"),
}


def forecast_of_v2(by_shard: bool) -> Forecast:
    """Of the jobs behind indexes of all types, and behind a training with mined negatives."""
    ids = {"train": "train", "valid": "dev1", "test": "dev2"}
    splits: dict[str, dict[str, object]] = {
        role: {"role": role, "id": f"msmarco-passage-v2/{name}"} for role, name in ids.items()
    }
    for role in ("valid", "test"):
        splits[role]["measures"] = {"RR@10": "RR@10"}
    v2 = {"kind": "ir-datasets", "id": "msmarco-passage-v2", "splits": splits, "licence": "research", "terms": "a page"}
    paper = read_yaml(PAPER)
    scale = paper["scale"] | {"datasets": {"msmarco-passage": "v2", "msmarco-passage-titles": "v2"}}
    scale["finetune"] = scale.get("finetune", {}) | {"triples": None}
    execution = paper["execution"] | {"shards": 16, "search_by_shard": by_shard}
    plan = planned(PAPER, datasets={"v2": v2}, scale=scale, execution=execution)
    made = [plan.scores(f"{MODEL}@{kind}", 0, "msmarco-passage", "test") for kind in ("hnsw", "ivfpq", "fp16")]
    made += [plan.model(plan.resolve.lineage(f"{MODEL}+marco-hn"), 0)]
    return estimate(plan, "h100-80gb", tables=tuple(each.manifest for each in made))


@pytest.mark.usefixtures("bare")
def test_the_page_has_what_each_stage_takes_at_138_million_passages() -> None:
    forecasts = {by_shard: forecast_of_v2(by_shard) for by_shard in (False, True)}
    lines = ["| stage | hours | cores | memory | disk |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, (rule, part) in STAGES.items():
        found = forecasts[name.startswith(BY_SHARD)]
        job = next(each for each in found.missing if each.rule == rule and part in each.artifact.folder)
        needs, hours = job.needs, found.seconds(job) / HOUR
        shown = f"{hours:,.1f}" if hours >= 0.05 else "under 0.1"
        memory, disk = size(found.memory(job)), size(needs.disk + needs.vectors)
        lines.append(f"| {name} | {shown} | {needs.cores:g} | {memory} | {disk} |")
    table = "\n".join(["", *lines, ""])
    assert table in (ROOT / "docs/scales.md").read_text()


@pytest.mark.parametrize("by_shard", [False, True])
@pytest.mark.usefixtures("bare")
def test_preflight_names_each_job_beyond_a_node_or_a_day_and_no_other(by_shard: bool) -> None:
    """Graphs by memory and by hours; a core's search of vectors in 16 bits, and BM25 of training queries, by hours."""
    found = [line for line in forecast_of_v2(by_shard).complaints(Limits()) if not line.startswith("disk: ")]
    named = [re.fullmatch(r"(memory|time): a job of (\w+) takes .*: (\S+)", line) for line in found]
    assert [each and (each[1], each[2], re.findall("@(.*)/", each[3])) for each in named] == [
        ("memory", "build_index", ["hnsw"]),
        ("time", "build_index", ["hnsw"]),
        ("memory", "search_index", ["hnsw"]),
        ("time", "search_index", ["fp16"]),
        ("time", "lucene_search", []),
    ]

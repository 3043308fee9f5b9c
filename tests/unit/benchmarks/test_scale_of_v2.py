"""The table of docs/scales.md on 138 million passages is what the forecast says of each stage."""

from pathlib import Path

import pytest

from encore.commands.preflight.forecast import HOUR
from encore.commands.preflight.forecast_text import size
from encore.config.validation import read_yaml
from tests.support.small_forecast import estimate, planned

ROOT = Path(__file__).parents[3]
PAPER = Path("config/paper.yaml")
MODEL = "bert-base+marco-bm25"
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
    "build_index, 16 bits": ("build_index", "@fp16"),
    "build_index, IVF-PQ": ("build_index", "@ivfpq"),
    "build_index, HNSW": ("build_index", "@hnsw"),
    "search_index, IVF-PQ": ("search_index", "@ivfpq"),
    "evaluate": ("evaluate", "@ivfpq"),
}


@pytest.mark.usefixtures("bare")
def test_the_page_has_what_each_stage_takes_at_138_million_passages() -> None:
    ids = {"train": "train", "valid": "dev1", "test": "dev2"}
    splits: dict[str, dict[str, object]] = {
        role: {"role": role, "id": f"msmarco-passage-v2/{name}"} for role, name in ids.items()
    }
    for role in ("valid", "test"):
        splits[role]["measures"] = {"RR@10": "RR@10"}
    v2 = {"kind": "ir-datasets", "id": "msmarco-passage-v2", "splits": splits, "licence": "research", "terms": "a page"}
    scale = read_yaml(PAPER)["scale"] | {"datasets": {"msmarco-passage": "v2", "msmarco-passage-titles": "v2"}}
    scale["finetune"] = scale.get("finetune", {}) | {"triples": None}
    plan = planned(PAPER, datasets={"v2": v2}, scale=scale, execution=read_yaml(PAPER)["execution"] | {"shards": 16})
    made = [plan.scores(f"{MODEL}@{kind}", 0, "msmarco-passage", "test") for kind in ("hnsw", "ivfpq", "fp16")]
    made += [plan.model(plan.resolve.lineage(f"{MODEL}+marco-hn"), 0)]
    found = estimate(plan, "h100-80gb", tables=tuple(each.manifest for each in made))
    lines = ["| stage | hours | cores | memory | disk |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, (rule, part) in STAGES.items():
        job = next(each for each in found.missing if each.rule == rule and part in each.artifact.folder)
        needs, hours = job.needs, found.seconds(job) / HOUR
        shown = f"{hours:,.1f}" if hours >= 0.05 else "under 0.1"
        memory, disk = size(found.memory(job)), size(needs.disk + needs.vectors)
        lines.append(f"| {name} | {shown} | {needs.cores:g} | {memory} | {disk} |")
    table = "\n".join(["", *lines, ""])
    assert table in (ROOT / "docs/scales.md").read_text()

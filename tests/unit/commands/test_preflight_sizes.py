"""`encore preflight` counts the collections of a run that `encore new` wrote."""

import gzip
import re
from pathlib import Path

import pytest

from encore.commands.preflight.sizes import SIZES, CollectionSizes, read_stated
from encore.config.run import Limits
from encore.config.validation import read_yaml
from tests.support import inside
from tests.support.own_folder import folder, judged, new
from tests.support.own_folder import planned as planned_file
from tests.support.small_forecast import RUN, estimate, planned


@pytest.mark.parametrize("pack", [True, False])
def test_preflight_counts_the_files_that_are_there(bare: Path, pack: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder({"train": judged(0, 300), "test": judged(300, 400)}, text="Two sentences. They are here")
    for packed in () if pack else list(place.glob("*.gz")):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    new("own", "--beir", "data/own")
    plan, _ = planned_file("config/own.yaml")
    size = CollectionSizes(plan, read_stated(SIZES)).of(plan.collection("own"))
    assert size.passages.count == 40
    assert size.queries == {"train": 270.0, "valid": 30.0, "test": 100.0, "graded": 100.0}
    assert size.passages.mean == pytest.approx(6 * 1.3, rel=0.01)
    assert size.notes == size.assumed == []
    monkeypatch.setattr("encore.datasets.source_files.READ", 400)  # the rest of a large file is estimated from a part
    again = CollectionSizes(plan, read_stated(SIZES)).of(plan.collection("own"))
    assert again.passages.count == pytest.approx(40, rel=0.0 if pack else 0.1)


def test_preflight_says_where_steps_ask_for_more_queries_than_there_are(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    new("own", "--beir", "data/own")
    done = inside.encore("preflight", "--config", "config/own.yaml")
    assert "own: train has 270 queries, and steps ask for 1,000; all are taken" in " ".join(done.stdout.split())


def test_files_that_cannot_be_read_are_assumed(bare: Path) -> None:
    place = folder({"train": judged(0, 300), "test": judged(300, 400)})
    new("own", "--beir", "data/own")
    (place / "corpus.jsonl.gz").write_bytes(b"no archive")
    plan, _ = planned_file("config/own.yaml")
    size = CollectionSizes(plan, read_stated(SIZES)).of(plan.collection("own"))
    assert any("passages unknown" in note for note in size.assumed)
    (problem,) = (line for line in estimate(plan).complaints(Limits()) if line.startswith("size: "))
    assert problem.startswith("size: own: passages unknown, 1,000,000 assumed; queries of ")


def test_of_what_ir_datasets_counts_nothing_is_assumed_and_each_job_beyond_a_node_is_named(bare: Path) -> None:
    """MS MARCO v2 without any count of ours: 138 million passages, and a graph of them."""
    splits = {
        "train": {"role": "train", "id": "msmarco-passage-v2/train"},
        "valid": {"role": "valid", "id": "msmarco-passage-v2/dev1", "measures": {"RR@10": "RR@10"}},
        "test": {"role": "test", "id": "msmarco-passage-v2/dev2", "measures": {"RR@10": "RR@10"}},
    }
    v2 = {"kind": "ir-datasets", "id": "msmarco-passage-v2", "splits": splits, "licence": "research", "terms": "a page"}
    scale = {**read_yaml(RUN)["scale"], "datasets": {"msmarco-passage": "v2"}, "backbones": {}}
    plan = planned(datasets={"v2": v2}, scale=scale)
    graph = plan.scores("bert-base+marco-bm25@hnsw", 0, "msmarco-passage", "test")
    found = estimate(plan, "h100-80gb", tables=(graph.manifest,))
    size = found.sizes.of(plan.collection("v2"))
    assert (size.passages.count, size.topics("train"), size.assumed) == (138_364_198, 277_144, [])
    assert size.topics("test") == 4_281
    (fetched,) = (each for each in found.downloads if each.name == "v2")
    assert fetched.bytes == pytest.approx(21.8e9, rel=0.002)
    searched = graph.inputs["run"]
    index, run = (made.folder.removeprefix("results/") for made in (searched.inputs["index"], searched))
    lines = [re.sub(r"takes [0-9,.]+", "takes so many", line) for line in found.complaints(plan.config.limits)]
    assert [line for line in lines if not line.startswith("disk: ")] == [
        f"memory: a job of build_index takes so many GB, a node has 256: {index}",
        f"time: a job of build_index takes so many hours, over a day: {index}",
        f"memory: a job of search_index takes so many GB, a node has 256: {run}",
    ]

"""From training queries to a fused run with predicted queries, after a finished nano run; and back to the formula."""

import json
from pathlib import Path

import numpy as np
import pytest

from encore.data.runs import read_run
from tests.support.clones import Clone

SYSTEM = "hybrid-doct5"
MODEL = "tiny+marco-bm25-s0"
ON_THE_WAY = {
    "train_doc2query tiny-t5",
    "predict_queries tiny-t5.pydocs-stdlib",
    "lucene_index pydocs-stdlib+tiny-t5",
    *(f"lucene_search bm25-doct5 pydocs-stdlib.{topics}" for topics in ("train.50", "valid.50", "test")),
    *(f"search {MODEL} pydocs-stdlib.{topics}" for topics in ("train.50", "valid.50", "test")),
    f"tune_fusion {SYSTEM}-s0 pydocs-stdlib",
    f"fuse {SYSTEM}-s0 pydocs-stdlib.test",
    f"evaluate {SYSTEM}-s0 pydocs-stdlib.test",
}


@pytest.fixture
def small(nano: Clone) -> Clone:
    """Nano with an expander that learns for a moment and predicts a few words."""
    for name, usual, few in (("steps", 300, 5), ("query_length", 12, 4), ("per_passage", 2, 1)):
        nano.replace("config/doc2query.yaml", f"  {name}: {usual}\n", f"  {name}: {few}\n")
    return nano


def results(path: Path) -> dict:
    return json.loads(path.read_text())["results"]


def plain(run: Path) -> dict[str, dict[str, float]]:
    return {
        query: dict(zip(found.documents, found.scores.astype(np.float64).tolist(), strict=True))
        for query, found in read_run(run).items()
    }


def test_a_fusion_with_predicted_queries(small: Clone) -> None:
    (target,) = small.encore("targets", SYSTEM, "--config", "config/nano.yaml").succeeded().split()
    assert small.built(target) == ON_THE_WAY
    assert small.planned(target) == set()
    root = small.root / "results"
    assert results(small.root / target)["test"]["RR@10"] > 0.2
    (expansions,) = root.glob("predicted_queries/*/manifest.json")
    (collection,) = root.glob("collections/*/manifest.json")
    assert results(expansions)["passages"] == results(collection)["passages"]
    check_fused(root)
    small.replace("config/nano.yaml", "{weights: {from: 0.01, to: 0.05", "{weights: {from: 0.01, to: 0.02")
    (target,) = small.encore("targets", SYSTEM, "--config", "config/nano.yaml").succeeded().split()
    assert {job.split()[0] for job in small.planned(target)} == {"tune_fusion", "fuse", "evaluate"}


def check_fused(root: Path) -> None:
    """The run is what the formula makes of its two lists and its weight, which is the best that was tried."""
    (manifest,) = root.glob(f"runs/{SYSTEM}-s0-*/*/manifest.json")
    folders = {Path(name).parent for name in json.loads(manifest.read_text())["inputs"]}
    (weight,) = (folder for folder in folders if folder.parts[1] == "fusions")
    (sparse,) = (folder for folder in folders if folder.parts[2].startswith("bm25"))
    (dense,) = folders - {weight, sparse}
    said = json.loads((root.parent / weight / "weight.json").read_text())
    lines = [line.split("\t") for line in (root.parent / weight / "trials.tsv").read_text().splitlines()[1:]]
    tried = {float(value): float(mean) for kind, value, mean in lines if kind == "train"}
    assert len(tried) == 5
    assert tried[said["weight"]] == max(tried.values())
    lists = [plain(root.parent / folder) for folder in (sparse, dense)]
    fused = plain(manifest.parent)
    assert set(fused) == set(lists[0]) | set(lists[1])
    for query, scores in fused.items():
        first, second = (found.get(query, {}) for found in lists)
        low, least = (min(found.values(), default=0.0) for found in (first, second))
        expected = {
            name: said["weight"] * first.get(name, low) + second.get(name, least) for name in {**first, **second}
        }
        assert scores == pytest.approx(expected, abs=1e-5)

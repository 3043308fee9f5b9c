"""What ``encore preflight`` says of downloads: their sizes, what is here already, and what counts once."""

from pathlib import Path

import pytest

from encore.commands.preflight import downloads
from encore.commands.preflight.downloads import Fetches
from encore.plan.artifact import Artifact
from tests.support.small_forecast import planned

IDS = {
    "msmarco-passage": {
        "collectionandqueries": 1,
        "queries": 2,
        "train/qrels": 4,
        "train/docpairs": 8,
        "dev/qrels": 16,
    },
    "dpr-w100": {"docs": 1, "nq-train": 2, "nq-dev": 4, "tqa-train": 8},
    "beir": {"fever": 1, "climate-fever": 2, "webis-touche2020": 4, "webis-touche2020/v2": 8, "cqadupstack": 16},
    "msmarco-qna": {"train": 32, "dev": 64, "eval": 128},
}


@pytest.mark.parametrize(
    ("ids", "total"),
    [
        (["msmarco-passage"], 3),
        (["msmarco-passage", "msmarco-passage/train/judged", "msmarco-passage/dev/small"], 23),
        (["dpr-w100", "dpr-w100/natural-questions/train"], 3),
        (["beir/fever", "beir/fever/test"], 1),
        (["beir/webis-touche2020/v2"], 8),
        (["beir/cqadupstack/android"], 16),
        (["msmarco-qna", "msmarco-qna/dev"], 227),
        (["made-up"], 0),
    ],
)
def test_what_ir_datasets_downloads_is_found_by_name(ids: list[str], total: int) -> None:
    known = {top: {name: {"size_hint": size} for name, size in files.items()} for top, files in IDS.items()}
    assert sum(entry["size_hint"] for entry in downloads.wanted(ids, known).values()) == total


def test_a_file_that_several_datasets_need_counts_once(bare: Path) -> None:
    fetches = Fetches(planned(), {"beir": {"cqadupstack": {"size_hint": 7, "cache_path": "x.zip"}}})
    forums = [
        Artifact(
            "fetch_ir_datasets",
            f"results/ir_datasets/beir-cqadupstack-{forum}-0",
            {"ids": [f"beir/cqadupstack/{forum}"]},
        )
        for forum in ("android", "english")
    ]
    assert [fetches.of(forum).missing for forum in forums] == [7, 0]
    assert fetches.of(forums[0]).missing == 7, "also when it is requested again"


def test_a_source_without_a_size_is_unknown_until_it_is_here(bare: Path) -> None:
    plan = planned(execution={"data_root": "there"})
    made = Artifact("fetch_source", "results/sources/msmarco-titles-00000000", {})
    assert downloads.of_source(plan, made).bytes is None
    (bare / "there/msmarco-titles").mkdir(parents=True)
    (bare / "there/msmarco-titles/marco.tar.gz").write_bytes(b"12345")
    found = downloads.of_source(plan, made)
    assert (found.bytes, found.here, found.missing) == (5, 5, 0)
    assert "non-commercial" in found.licence


def test_a_rounded_size_counts_until_the_file_is_here(bare: Path) -> None:
    plan = planned(execution={"data_root": "there"})
    made = Artifact("fetch_source", "results/sources/msmarco-expansions-00000000", {})
    rounded = downloads.of_source(plan, made)
    assert (rounded.bytes, rounded.missing) == (7.9e9, 7.9e9)
    (bare / "there/msmarco-expansions").mkdir(parents=True)
    (bare / "there/msmarco-expansions/predicted_queries_topk_sampling.zip").write_bytes(b"12345")
    assert downloads.of_source(plan, made).missing == 0

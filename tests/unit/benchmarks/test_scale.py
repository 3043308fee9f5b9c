"""The benchmark of scale at small sizes: what stages do for one more passage is the same for few and for many."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.quick_benchmark import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import scale
from harness import record
from harness.counted import counted

from encore.errors import EncoreError
from encore.storage import document_ids
from tools import synthetic_msmarco

SIZES = (300, 600, 1200)
COUNTED = [name for name, stage in scale.STAGES.items() if stage.does != "HNSW"]  # whose work is FAISS's alone
RECORDS = ROOT / "docs/recorded/scale"
LARGE = [row for row in scale.largest(RECORDS) if row["counts"]["passages"] >= 100_000]  # else most of it is to start


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_ids, "BLOCK", 64)  # as MS MARCO has many of them
        patch.setattr(scale, "VOCABULARY", 500)
        patch.setattr(scale, "DIMENSION", 24)
        patch.setattr(scale, "DEPTHS", {"train": 10, "dev": 10})  # which every query finds
        found = []
        for size in (100, *SIZES):  # the first is when modules are imported
            folder = tmp_path_factory.mktemp(str(size))
            found += scale.rows_of(folder, size, COUNTED, run_it=counted)
        return found


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("cost", ["calls", "bytes"])
@pytest.mark.slow
def test_a_passage_more_costs_no_more_where_there_are_many(rows: list[dict[str, Any]], name: str, cost: str) -> None:
    few, some, many = (row[cost] for row in rows if row["stage"] == name and row["counts"]["passages"] in SIZES)
    assert (many - some) / 2 <= scale.GROWTH * (some - few) + 0.02 * many


def test_made_up_texts_have_as_many_words_as_is_counted_with() -> None:
    assert scale.WORDS == synthetic_msmarco.WORDS


def test_what_grows_is_named() -> None:
    def row(passages: int, seconds: float) -> dict[str, Any]:
        return {"stage": "collection", "cpu_seconds": seconds, "counts": {"passages": passages, "queries": 0}}

    assert scale.grown([row(100, 1.0), row(1000, 13.0)]) == []
    assert scale.grown([row(100, 1.0), row(1000, 14.0)]) == [
        "collection: 1.40 times as long for each of its passages from 100 to 1000 passages"
    ]


@pytest.mark.slow
def test_every_stage_is_measured_with_all_that_it_starts(tmp_path: Path) -> None:
    (taken,) = scale.rows_of(tmp_path, 100, ["collection"])
    assert taken["cpu_seconds"] > 0.1
    assert taken["memory_mb"] > 10
    (line,) = scale.next_to_forecasts([taken])
    assert line["request MB"] == round(1.3 * line["forecast MB"])


def test_exact_search_in_ranges_is_measured_beside_the_undivided_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job for each of three ranges and one that merges, and the runs are compared."""
    monkeypatch.setattr(scale, "write_texts", lambda *_: {"passages": 3000.0, "train": 12.0, "dev": 3.0})
    read, runs = dict[str, str](), {"exact": b"a run"}

    def run_it(command: Sequence[str], folder: Path, log: Path) -> dict[str, float]:
        planned, output = (command[command.index(flag) + 1] for flag in ("--planned", "--output"))
        read[output] = json.loads((folder / planned).read_text())["inputs"].get("shard0", "")
        (folder / output).mkdir(parents=True)
        (folder / output / scale.RUN).write_bytes(runs.get(output, b"a run"))
        return {"cpu_seconds": 2.0, "memory_mb": 100.0 + len(read)}

    def rows_of(place: str) -> list[dict[str, Any]]:
        return list(scale.rows_of(tmp_path / place, 3000, ["exact", "hits", "merged"], run_it=run_it, ranges=3))

    for place in ("equal", "other"):
        (tmp_path / place).mkdir()
    rows, shards = rows_of("equal"), [f"{number:03d}-of-003" for number in range(3)]
    apart = {f"hits/{shard}": f"vectors/{shard}" for shard in shards}
    assert read == {"exact": "vectors/000-of-003", **apart, "merged": ""}
    assert [(row["cpu_seconds"], row["memory_mb"]) for row in rows] == [(2, 101), (6, 104), (2, 105)]
    whole, hits, merged = scale.next_to_forecasts(rows)
    assert ("3 shards" in hits["stage"], "3 shards" in merged["stage"]) == (True, True)
    assert 3 * hits["request MB"] > whole["request MB"] >= hits["request MB"]
    runs["exact"] = b"another"
    with pytest.raises(EncoreError, match="the run of hits in 3 shards has other bytes than the undivided one"):
        rows_of("other")


def test_the_page_has_the_table_of_the_records() -> None:
    table = "\n".join(record.table(scale.next_to_forecasts(scale.largest(RECORDS))))
    assert f"\n\n{table}\n\n" in (ROOT / "docs/scales.md").read_text()


@pytest.mark.parametrize("row", LARGE, ids=lambda row: row["stage"])
def test_forecasts_are_near_what_was_measured(row: dict[str, Any]) -> None:
    (line,) = scale.next_to_forecasts([row])
    assert 0.5 * line["CPU s"] <= line["forecast s"] <= 2 * line["CPU s"]
    held = line["memory MB"] + (row["counts"]["index"] / 1e6 if row["stage"] == "approximate" else 0)  # which it maps
    assert 1.2 * held <= line["request MB"] <= max(1000, 2 * held)  # which every job requests
    assert line["disk MB"] < 2 or 0.5 * line["disk MB"] <= line["forecast of disk MB"] <= 2 * line["disk MB"]

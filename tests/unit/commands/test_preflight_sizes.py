"""`encore preflight` counts the collections of a run that `encore new` wrote."""

import gzip
from pathlib import Path

import pytest

from encore.commands.preflight.sizes import SIZES, CollectionSizes, read_stated
from tests.support import inside
from tests.support.own_folder import folder, judged, new, planned


@pytest.mark.parametrize("pack", [True, False])
def test_preflight_counts_the_files_that_are_there(bare: Path, pack: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder({"train": judged(0, 300), "test": judged(300, 400)}, text="Two sentences. They are here")
    for packed in () if pack else list(place.glob("*.gz")):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    new("own", "--beir", "data/own")
    plan, _ = planned("config/own.yaml")
    size = CollectionSizes(plan, read_stated(SIZES)).of(plan.collection("own"))
    assert size.passages.count == 40
    assert size.queries == {"train": 270.0, "valid": 30.0, "test": 100.0, "graded": 100.0}
    assert size.passages.mean == pytest.approx(6 * 1.3, rel=0.01)
    assert size.notes == []
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
    plan, _ = planned("config/own.yaml")
    size = CollectionSizes(plan, read_stated(SIZES)).of(plan.collection("own"))
    assert any("passages unknown" in note for note in size.notes)

"""Search shard by shard: a job for each, and a run with the bytes of one search of all of them."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.data.runs import RUN, TEXT
from encore.data.tokens import TokenStore
from encore.models import checkpoint
from encore.retrieval import dense, encode
from encore.retrieval.encode import CollectionShard
from encore.retrieval.nested_corpora import REST, START
from encore.storage.files import open_text_writer
from encore.storage.manifest import MANIFEST, record
from tests.support import inside
from tests.support.small_home import NUMERICS
from tests.support.small_shard import write_shard

PASSAGES, KINDS = 64, 5
READ = {"model": "start", "tokens": "tokens", "collection": "collection"}


def spec(depth: int, **others: Any) -> dict[str, Any]:
    asked = {"split": "test", "queries": None, "sample": 0, "depth": depth, "query_length": 8}
    return asked | {"numerics": NUMERICS, "index": "vectors", "system": "ours"} | others


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 blocks of 4 passages."""
    monkeypatch.setattr(encode, "BLOCK", 4)


def shards(home: Path, folder: str, count: int) -> dict[str, str]:
    """Vectors of five kinds, each of a dozen passages in all parts of the collection, which tie for every query."""
    store = TokenStore(home / "tokens")
    dimension = checkpoint.load_config(home / "start").dimension
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((KINDS, dimension)).astype(np.float32)[rng.integers(KINDS, size=PASSAGES)]
    found = {}
    for number in range(count):
        place = f"{folder}/{number:03d}-of-{count:03d}"
        rows = CollectionShard(number, count).rows(PASSAGES)
        part = slice(rows.start, rows.stop)
        with record(home / place, stage="encode", spec={}, inputs=[]):
            write_shard(home / place, store.passages.names[part], dimension, [vectors[part]])
        found[f"shard{number}"] = place
    return found


def by_shard(home: Path, fields: dict[str, Any], folder: str, count: int, read: dict[str, str]) -> dict[str, str]:
    """The hits in each of so many shards, by role."""
    found = {}
    for role, shard in shards(home, f"vectors-{folder}", count).items():
        found[role.replace("shard", "hit")] = place = f"hits-{folder}/{Path(shard).name}"
        inside.made("search_shard", fields, read | {"shard0": shard}, place, home)
    return found


@pytest.fixture
def place(home: Path, tmp_path: Path) -> Path:
    """The home, where folders can be made."""
    for name in READ.values():
        shutil.copytree(home / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("count", [1, 3, 7, 20])  # the last of more shards than there are blocks
@pytest.mark.parametrize(
    ("depth", "spare", "most"),
    [
        (7, 32, 64),  # ties reach over borders of shards, and are complete
        (7, 1, 1),  # as those of a collapsed model: too large for the search to see the whole of any
        (100, 32, 64),  # more than there are
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_a_run_of_hits_by_shard_has_the_bytes_of_one_search(
    place: Path, monkeypatch: pytest.MonkeyPatch, count: int, depth: int, spare: int, most: int
) -> None:
    monkeypatch.setattr(dense, "SPARE", spare)
    monkeypatch.setattr(dense, "MOST", most)
    inside.made("search", spec(depth), READ | shards(place, "vectors", 1), "whole", place)
    hits = by_shard(place, spec(depth), "apart", count, READ)
    assert "12 queries answered" in inside.made("search", spec(depth), READ | hits, "merged", place)
    for name in (RUN, TEXT):
        assert (place / "merged" / name).read_bytes() == (place / "whole" / name).read_bytes()
    one, other = (json.loads((place / name / MANIFEST).read_text()) for name in ("whole", "merged"))
    assert all(one[key] == other[key] for key in ("stage", "spec", "results", "outputs"))


@pytest.mark.usefixtures("small_blocks")
def test_a_part_of_a_growing_collection_is_searched_by_shard_too(place: Path) -> None:
    """Some shards have no passage of it."""
    with record(place / "subset", stage="nested_corpora", spec={}, inputs=[]):
        for name, rows in ((START, range(10)), (REST, range(10, PASSAGES))):
            with open_text_writer(place / "subset" / name) as file:
                file.writelines(f"d{row}\n" for row in rows)
    fields, read = spec(7, size=12), READ | {"subset": "subset"}
    inside.made("search", fields, read | shards(place, "vectors", 1), "whole", place)
    hits = by_shard(place, fields, "apart", 7, read)
    inside.made("search", fields, read | hits, "merged", place)
    assert (place / "merged" / RUN).read_bytes() == (place / "whole" / RUN).read_bytes()
    results = [json.loads((place / name / MANIFEST).read_text())["results"] for name in ("whole", "merged")]
    assert results == [{"queries": 12, "passages": 12}] * 2


@pytest.mark.usefixtures("small_blocks")
def test_hits_of_other_shards_are_refused(place: Path) -> None:
    hits = by_shard(place, spec(7), "apart", 3, READ)
    missing = inside.make("search", spec(7), READ | {"hit0": hits["hit0"], "hit1": hits["hit2"]}, "never", place)
    assert missing.stderr == "error: 000-of-003, 002-of-003 are not the shards of one division; give all of one\n"
    shutil.copytree(place / hits["hit0"], place / "other/001-of-003")
    wrong = inside.make("search", spec(7), READ | hits | {"hit1": "other/001-of-003"}, "never", place)
    assert wrong.stderr.startswith("error: other/001-of-003 has other documents than this shard of tokens; ")
    shard = place / "vectors-apart/000-of-003"
    shutil.copytree(shard, place / "moved/000-of-002")
    wrong = inside.make("search_shard", spec(7), READ | {"shard0": "moved/000-of-002"}, "never/000-of-002", place)
    assert wrong.stderr.startswith("error: shard moved/000-of-002 has 20 vectors of 16 dimensions, not 32 of 16; ")

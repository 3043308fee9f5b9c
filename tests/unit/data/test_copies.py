"""Equal texts under other ids: counted, listed by the first that has each, and nothing where there are none."""

import gzip
import json
from pathlib import Path

from encore.data.collection import Collection, Judgment, write_collection
from encore.data.copies import COPIES, copies_of, count_copies

TEXTS = ["A wing lifts.", "the tail steers", "a  WING lifts", "", "A wing lifts!", "?", "the nose", "..."]


def made(folder: Path, texts: list[str], queries: dict[str, str], splits: dict[str, list[str]]) -> Collection:
    corpus = [{"_id": f"d{number}", "title": "", "text": text or "-"} for number, text in enumerate(texts)]
    judged = {split: [Judgment(query, "d1", 1) for query in asked] for split, asked in splits.items()}
    write_collection(folder, corpus, [{"_id": name, "text": text} for name, text in queries.items()], judged)
    return Collection(folder)


def test_texts_that_repeat_an_earlier_one_are_counted_and_listed(tmp_path: Path) -> None:
    queries = {"q0": "what lifts", "q1": "What lifts?", "q2": "what steers", "q3": "what lifts"}
    own = made(tmp_path, TEXTS, queries, {"train": ["q0"], "valid": ["q2"], "test": ["q1", "q3"]})
    found = count_copies(tmp_path)
    assert found == {"repeated_passages": 2, "repeated_queries": 2, "texts_of_training": {"test": 2}}
    statistics = json.loads((tmp_path / "statistics.json").read_text())
    assert (statistics["passages"], statistics["repeated_passages"]) == (8, 2)
    listed = gzip.decompress((tmp_path / COPIES).read_bytes()).decode()
    assert listed == "d2\td0\nd4\td0\n", "texts of signs alone are compared as they are"
    assert copies_of(own, {"d4", "d1"}) == {"d4": {"d0", "d2", "d4"}}
    (tmp_path / COPIES).unlink()
    assert copies_of(own, {"d4", "d1"}) == {"d4": {"d0", "d2", "d4"}}, "of a collection that was made before the list"


def test_a_title_is_part_of_a_text(tmp_path: Path) -> None:
    corpus = [{"_id": name, "title": title, "text": "lifts"} for name, title in (("a", "Wing"), ("b", "Tail"))]
    write_collection(tmp_path, corpus, [{"_id": "q", "text": "what"}], {"test": [Judgment("q", "a", 1)]})
    assert count_copies(tmp_path) == {}


def test_a_collection_without_copies_keeps_its_bytes(tmp_path: Path) -> None:
    own = made(tmp_path, ["one", "two"], {"q": "three"}, {"test": ["q"]})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    assert count_copies(tmp_path) == {}
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    assert copies_of(own, {"d0"}) == {}

"""Ids at eight bytes each: as a set would answer, repetitions named, and no id refused for a digest."""

import random
import tracemalloc

import pytest

from encore.data import validation
from encore.data.validation import Located, write_rows
from encore.errors import EncoreError
from encore.storage import document_ids as ids
from encore.storage.document_ids import Ids, twice


def documents(names):
    return [{"_id": name, "title": "", "text": "words"} for name in names]


def test_ids_answer_as_a_set_does():
    names = [f"d{number}" for number in random.Random(0).sample(range(1000), 300)]
    found = Ids()
    for name in names:
        found.enter(name)
    assert found.close() == set()
    assert len(found) == 300
    assert [f"d{number}" in found for number in range(1000)] == [f"d{number}" in set(names) for number in range(1000)]
    assert 7 not in found
    assert "é" not in found


@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 19), (5, 6), (3, 17), (18, 19)])
def test_a_repetition_is_named_with_its_row(tmp_path, first, second):
    names = [f"d{number}" for number in range(20)]
    names[second] = names[first]
    with pytest.raises(EncoreError, match=rf"^corpus, row {second + 1}: id '{names[first]}' occurs twice"):
        write_rows(tmp_path / "corpus.jsonl.gz", documents(names), "corpus")
    assert list(tmp_path.iterdir()) == []


def test_a_repetition_is_named_with_its_line_where_rows_were_left_out(tmp_path):
    lines = [(line, row) for line, row in zip([2, 3, 7, 8, 20], documents("abcda"), strict=True)]
    located = Located(tmp_path / "corpus.jsonl", lines)
    with pytest.raises(EncoreError, match=r"corpus\.jsonl, line 20: id 'a' occurs twice"):
        write_rows(tmp_path / "corpus.jsonl.gz", located, "corpus")
    assert [located.place_of(row).split(", line ")[1] for row in range(1, 6)] == ["2", "3", "7", "8", "20"]


def test_the_first_of_several_repetitions_is_named(tmp_path):
    with pytest.raises(EncoreError, match="row 4: id 'b' occurs twice"):
        write_rows(tmp_path / "corpus.jsonl.gz", documents("abcbcaab"), "corpus")


def test_equal_digests_of_different_ids_are_no_repetition(tmp_path, monkeypatch):
    """With digests of one value every id is suspected, and the written rows acquit all but the real repetition."""
    monkeypatch.setattr(ids, "_key", lambda name: 7)
    assert len(write_rows(tmp_path / "corpus.jsonl.gz", documents("abcdefg"), "corpus")) == 7
    assert (tmp_path / "corpus.jsonl.gz").is_file()
    with pytest.raises(EncoreError, match="row 7: id 'b' occurs twice"):
        write_rows(tmp_path / "corpus.jsonl.gz", documents("abcdefb"), "corpus")
    assert twice("abcabc", {1}) is None


def test_ids_take_less_than_a_sixth_of_a_set():
    tracemalloc.start()
    found = Ids()
    for number in range(200_000):
        found.enter(f"document-{number}")
    assert found.close() == set()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000  # a set takes 25 million


def test_a_look_up_copies_no_keys():
    """Python's numbers would make NumPy convert all keys for each look-up: minutes for the judgments of MS MARCO."""
    found = Ids()
    for number in range(100_000):
        found.enter(f"document-{number}")
    found.close()
    tracemalloc.start()
    assert all(f"document-{number}" in found for number in range(0, 100_000, 1000))
    assert "document-100000" not in found
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000  # the keys take 800,000 bytes


def test_unicode_forms_of_an_id_are_two_ids(tmp_path):
    assert len(write_rows(tmp_path / "corpus.jsonl.gz", documents(["é", "e\u0301"]), "corpus")) == 2


@pytest.mark.parametrize(
    ("text", "says"), [("", 0), (" \n\u3000\u00a0", 0), ("\0\x01\x85", 0), ("...", 1), ("\u200b", 1), ("\0a", 1)]
)
def test_what_says_something(text, says):
    assert validation.says_something(text) == bool(says)

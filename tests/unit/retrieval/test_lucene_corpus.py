"""What Lucene indexes is sorted in bounded memory, to the bytes that sorting all at once would give."""

import json
import random

import pytest

from encore.retrieval import lucene


@pytest.mark.parametrize("size", [1, 30, 10**6])
def test_blocks_are_merged_into_one_order(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lucene, "SORTED", size)
    names = [f"d{number}" for number in range(40)] + ["é", "e\u0301", "Z", "\U0001f600"]
    random.Random(0).shuffle(names)
    documents = [(name, f"text of\n{name}") for name in names]
    path = tmp_path / "corpus.jsonl"
    assert lucene._write_corpus(path, iter(documents)) == len(names)
    expected = [json.dumps({"id": name, "contents": text}) for name, text in sorted(documents, reverse=True)]
    assert path.read_text().splitlines() == expected
    assert list(tmp_path.iterdir()) == [path]
    assert lucene._write_corpus(path, ()) == 0

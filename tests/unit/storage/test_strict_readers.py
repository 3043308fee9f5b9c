"""Files of others as JSON lines: every reader refuses what JSON lines cannot say, with the line."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from encore.datasets import nq_reqa
from encore.errors import EncoreError
from encore.finetuning.negatives.systems_file import from_systems
from encore.finetuning.negatives.triples import NegativesRequest
from encore.retrieval.doc2query import predictions
from encore.storage import text_files, tsv

WANTED = NegativesRequest({"q"}, {"q": {"d": 1}}, {"d", "n"})
TOKENS = "<P> It is so . </P>"
ANNOTATION = {"short_answers": [{"start_token": 1, "end_token": 2}], "long_answer": {"start_token": 0, "end_token": 6}}
READERS: dict[str, tuple[dict[str, Any], Callable[[Path], Any]]] = {
    "systems": (
        {"qid": "q", "pos": [{"pid": "d", "ce-score": 9.0}], "neg": {"a": [{"pid": "n", "ce-score": 1.0}]}},
        lambda path: from_systems(path, WANTED, margin=3.0, per_system=1),
    ),
    "natural questions": (
        {"document_text": TOKENS, "document_url": "x", "question_text": "is it", "annotations": [ANNOTATION]},
        lambda path: list(nq_reqa.nq_paragraphs([path], Counter())),
    ),
    "predicted queries": (
        {"id": "p", "predicted_queries": ["one"]},
        lambda path: list(predictions.predicted(path, ["p", "p"])),
    ),
}
BROKEN = {
    "a key twice": ('{"extra": 1, "extra": 2, ', "the key 'extra' occurs twice"),
    "half of a pair": ('{"extra": "\\ud800", ', "half of a surrogate pair"),
    "no number": ('{"extra": NaN, ', "NaN is not a number"),
    "an infinity": ('{"extra": -Infinity, ', "-Infinity is not a number"),
    "nesting": ('{"extra": ' + "[" * 100_000 + "]" * 100_000 + ", ", "nested too deeply"),
    "cut": ("{,", "not JSON that can be read"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("mistake", BROKEN)
def test_what_json_lines_cannot_say_is_refused_with_its_line(reader: str, mistake: str, tmp_path: Path) -> None:
    good, read = READERS[reader]
    start, says = BROKEN[mistake]
    path, line = tmp_path / "file.jsonl", json.dumps(good)
    path.write_text(f"{line}\n{line}\n")
    assert read(path)
    path.write_text(f"{line}\n{start}{line[1:]}\n")
    with pytest.raises(EncoreError, match=r"file\.jsonl, line 2: ") as refused:
        read(path)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("reader", READERS)
def test_a_line_that_is_no_object_or_too_long_is_refused(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, read = READERS[reader]
    path, line = tmp_path / "file.jsonl", json.dumps(good)
    path.write_text(f"{line}\n[]\n")
    with pytest.raises(EncoreError, match="line 2: needs an object"):
        read(path)
    path.write_text(f"{line}\n{line[:-1]}{' ' * 3000}}}\n")
    monkeypatch.setattr(text_files, "LONGEST", 2000)
    with pytest.raises(EncoreError, match="line 2: longer than"):
        read(path)


def test_a_pair_of_surrogates_is_a_character(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text('{"a": "\\ud83d\\ude00"}\n')
    assert list(text_files.numbered_objects(path)) == [(1, {"a": "\U0001f600"})]


def test_a_line_of_columns_that_is_too_long_is_refused_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both limits are the same, so a line that fits is read though it begins in one block and ends in the next."""
    assert tsv.BYTES == text_files.LONGEST
    path = tmp_path / "file.tsv"
    monkeypatch.setattr(text_files, "LONGEST", 5000)
    monkeypatch.setattr(tsv, "BYTES", 5000)
    path.write_text("a\tb\n" * 100 + f"{'x' * 4000}\tb\n" * 3)
    assert sum(len(block) for block in tsv.read_tsv(path, ("one", "two"))) == 103
    path.write_text("a\tb\n" * 100 + f"{'x' * 12000}\tb\n" + "a\tb\n" * 9)
    with pytest.raises(EncoreError, match=r"file\.tsv, line 101: longer than"):
        list(tsv.read_tsv(path, ("one", "two")))

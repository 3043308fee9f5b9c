"""A good folder with anything done to its bytes: a collection whose counts add up, or one line with file and line."""

import json
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from encore.data.collection import Collection
from encore.datasets import kinds as collections
from encore.errors import EncoreError
from tests.support.small_beir import HEADER, fields

DOCUMENTS, QUERIES = 6, 5
FILES = ("corpus.jsonl", "queries.jsonl", "qrels/train.tsv", "qrels/test.tsv")
PLACE = re.compile(
    r"(, line \d+: )|(, after line \d+: )|( has no judgment)|(holds no document)|(judges nothing)|(also train)"
    r"|(has no grade above 0)"
)


def good(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"d{number}", "title": "Été", "text": f"text {number}"} for number in range(DOCUMENTS)]
    queries = [{"_id": f"q{number}", "text": f"what is {number}?"} for number in range(QUERIES)]
    judged = {"train": range(3), "test": range(3, QUERIES)}
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    for split, numbers in judged.items():
        lines = [HEADER, *(f"q{number}\td{number}\t{number % 3}" for number in numbers)]
        (folder / f"qrels/{split}.tsv").write_text("".join(line + "\n" for line in lines))
    return folder


@st.composite
def mutations(draw):
    """A file, and what is done to it."""
    kinds = ("flip", "cut", "drop", "repeat", "swap", "insert")
    return (
        draw(st.sampled_from(FILES)),
        draw(st.sampled_from(kinds)),
        draw(st.integers(0, 999)),
        draw(st.binary(max_size=4)),
    )


def mutate(path: Path, kind: str, where: int, given_bytes: bytes) -> None:
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    place, row = where % (len(content) + 1), where % max(len(lines), 1)
    if kind == "flip":
        content = content[:place] + (given_bytes[:1] or b"\0") + content[place + 1 :]
    elif kind == "cut":
        content = content[:place]
    elif kind == "insert":
        content = content[:place] + given_bytes + content[place:]
    elif lines and kind == "drop":
        content = b"".join(lines[:row] + lines[row + 1 :])
    elif lines and kind == "repeat":
        content = b"".join([*lines, lines[row]])
    elif lines:
        content = b"".join(lines[row:] + lines[:row])
    path.write_bytes(content)


def rows_of(path: Path) -> int:
    """Lines up to the last one that is not blank."""
    lines = path.read_bytes().split(b"\n")
    while lines and not lines[-1].strip(b" \t\r"):
        lines.pop()
    return len(lines)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@example([("corpus.jsonl", "repeat", 0, b""), ("queries.jsonl", "repeat", 0, b"")], True)
@given(st.lists(mutations(), min_size=1, max_size=3), st.booleans())
def test_a_damaged_folder_is_built_with_counts_that_add_up_or_refused_in_one_line(done, lenient):
    with TemporaryDirectory() as place:
        folder, output = good(Path(place) / "in"), Path(place) / "out"
        for name, *how in done:
            mutate(folder / name, *how)
        choices = {"unknown_judgments": "drop", "empty_documents": "drop"} if lenient else {}
        refused = None
        try:
            counts = collections.build_collection("beir", fields(folder, **choices).resolve(), output, source=folder)
        except EncoreError as error:
            refused = str(error)
        if refused is None:
            reconcile(folder, Collection(output), counts)
        else:
            assert PLACE.search(refused), refused
            assert "\n" not in refused
        assert not list(output.rglob("*.tmp"))
        assert not list(output.rglob(".*"))
        shutil.rmtree(output, ignore_errors=True)


def reconcile(folder: Path, collection: Collection, counts: dict) -> None:
    """Every line that was read is there again, or counted."""
    read = rows_of(folder / "corpus.jsonl") + rows_of(folder / "queries.jsonl")
    dropped = ("empty_documents", "empty_queries", "repeated_rows")
    assert read == counts["passages"] + counts["queries"] + sum(counts.get(name, 0) for name in dropped)
    assert len(list(collection.corpus())) == counts["passages"]
    assert len(collection.queries()) == counts["queries"]
    asked = set()
    for split, found in counts["splits"].items():
        left_out = ("repeated", "of_empty_documents", "of_unknown_queries", "of_unknown_documents")
        trec = (folder / f"qrels/{split}.tsv").read_bytes().split(b"\n")[0].count(b"\t") != 2
        lines = rows_of(folder / f"qrels/{split}.tsv") - (not trec)
        assert lines == found["judgments"] + sum(found.get(name, 0) for name in left_out)
        grades = collection.qrels(split)
        assert sum(map(len, grades.values())) == found["judgments"]
        asked |= grades.keys()
    assert counts.get("unjudged_queries", 0) == counts["queries"] - len(asked)

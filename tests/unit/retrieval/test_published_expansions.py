"""Predicted queries that others published: how they are read, and what is refused of them."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from encore.config.systems import read_expansion
from encore.errors import EncoreError
from encore.retrieval.doc2query import predictions

NAMES = ["a", "b", "c"]
PUBLISHED = {
    "p.jsonl": "".join(json.dumps({"id": n, "predicted_queries": [f"{n} one", f"{n} two"]}) + "\n" for n in NAMES),
    "p.tsv": "".join(f"{n}\t{n} one {n} two\n" for n in NAMES),
    "p.txt": "".join(f"{n} one {n} two\n" for n in NAMES),
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(name: str, text: str) -> Path:
    path = Path(name)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", [*PUBLISHED, *(f"{name}.gz" for name in PUBLISHED)])
def test_published_predictions_are_read(name: str) -> None:
    found = list(predictions.predicted(written(name, PUBLISHED[name.removesuffix(".gz")]), NAMES))
    assert [passage for passage, _ in found] == NAMES
    assert [" ".join(queries) for _, queries in found] == [f"{n} one {n} two" for n in NAMES]


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: lines[:2], "ends after line 2, and passage c has no predictions"),
        (lambda lines: [*lines, lines[-1]], "line 4: the corpus has 3 passages"),
        (lambda lines: [], "ends after line 0, and passage a has no predictions"),
    ],
)
def test_another_number_of_lines_is_refused_with_its_line(name: str, change, says: str) -> None:
    text = "".join(change(PUBLISHED[name].splitlines(keepends=True)))
    with pytest.raises(EncoreError, match=says) as refused:
        list(predictions.predicted(written(name, text), NAMES))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("p.jsonl", '{"id": "a", "predicted_queries": []}\n{"id": "c"', r"p\.jsonl, line 2: not JSON that can be read"),
        ("p.jsonl", '{"id": "a"}\n', "line 1: no predictions .*predicted_queries"),
        ("p.jsonl", '{"id": "a", "predicted_queries": "one"}\n', "line 1: .*not a list of texts"),
        ("p.jsonl", '{"id": "b", "predicted_queries": []}\n', "line 1: it is about passage b, and the corpus has a"),
        ("p.tsv", "a\tone\nb two\n", "line 2: no predictions"),
        ("p.tsv", "a\tone\nc\ttwo\n", "line 2: it is about passage c, and the corpus has b"),
        ("p.csv", "a,one\n", r"read from \.jsonl, \.tsv, \.txt"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(name: str, text: str, says: str) -> None:
    with pytest.raises(EncoreError, match=says) as refused:
        list(predictions.predicted(written(name, text), NAMES))
    assert "\n" not in str(refused.value)


def test_damaged_packing_is_said() -> None:
    path = written("p.txt.gz", "".join(PUBLISHED["p.txt"]))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(EncoreError, match=r"p\.txt\.gz, after line \d+: cannot be read"):
        list(predictions.predicted(path, NAMES))


def test_a_missing_file_of_predictions_is_said_when_planning() -> None:
    with pytest.raises(EncoreError, match=r"nowhere\.txt is missing: the predicted queries; download"):
        read_expansion({"kind": "published", "path": "nowhere.txt"}).content()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"kind": "t6"}, "unknown kind of expansion 't6'; did you mean t5"),
        ({"kind": "t5", "collection": "c", "steps": 1, "batch": 1, "learning_rate": 1}, "either `checkpoint` or"),
    ],
)
def test_a_wrong_entry_is_refused(fields: dict, says: str) -> None:
    with pytest.raises((EncoreError, ValueError), match=says):
        read_expansion(fields)


def test_reading_predictions_is_cheap() -> None:
    """Neither indexing nor reading what others predicted loads torch or transformers."""
    heavy = "('torch', 'transformers')"
    code = "import sys, encore.retrieval.doc2query.predictions; "
    code += f"print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

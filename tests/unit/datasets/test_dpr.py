"""DPR's files as a collection: passages, questions with passages, questions that answers judge; and what is refused."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from encore.data.collection import Collection, topics
from encore.datasets import kinds
from encore.datasets.dpr import elements
from encore.errors import EncoreError
from encore.finetuning.negatives.mining import HEADER
from encore.storage.files import open_text
from tests.support import small_dpr
from tests.support.small_dpr import fields, training


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return small_dpr.write(tmp_path / "files")


def made(files: Path, folder: Path, **changes: Any) -> tuple[Collection, dict[str, Any]]:
    counts = kinds.build_collection("dpr", fields(files, **changes).resolve(), folder, source=files)
    return Collection(folder), counts


def test_passages_lose_their_quotes_and_keep_their_titles(files: Path, tmp_path: Path) -> None:
    collection, counts = made(files, tmp_path / "c")
    rows = {row["_id"]: row for row in collection.corpus()}
    assert rows["1"] == {"_id": "1", "title": "Aaron", "text": 'Aaron "the first" said: No.'}
    assert list(rows) == ["1", "2", "3", "5", "6"]
    assert (counts["files"]["passages"], counts["files"]["empty"]) == (6, 1)


@pytest.mark.parametrize("key", ["passage_id", "psg_id"])
def test_positives_have_grades_and_hard_negatives_stay_beside(tmp_path: Path, key: str) -> None:
    files = small_dpr.write(tmp_path / "files", key)
    collection, counts = made(files, tmp_path / "c")
    assert collection.qrels("train") == {"train-0": {"1": 2, "6": 1}, "train-2": {"5": 1}}
    assert collection.qrels("valid") == {"valid-0": {"1": 2, "6": 1}}
    assert collection.answers()["train-0"] == ["Aaron"]
    assert collection.queries()["train-1"] == "what never"
    with open_text(collection.folder / "negatives/train.tsv.gz") as file:
        assert file.read().splitlines() == [HEADER, "train-0\t3\t1", "train-0\t5\t2", "train-1\t2\t1"]
    assert counts["files"]["without_positive.train"] == 1


def test_test_questions_have_answers_and_no_judgments(files: Path, tmp_path: Path) -> None:
    collection, counts = made(files, tmp_path / "c")
    assert collection.query_ids("test") == topics(collection, "test") == ["test-0", "test-1", "test-2"]
    assert collection.splits() == ["test", "train", "valid"]
    assert collection.queries()["test-0"] == "who was ada's mother", "DPR straightens apostrophes of questions"
    assert collection.queries()["test-1"] == 'when was "Turing" born'
    answers = collection.answers()
    assert [answers[f"test-{n}"] for n in range(3)] == [["Anne Isabella", "Lady Byron"], ["1912"], ["nowhere at all"]]
    assert counts["splits"]["test"] == {"queries": 3}
    with pytest.raises(EncoreError, match="has no split 'test'"):
        collection.qrels("test")


def test_a_source_is_known_by_its_published_identity_and_needs_no_file(tmp_path: Path, files: Path) -> None:
    named = fields(None, "dpr:")
    assert named.made_from.sources == ["dpr"]
    assert "content" not in named.resolve()
    counts = kinds.build_collection("dpr", named.resolve(), tmp_path / "c", sources={"dpr": files})
    assert counts["passages"] == 5
    with pytest.raises(EncoreError, match="needs --sources, the folder of dpr"):
        kinds.build_collection("dpr", named.resolve(), tmp_path / "d")


def test_ones_own_files_are_known_by_their_bytes(files: Path, tmp_path: Path) -> None:
    before = fields(files).resolve()
    (files / "test.qa.csv").write_text("who\t['he']\n")
    assert fields(files).resolve() != before
    with pytest.raises(EncoreError, match="is not what was planned with"):
        kinds.build_collection("dpr", before, tmp_path / "c", source=files)
    (files / "test.qa.csv").unlink()
    with pytest.raises(EncoreError, match=r"test\.qa\.csv is missing; put it there"):
        fields(files).resolve()
    with pytest.raises(EncoreError, match="names no source"):
        fields(None).resolve()


@pytest.mark.parametrize("what", ["passages", "queries.train", "judgments.valid", "negatives.train", "queries.test"])
def test_other_counts_than_published_are_refused(files: Path, tmp_path: Path, what: str) -> None:
    counted = {"passages": 6, "queries.train": 3, "judgments.valid": 2, "negatives.train": 3, "queries.test": 3}
    made(files, tmp_path / "c", expected={what: counted[what]})
    with pytest.raises(EncoreError, match=rf"{counted[what]} {what} were read, 99 are published"):
        made(files, tmp_path / "d", expected={what: 99})


def test_only_what_is_counted_can_be_expected() -> None:
    with pytest.raises(ValueError, match=r"expected has 'queries\.dev', which is not counted"):
        fields(None, "dpr:", expected={"queries.dev": 1})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["who\t['he']", "who no answers"], r"test\.qa\.csv, line 2: 1 columns"),
        (["who\t['he']\tmore"], r"line 1: 3 columns"),
        (["who\t['he'"], r"line 1: \"\['he'\" is not a Python list"),
        (["who\t__import__('os')"], "line 1: .* is not a Python list"),
        (["who\t'he'"], "line 1: the answers of 'who' are not a list"),
        (["who\t[]"], "line 1: 'who' has no answer"),
        (["who\t['  ']"], "line 1: 'who' has no answer"),
        (["who\t{['he']}"], "line 1: .* is not a Python list of answers"),
        (["who\t['\\ud800']"], "line 1: 'who' or an answer to it holds half of a surrogate pair"),
        (["\t['he']"], "line 1: the question is empty"),
        (["a\t['b']", "\"who\t['he']", "c\t['d']"], "line 2: cannot be split into columns"),
    ],
)
def test_wrong_questions_are_named_by_their_line(files: Path, tmp_path: Path, lines: list[str], said: str) -> None:
    (files / "test.qa.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(EncoreError, match=said):
        made(files, tmp_path / "c")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id\ttext\ttitle\n1\ta\tb\n1\tc\td\n", r"psgs_w100\.tsv\.gz, line 3: id '1' occurs twice"),
        ("id\ttext\ttitle\n1\ta\n", "line 2: 2 columns"),
        ('id\ttext\ttitle\n1\t"a" b\tc\n', "line 2: cannot be split into columns"),
        ('id\ttext\ttitle\n1\t"a\tc\n2\tb\tc\n', "line 2: cannot be split into columns"),
        ("1\ta\tb\n", "line 1: the header must be id, text and title"),
        (f"id\ttext\ttitle\n1\t{'a' * 200_000}\tb\n", "line 2: cannot be split into columns .field larger"),
    ],
)
def test_wrong_passages_are_named_by_their_line(files: Path, tmp_path: Path, text: str, said: str) -> None:
    (files / "psgs_w100.tsv.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(EncoreError, match=said):
        made(files, tmp_path / "c")


def test_a_file_that_is_no_utf8_is_named_by_its_line(files: Path, tmp_path: Path) -> None:
    (files / "test.qa.csv").write_bytes(b"who\t['he']\r\nw\xff\t['x']\n")
    with pytest.raises(EncoreError, match="line 2: not UTF-8"):
        made(files, tmp_path / "c")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"positive_ctxs": [{"title": "no id"}]}, r"train\.json, element 1: needs .question."),
        ({"answers": None}, "element 1: the answers of 'who said no' are not a list"),
        ({"question": ""}, "element 1: the question is empty"),
        (
            {"positive_ctxs": [{"passage_id": "99", "score": 1}]},
            "'99' is not in the corpus; add it there, or remove the judgment$",
        ),
    ],
)
def test_wrong_training_questions_are_named(files: Path, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    (files / "train.json").write_text(json.dumps([training()[0] | change], indent=4))
    with pytest.raises(EncoreError, match=said):
        made(files, tmp_path / "c")


def test_a_part_keeps_the_questions_that_answers_judge(files: Path, tmp_path: Path) -> None:
    base, _ = made(files, tmp_path / "c")
    chosen = {"passages": 4, "train_queries": 1, "articles": None, "salt": "s", "splits": ["test", "train"]}
    counts = kinds.build_collection(
        "subset", {"impl": 1, "kind": "subset", **chosen}, tmp_path / "part", base=base.folder
    )
    part = Collection(tmp_path / "part")
    assert part.query_ids("test") == base.query_ids("test")
    assert counts["splits"] == {
        "test": {"queries": 3},
        "train": {"queries": 1, "judgments": counts["splits"]["train"]["judgments"]},
    }
    assert set(part.answers()) == {*base.query_ids("test"), *part.query_ids("train")}
    assert counts["passages"] == 4


# A JSON array, an element after another


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_an_array_is_read_as_it_was_written(tmp_path: Path, name: str, indent: int | None) -> None:
    rows = [
        {"n": n, "half": n + 0.5, "text": "[], {}\n\u00e9\U0001f600" * (n % 200), "none": None} for n in range(2000)
    ]
    text = json.dumps(rows, indent=indent, ensure_ascii=bool(indent)).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    found = list(elements(tmp_path / name))
    assert found == rows
    assert {type(row["n"]) for row in found} == {int}, "an id that is a number is written as it was"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a JSON array is expected"),
        ('{"item": {"a": 1}}', "a JSON array is expected"),
        ('[\n{"a": 1},\n{"b": ', "element 2: damaged or cut short .parse error: premature EOF."),
        ('[\n{"a": 1},', "element 2: damaged or cut short"),
        ('[\n{"a": 1}\n{"b": 2}]', "element 2: damaged or cut short"),
        ("[\n1]", "element 1: an object is expected"),
        ('[[{"a": 1}]]', "element 1: an object is expected"),
        ('[{"a": 1}]\n[]', "element 2: damaged or cut short .parse error: trailing garbage."),
        ('[{"a": nope}]', "element 1: damaged or cut short"),
        ('[{"a": 1}, {"a": ' + "[" * 100_000, "element 2: damaged or cut short .nested more than 100 deep"),
        ('[{"a": 1}, ' + '{"a": ' * 100_000, "element 2: damaged or cut short .nested more than 100 deep"),
    ],
)
def test_a_damaged_array_is_refused_with_the_element(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(EncoreError, match=message) as caught:
        list(elements(tmp_path / "a.json"))
    assert "\n" not in str(caught.value)


def test_an_array_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'[{"a": "\xff"}]')
    with pytest.raises(EncoreError, match=r"element 1: damaged or cut short \(.*invalid bytes in UTF8 string\.\)"):
        list(elements(tmp_path / "a.json"))


@pytest.mark.parametrize("damage", [lambda packed: packed[:-20], lambda packed: packed[:20] + b"?" + packed[21:]])
def test_a_damaged_archive_of_an_array_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    packed = gzip.compress(json.dumps([{"n": n} for n in range(100_000)]).encode())
    (tmp_path / "a.json.gz").write_bytes(damage(packed))
    with pytest.raises(EncoreError, match=r"a\.json\.gz, element \d+: damaged or cut short"):
        list(elements(tmp_path / "a.json.gz"))


def test_no_more_is_read_than_the_next_elements(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + ",".join(['{"a": 1}'] * 10_000) + ",oh")
    found = elements(path)
    assert [next(found) for _ in range(5)] == [{"a": 1}] * 5

"""ReQA of your own passages: which are candidates, which are distractors, and rows that are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from encore.data.collection import Collection
from encore.datasets import kinds
from encore.datasets.prepared_reqa import PreparedReqaFields
from encore.errors import EncoreError


def row(number: int, *asked: int) -> dict[str, Any]:
    return {
        "_id": f"p{number}",
        "title": f"Town {number}",
        "sentences": [f"Town {number} is old.", f"It has {number} gates."],
        "questions": [{"text": f"What of town {number} is {each}?", "sentence": each} for each in asked],
    }


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "passages.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


def fields(path: Path, **given: Any) -> PreparedReqaFields:
    return PreparedReqaFields.model_validate(
        {"kind": "prepared-reqa", "path": str(path), "ratios": [50], "draws": 1, **given}
    )


def build(folder: Path, given: PreparedReqaFields) -> Collection:
    spec = json.loads(json.dumps({"impl": 1, **given.resolve()}))
    kinds.build_collection("prepared-reqa", spec, folder, source=Path(given.path))
    return Collection(folder)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "source", [row(number, *range(number % 3)) for number in range(12)])


def test_candidates_are_the_sentences_of_passages_that_are_asked_about(tmp_path: Path, source: Path) -> None:
    (source / "statistics.json").write_text('{"authors": 2}')
    found = build(tmp_path / "out", fields(source))
    assert {name.partition("#")[0] for name, _ in found.texts()} == {f"p{n}" for n in range(12) if n % 3}
    assert next(found.texts()) == ("p1#0", ("Town 1 is old.", "Town 1 Town 1 is old. It has 1 gates."))
    queries = found.queries()
    gold = {queries[query]: grades for part in ("train", "valid", "test") for query, grades in found.qrels(f"{part}-50").items()}  # fmt: skip  # noqa: E501
    assert gold["What of town 2 is 1?"] == {"p2#1": 1}
    assert set(found.clusters().values()) == {f"Town {n}" for n in range(12) if n % 3}
    assert json.loads((tmp_path / "out/statistics.json").read_text())["authors"] == 2


def test_distractors_are_of_another_folder_or_of_what_nobody_asks_about(tmp_path: Path, source: Path) -> None:
    write(tmp_path / "others", [row(number) for number in range(100, 120)])
    plain = build(tmp_path / "plain", fields(tmp_path, folder="source"))
    known = {name for name, _ in plain.texts()}
    for folder, given in (("others", {"distractors_from": "others"}), ("source", {})):
        found = build(tmp_path / f"open-{folder}", fields(tmp_path, folder="source", distractors=6, **given))
        added = {name for name, _ in found.texts()} - known
        assert len(added) == 6
        assert all((int(name[1:].partition("#")[0]) >= 100) == (folder == "others") for name in added)
        assert all(found.qrels(split) == plain.qrels(split) for split in plain.splits())


def test_collections_with_other_distractors_ask_the_same_questions(tmp_path: Path, source: Path) -> None:
    one = fields(tmp_path, folder="source")
    assert one.questions_identity == fields(tmp_path, folder="source", distractors=6).questions_identity
    assert one.questions_identity != fields(source).questions_identity
    assert one.questions_identity != fields(tmp_path, folder="source", ratios=[10]).questions_identity
    assert one.resolve() != fields(tmp_path, folder="source", distractors=6).resolve()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"sentences": "One."}, "line 13: sentences: Input should be a valid tuple; correct the row"),
        ({"_id": "p3"}, "line 13: id 'p3' occurs twice; remove one of the rows"),
        ({"_id": 7}, "line 13: _id: Input should be a valid string"),
        ({"questions": [{"text": "What?", "sentence": 2}]}, "line 13: sentence 2 answers, and there are 2, counted"),
        ({"questions": [{"text": "What?"}]}, r"line 13: questions\.0\.sentence: Field required"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(tmp_path: Path, source: Path, wrong: dict[str, Any], says: str) -> None:
    with (source / "passages.jsonl").open("a") as file:
        file.write(json.dumps({**row(12, 1), **wrong}) + "\n")
    with pytest.raises(EncoreError, match=says):
        build(tmp_path / "out", fields(source))

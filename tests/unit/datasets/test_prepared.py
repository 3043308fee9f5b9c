"""A collection in the common form, from a folder or an archive: the same bytes again, and what is refused."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from encore.config.datasets import KnownSize
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.text_fields import Form
from encore.datasets import kinds
from encore.datasets.archives import EMBEDDED_FOLDER
from encore.datasets.prepared import PreparedFields
from encore.errors import EncoreError
from encore.storage.files import open_text, write_jsonl

SPLITS = {"test": {"role": "test"}}


def write_one(folder: Path) -> Path:
    """A collection with all files that one may have."""
    write_collection(
        folder,
        [{"_id": f"d{n}", "title": "", "url": "a/b", "text": f"text {n}"} for n in range(3)],
        [{"_id": f"q{n}", "text": f"query {n}", "metadata": {"cluster": "c"}} for n in range(3)],
        {"train": [Judgment("q0", "d0", 3), Judgment("q0", "d2", 1)], "test": [Judgment("q1", "d1", 1)], "graded": []},
        [{"_id": "a", "title": "A", "sections": [{"title": "S", "sentences": ["One.", "Two."]}], "links": []}],
        statistics={"modules": 7},
        form=Form((("title", "url", "text"),)),
        answers=[{"_id": "q2", "answers": ["two"]}],
        questions={"asked": ["q2"]},
    )
    with_negatives = folder / "negatives/train.tsv.gz"
    write_jsonl(with_negatives, [])
    (folder / "manifest.json").write_text("{}")
    return folder


def archived(archive: Path, **folders: Path) -> Path:
    """The folders in an archive, their rows unpacked."""
    with tarfile.open(archive, "w:xz") as packed:
        for name, folder in folders.items():
            for path in (path for path in sorted(folder.rglob("*")) if path.is_file()):
                inside = f"{name}/{path.relative_to(folder)}"
                if path.name.endswith(".jsonl.gz"):
                    plain = archive.parent / "plain"
                    with open_text(path) as file:
                        plain.write_text(file.read(), encoding="utf-8")
                    path, inside = plain, inside.removesuffix(".gz")
                packed.add(path, inside)
    return archive


def fields(path: Path | str, folder: str = "", **others: Any) -> PreparedFields:
    return PreparedFields.model_validate(
        {"kind": "prepared", "path": str(path), "folder": folder, "splits": SPLITS, **others}
    )


def build(folder: Path, given: PreparedFields) -> Collection:
    kinds.build_collection("prepared", {"impl": 1, **given.resolve()}, folder, source=Path(given.path))
    return Collection(folder)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


@pytest.mark.parametrize("packed", [False, True])
def test_what_comes_out_is_what_went_in(tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("extract", "extractall"):  # whose filters Python 3.11.2 lacks
        monkeypatch.delattr(tarfile.TarFile, name)
    one = write_one(tmp_path / "one")
    given = fields(archived(tmp_path / "a.tar.xz", one=one), "one") if packed else fields(tmp_path, "one")
    found = build(tmp_path / "out", given)
    assert len(files(one)) == 11
    assert files(found.folder) == files(one)


def test_a_folder_is_known_by_its_files_and_an_archive_as_a_whole(tmp_path: Path) -> None:
    one = write_one(tmp_path / "one")
    in_a_folder = fields(tmp_path, "one").resolve()
    packed = fields(archived(tmp_path / "a.tar.xz", one=one, other=one), "one").resolve()
    assert set(packed["content"]) == {"archive"}
    (one / "manifest.json").write_text('{"made": "again"}')
    assert fields(tmp_path, "one").resolve() == in_a_folder
    assert fields(tmp_path / "a.tar.xz", "other").resolve() != packed
    (one / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td0\t1\n")
    assert fields(tmp_path, "one").resolve() != in_a_folder
    assert fields(archived(tmp_path / "a.tar.xz", one=one, other=one), "one").resolve() != packed


def test_counts_of_the_source_stay_and_ours_are_counted(tmp_path: Path) -> None:
    one = write_one(tmp_path / "one")
    (one / "statistics.json").write_text('{"passages": 99, "by_author": {"Ann": 3}}')
    build(tmp_path / "out", fields(one))
    counts = json.loads((tmp_path / "out/statistics.json").read_text())
    assert (counts["passages"], counts["by_author"]) == (3, {"Ann": 3})


def test_preflight_takes_the_counts_of_a_folder_and_nothing_of_an_archive(tmp_path: Path) -> None:
    known = fields(write_one(tmp_path / "one")).known_size()
    assert (known.passages, known.articles) == (3, 1)
    assert known.queries == {"train": 1, "test": 1, "graded": 0, "asked": 1}
    assert fields(archived(tmp_path / "a.tar.xz", one=tmp_path / "one")).known_size() == KnownSize()
    for text in ('{"passages": 1}', '{"passages": "x", "splits": {}}', "[]", "{", "[" * 100_000):
        (tmp_path / "one/statistics.json").write_text(text)
        assert fields(tmp_path / "one").known_size() == KnownSize()


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "articles.jsonl", "answers.jsonl"])
@pytest.mark.parametrize("text", ["[" * 100_000, "7", "{"])
def test_rows_of_another_form_are_refused_with_their_place(name: str, text: str, tmp_path: Path) -> None:
    one = write_one(tmp_path / "one")
    (one / f"{name}.gz").unlink()
    (one / name).write_text(text)
    with pytest.raises(EncoreError, match=rf"{name}, line 1: (not JSON that can be read|needs an object)"):
        build(tmp_path / "out", fields(one))


@pytest.mark.parametrize(
    ("name", "row", "says"),
    [
        ("corpus.jsonl", {"text": "a"}, "_id: Field required"),
        ("corpus.jsonl", {"_id": 5, "text": "a"}, "_id: Input should be a valid string"),
        ("queries.jsonl", {"_id": "q"}, "text: Field required"),
        ("queries.jsonl", {"_id": "q", "text": "a", "metadata": 5}, "metadata: Input should be"),
        ("articles.jsonl", {"_id": "a", "title": "A", "links": []}, "sections: Field required"),
        ("articles.jsonl", {"_id": "a", "title": "A", "sections": 5, "links": []}, "sections: Input should be"),
        ("answers.jsonl", {"_id": "q"}, "answers: Field required"),
    ],
)
def test_rows_of_other_fields_are_refused_with_their_place(
    name: str, row: dict[str, Any], says: str, tmp_path: Path
) -> None:
    one = write_one(tmp_path / "one")
    (one / f"{name}.gz").unlink()
    (one / name).write_text(json.dumps(row))
    with pytest.raises(EncoreError, match=rf"{name}, line 1: {says}.*; correct the row"):
        build(tmp_path / "out", fields(one))


@pytest.mark.parametrize("name", ["statistics.json", "form.json"])
@pytest.mark.parametrize("text", ["[" * 100_000, "7", "{"])
def test_a_file_next_to_them_that_is_not_an_object_is_refused(name: str, text: str, tmp_path: Path) -> None:
    one = write_one(tmp_path / "one")
    (one / name).write_text(text)
    with pytest.raises(EncoreError, match=rf"{name} is (not a JSON object|damaged) \("):
        build(tmp_path / "out", fields(one))


def test_what_is_missing_changed_or_damaged_is_refused(tmp_path: Path) -> None:
    one = write_one(tmp_path / "one")
    with pytest.raises(EncoreError, match=r"nowhere/x is missing or empty; name another `path` or `folder`"):
        fields(tmp_path / "nowhere", "x").resolve()
    archive = archived(tmp_path / "a.tar.xz", one=one, two=one)
    with pytest.raises(EncoreError, match=r"a\.tar\.xz does not hold three; correct `members:` or `folder:`"):
        build(tmp_path / "out", fields(archive, "three"))
    planned = fields(one).resolve()
    (one / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n")
    with pytest.raises(EncoreError, match="not what was planned with: it has changed since"):
        kinds.build_collection("prepared", planned, tmp_path / "out", source=one)
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(EncoreError, match=r"a\.tar\.xz is not a tar archive or is damaged"):
        build(tmp_path / "out", fields(archive, "one"))


def test_rows_and_judgments_are_checked_as_those_of_other_kinds(tmp_path: Path) -> None:
    one = write_one(tmp_path / "one")
    (one / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td9\t1\n")
    with pytest.raises(EncoreError, match="document 'd9' is not in the corpus"):
        build(tmp_path / "out", fields(one))
    (one / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\n")
    with pytest.raises(EncoreError, match=r"test\.tsv, line 2: 2 fields, 3 separated by tabs are expected"):
        build(tmp_path / "out", fields(one))


def test_no_file_of_an_archive_leaves_the_folder_it_is_unpacked_to(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.xz", "w:xz") as packed:
        packed.add(__file__, "one/../../../escaped.py")
    with pytest.raises(EncoreError, match=r"a\.tar\.xz names .*which is outside of its folder"):
        build(tmp_path / "out", fields(tmp_path / "a.tar.xz", "one"))


def test_shipped_files_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = fields("{embedded}/pydocs.tar.xz", "pydocs-numpy")
    spec = given.resolve()
    monkeypatch.chdir(tmp_path)
    assert given.resolve() == spec
    assert str(EMBEDDED_FOLDER) not in json.dumps(spec)
    assert (given.embedded, given.made_from.path, given.missing) == (True, None, None)
    assert (fields(tmp_path).embedded, fields(tmp_path).made_from.path) == (False, str(tmp_path))
    assert kinds.build_collection("prepared", spec, tmp_path / "out")["passages"] == 810

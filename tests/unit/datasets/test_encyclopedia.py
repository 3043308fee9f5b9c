"""Articles in lines of JSON become the common form: links stand where their target is named."""

import json
import lzma
from pathlib import Path

import pytest
from pydantic import ValidationError

from encore.data.collection import Collection
from encore.datasets import kinds
from encore.datasets.encyclopedia import EncyclopediaFields
from encore.datasets.reqa.published import passages_of
from encore.errors import EncoreError


def article(name: str, *sections: tuple[str, list[str]], links: tuple[str, ...] = ()) -> dict:
    written = [{"heading": heading, "paragraphs": paragraphs} for heading, paragraphs in sections]
    return {"id": name, "title": name.replace("_", " "), "categories": [], "sections": written, "links": list(links)}


ARTICLES = [
    article(
        "Big_cat",
        ("", ["A big cat is an animal. It roars.", "It is no lion cub."]),
        ("Lists", []),
        ("Kinds", ["A Lion is one. A million are dead."]),
        links=("Lion", "Mill", "Dog", "Nowhere", "Big_cat", "Empty", "Lion"),
    ),
    article("Lion", ("", []), ("Mane", ["It has a mane."]), links=("Big_cat",)),
    article("Mill", ("", ["Corn is ground."])),
    article("Dog", ("", ["The big cat’s enemy."]), links=("Big_cat",)),
    article("Empty", ("", []), ("See also", [" "])),
]


def write(path: Path, rows: list[dict] | None = None) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in (ARTICLES if rows is None else rows))
    path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())
    return path


def build(path: Path, output: Path, **others) -> Collection:
    fields = EncyclopediaFields.model_validate({"kind": "encyclopedia", "path": str(path), **others})
    kinds.build_collection("encyclopedia", fields.resolve() | fields.language_spec, output, source=path)
    return Collection(output)


def refusal(path: Path, output: Path) -> str:
    with pytest.raises(EncoreError) as caught:
        build(path, output)
    return str(caught.value)


@pytest.fixture(scope="module")
def collection(tmp_path_factory) -> Collection:
    home = tmp_path_factory.mktemp("encyclopedia")
    return build(write(home / "articles.jsonl.xz"), home / "out")


def test_articles_have_sections_and_sentences(collection):
    rows = {row["_id"]: row for row in collection.articles()}
    assert list(rows) == ["Big_cat", "Lion", "Mill", "Dog"]
    assert rows["Big_cat"]["title"] == "Big cat"
    assert rows["Big_cat"]["sections"] == [
        {"title": "", "sentences": ["A big cat is an animal.", "It roars.", "It is no lion cub."]},
        {"title": "Kinds", "sentences": ["A Lion is one.", "A million are dead."]},
    ]
    assert [each["sentences"] for each in rows["Lion"]["sections"]] == [[], ["It has a mane."]]


def test_a_link_stands_where_the_title_of_its_target_is_said(collection):
    """A mill is in no million, and nothing says Dog."""
    found = {row["_id"]: row["links"] for row in collection.articles()}
    assert found["Big_cat"] == [{"section": 0, "to": "Lion", "anchor": 0, "origin": "link"}]
    assert found["Dog"] == [{"section": 0, "to": "Big_cat", "anchor": 0, "origin": "link"}]
    counts = json.loads((collection.folder / "statistics.json").read_text())
    assert counts["links_removed"] == {"unsaid": 3, "missing": 2, "self": 1}
    assert (counts["articles"], counts["articles_without_text"], counts["links"]) == (4, 1, 2)


def test_sentences_end_by_the_rules_of_the_language(tmp_path):
    path = write(tmp_path / "articles.jsonl", [article("Chat", ("", ["猫。狗。"]))])
    found = build(path, tmp_path / "out", language="zh")
    assert [section["sentences"] for section in next(found.articles())["sections"]] == [["猫。", "狗。"]]


def test_it_has_articles_alone(collection):
    assert list(collection.corpus()) == []
    cut = [row["_id"] for row in passages_of(collection)]
    assert cut == ["Big_cat-0", "Big_cat-1", "Lion-0", "Mill-0", "Dog-0"]


def test_half_a_character_is_refused_in_one_line(tmp_path):
    article = {**ARTICLES[2], "title": "\ud83d"}
    (tmp_path / "a.jsonl").write_text(json.dumps(article) + "\n")
    with pytest.raises(EncoreError, match="half of a surrogate pair"):
        build(tmp_path / "a.jsonl", tmp_path / "out")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[]", "needs an object"),
        ("{}", 'needs "id" and "title"'),
        (json.dumps({**ARTICLES[2], "id": 3}), 'needs "id" and "title"'),
        (json.dumps({**ARTICLES[2], "links": [3]}), 'needs "id" and "title"'),
        (json.dumps({**ARTICLES[2], "sections": [{"heading": "x"}]}), 'needs "id" and "title"'),
        (json.dumps({**ARTICLES[2], "sections": [{"heading": "x", "paragraphs": [1]}]}), 'needs "id" and "title"'),
        (json.dumps(ARTICLES[0]), "id 'Big_cat' occurs twice"),
    ],
)
def test_wrong_lines_are_named(tmp_path, line, said):
    path = write(tmp_path / "a.jsonl", ARTICLES[:2])
    path.write_text(path.read_text() + line + "\n")
    assert f"a.jsonl, line 3: {said}" in refusal(path, tmp_path / "out")


def test_damaged_files_are_named(tmp_path):
    path = write(tmp_path / "a.jsonl.xz")
    path.write_bytes(path.read_bytes()[:-8])
    assert "a.jsonl.xz, after line" in refusal(path, tmp_path / "out")
    path = write(tmp_path / "b.jsonl")
    path.write_bytes(path.read_bytes() + b"caf\xe9\n")
    assert "b.jsonl, line 6: not UTF-8" in refusal(path, tmp_path / "out")


def test_a_file_that_is_not_there_can_be_planned_with_but_not_read(tmp_path):
    path = tmp_path / "a.jsonl"
    spec = EncyclopediaFields.model_validate({"kind": "encyclopedia", "path": str(path)}).resolve()
    with pytest.raises(EncoreError, match="is missing; put the articles there"):
        kinds.build_collection("encyclopedia", spec, tmp_path / "out", source=path)
    write(path)
    with pytest.raises(EncoreError, match="has changed since; run snakemake again"):
        kinds.build_collection("encyclopedia", spec, tmp_path / "out", source=path)


def test_it_has_no_splits():
    with pytest.raises(ValidationError):
        EncyclopediaFields.model_validate({"kind": "encyclopedia", "path": "a", "splits": {"test": {"role": "test"}}})


@pytest.mark.parametrize("name", ["articles.jsonl.xz", "articles.jsonl"])
def test_a_forecast_counts_the_file(name: str, tmp_path: Path) -> None:
    size = EncyclopediaFields(kind="encyclopedia", path=str(write(tmp_path / name))).known_size()
    assert (size.articles, size.sections) == (5, 5)
    assert size.words == (13 + 8 + 4 + 3 + 4) / 5
    assert EncyclopediaFields(kind="encyclopedia", path=str(tmp_path / "gone.jsonl")).known_size().articles is None


def test_a_forecast_reads_the_first_part_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(
        tmp_path / "articles.jsonl", [{**row, "id": f"{row['id']}{n}"} for n in range(4000) for row in ARTICLES]
    )
    monkeypatch.setattr("encore.datasets.source_files.READ", 400_000)
    part = EncyclopediaFields(kind="encyclopedia", path=str(path)).known_size()
    assert part.articles == pytest.approx(20_000, rel=0.2)
    assert part.articles != 20_000, "a part was read"

"""Books of sentences or of prose become articles; several collections become one, ids apart and links kept."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from encore.config.run import RunConfig
from encore.data.collection import Collection, write_collection
from encore.datasets.books import BooksFields
from encore.datasets.concat import ConcatFields
from encore.datasets.kinds import build_collection
from encore.datasets.reqa.published import passages_of
from encore.errors import EncoreError
from encore.plan.artifact import upstream
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from tests.support.shipped import run_file

NANO = run_file("nano")
LINES = "one .\ntwo .\n\nthree .\n\n\n\nfour .\r\n"


def fields(**changes: Any) -> BooksFields:
    return BooksFields.model_validate({"kind": "books", **changes})


def made(place: Path, own: Path, lines: str = "sentences", **most: int) -> Collection:
    read = fields(path=str(own), lines=lines)
    build_collection("books", read.resolve() | read.language_spec | most, place, source=own)
    return Collection(place)


def sentences(collection: Collection) -> dict[str, list[list[str]]]:
    return {row["_id"]: [section["sentences"] for section in row["sections"]] for row in collection.articles()}


@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
def test_a_blank_line_ends_a_section_and_two_a_book(ending: str, tmp_path: Path) -> None:
    own = tmp_path / f"books{ending}"
    own.write_bytes(gzip.compress(LINES.encode()) if ending.endswith("gz") else LINES.encode())
    collection = made(tmp_path / "made", own)
    assert sentences(collection) == {"0": [["one .", "two ."], ["three ."]], "1": [["four ."]]}
    assert [row["text"] for row in passages_of(collection)] == ["one . two .", "three .", "four ."]
    assert json.loads((tmp_path / "made" / "statistics.json").read_text())["books"] == 2


def test_a_copy_without_blank_lines_is_parted_by_count(tmp_path: Path) -> None:
    own = tmp_path / "books.txt"
    own.write_text("".join(f"sentence {number} .\n" for number in range(10)))
    found = sentences(made(tmp_path / "made", own, section_sentences=2, article_sentences=4))
    assert list(found) == ["0", "0.1", "0.2"]
    assert [len(section) for sections in found.values() for section in sections] == [2] * 5
    assert [each for sections in found.values() for section in sections for each in section] == [
        f"sentence {number} ." for number in range(10)
    ]


def test_a_folder_has_a_book_of_prose_in_each_file(tmp_path: Path) -> None:
    own = tmp_path / "gutenberg"
    own.mkdir()
    (own / "a.txt").write_text("It was a dark\nnight. It rained.\n\nNobody\nspoke.\n\n\n\nThe end.")
    (own / "b.txt").write_text("\n\nCall me Ishmael.\n")
    found = sentences(made(tmp_path / "made", own, lines="prose", section_sentences=2))
    assert found == {
        "0": [["It was a dark night.", "It rained."], ["Nobody spoke.", "The end."]],
        "1": [["Call me Ishmael."]],
    }


def test_prose_is_split_by_the_rules_of_its_language(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("वह घर गया। वह सोया।\n")
    found = {
        language: sentences(made(tmp_path / language, tmp_path / "a.txt", lines="prose", language=language))
        for language in ("en", "hi")
    }
    assert found == {"en": {"0": [["वह घर गया। वह सोया।"]]}, "hi": {"0": [["वह घर गया।", "वह सोया।"]]}}


def test_books_of_a_source_are_read_where_it_was_unpacked(tmp_path: Path) -> None:
    place = tmp_path / "bookcorpus-00000000"
    place.mkdir()
    (place / "bookcorpus.txt").write_text(LINES)
    (place / "manifest.json").write_text("{}")
    spec = fields(books="bookcorpus").resolve()
    assert build_collection("books", spec, tmp_path / "made", sources={"bookcorpus": place})["articles"] == 2
    with pytest.raises(EncoreError, match="needs --source"):
        build_collection("books", spec, tmp_path / "made")


def test_bad_books_are_refused(tmp_path: Path) -> None:
    own = tmp_path / "books.txt"
    own.write_bytes(b"good .\nb\xffd .\n")
    with pytest.raises(EncoreError, match=r"books\.txt, line 2: not UTF-8"):
        made(tmp_path / "made", own)
    own.write_text("\n\n")
    with pytest.raises(EncoreError, match="holds no article"):
        made(tmp_path / "made", own)
    planned = fields(path=str(own)).resolve()
    own.write_text("other .\n")
    with pytest.raises(EncoreError, match="is not what was planned with"):
        build_collection("books", planned, tmp_path / "made", source=own)
    (tmp_path / "empty").mkdir()
    with pytest.raises(EncoreError, match="has no text"):
        fields(path=str(tmp_path / "empty")).resolve()
    with pytest.raises(ValueError, match="either `books`, a source, or `path`"):
        fields()
    assert fields(path="data/none", access="buy some").missing == (
        "data/none is missing, which cannot be downloaded: buy some"
    )
    assert fields(path="data/none").resolve()["content"] == {"absent": "none"}


def part(place: Path, to: str) -> Path:
    article = {"title": "T", "sections": [{"title": "", "sentences": ["It links."]}]}
    link = {"section": 0, "to": to, "anchor": 0, "origin": "link"}
    articles = [article | {"_id": "1", "links": [link]}, article | {"_id": "2", "links": []}]
    write_collection(place, [{"_id": "1-0", "title": "T", "text": "It links."}], (), {}, articles)
    return place


def test_joined_collections_keep_their_links_and_never_share_ids(tmp_path: Path) -> None:
    parts = [part(tmp_path / f"{name}-00000000", "2") for name in ("a", "b")]
    spec = ConcatFields.model_validate({"kind": "concat", "of": ["a", "b"]}).resolve()
    counts = build_collection("concat", spec, tmp_path / "made", parts=parts)
    assert (counts["passages"], counts["articles"], counts["links_between_articles"]) == (0, 4, 2)
    collection = Collection(tmp_path / "made")
    assert list(collection.corpus()) == [], "it is only pre-trained on"
    links = {row["_id"]: [link["to"] for link in row["links"]] for row in collection.articles()}
    assert links == {"a:1": ["a:2"], "a:2": [], "b:1": ["b:2"], "b:2": []}


def test_bad_parts_are_refused(tmp_path: Path) -> None:
    spec = {"kind": "concat", "of": ["a", "b"]}
    first = part(tmp_path / "a-00000000", "2")
    with pytest.raises(EncoreError, match="needs --parts, the folders of a, b"):
        build_collection("concat", spec, tmp_path / "made", parts=[first])
    write_collection(tmp_path / "b-00000000", [{"_id": "x", "title": "", "text": "x"}], (), {})
    with pytest.raises(EncoreError, match=r"b-00000000 has no articles.*leave 'b' out"):
        build_collection("concat", spec, tmp_path / "made", parts=[first, tmp_path / "b-00000000"])
    with pytest.raises(ValueError, match="names a collection twice"):
        ConcatFields.model_validate({"kind": "concat", "of": ["a", "a"]})


@pytest.mark.usefixtures("at_the_root")
def test_the_papers_texts_are_both_and_old_books_stand_for_those_that_were_withdrawn(catalogue: Catalogue) -> None:
    def made_of(**datasets: str) -> set[str]:
        scale = NANO["scale"] | {
            "datasets": {"msmarco-passage": "pydocs-stdlib", "wikipedia": "pydocs-stdlib", **datasets}
        }
        plan = Plan(RunConfig.model_validate(NANO | {"scale": scale}), catalogue)
        model = plan.model(plan.resolve.lineage("bert-base+bow"), 0)
        stores = [artifact for role, artifact in model.inputs["tokens"].inputs.items() if role.startswith("part_token")]
        found = upstream([store.inputs["collection"] for store in stores])
        return {artifact.name.rpartition("-")[0] for artifact in found}

    assert made_of() == {"wikipedia", "bookcorpus"}, "the source is called as the dataset"
    assert made_of(**{"wikipedia-bookcorpus": "wikipedia-gutenberg"}) == {"wikipedia", "gutenberg"}
    assert "BookCorpus was withdrawn" in catalogue.datasets["gutenberg"].note

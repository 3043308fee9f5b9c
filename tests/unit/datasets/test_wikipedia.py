"""A dump becomes articles with sections, sentences and links; damaged ones are refused with their place."""

import bz2
import gzip
import hashlib
import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from encore.data.collection import Collection
from encore.datasets import kinds
from encore.datasets.mediawiki import dump
from encore.datasets.reqa import published
from encore.datasets.wikipedia import WikipediaFields
from encore.errors import EncoreError
from tests.support import inside
from tests.support.small_dump import END, HEAD, Wiki, write, write_multistream, xml

PAGES = [
    Wiki("Cat", "A '''cat''' is an [[animal]]. It purrs.\n\n== Food ==\nCats eat [[Mouse|mice]] in [[1999]].", id=12),
    Wiki("Talk:Cat", "Nobody reads [[Cat|this]].", namespace=1),
    Wiki(
        "Animal",
        "Animals live. See [[Cat#Food]] and [[Kitty]].\n== Food ==\n=== Meat ===\nOf [[animal]]s and [[cat]]s.",
    ),
    Wiki("Kitty", "#REDIRECT [[Cat#Food]]", redirect="Cat"),
    Wiki("Puss", "#redirect [[kitty]]", redirect="Kitty"),
    Wiki(
        "Mouse",
        "A mouse fears the [[puss]], the [[Puss]], [[Mercury]], [[Nothing]] and [[Loop]].\n== Notes ==\nA note.",
    ),
    Wiki("Loop", "#REDIRECT [[Loop 2]]"),
    Wiki("Loop 2", "#REDIRECT [[Loop]]"),
    Wiki("Mercury", "'''Mercury''' may be a god.\n{{disambiguation}}"),
    Wiki("List of cats", "All of the cats."),
    Wiki("1999", "1999 was a year. See [[Animal#Food]], [[Animal#Wings]] and [[List of cats]]."),
    Wiki("Nothing", "* [[Cat]]"),
    Wiki("A module", "return 1.", model="Scribunto"),
]


def fields(path: Path, **others) -> WikipediaFields:
    return WikipediaFields.model_validate({"kind": "wikipedia", "path": str(path), **others})


def build(path: Path, output: Path, processes: int = 1, **others) -> Collection:
    spec = fields(path, **others).resolve()
    kinds.build_collection("wikipedia", spec, output, source=path, processes=processes)
    return Collection(output)


def refusal(path: Path, output: Path) -> str:
    with pytest.raises(EncoreError) as caught:
        build(path, output)
    message = str(caught.value)
    assert "\n" not in message
    assert not (output / "corpus.jsonl.gz").exists()
    return message


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def collection(tmp_path_factory) -> Collection:
    home = tmp_path_factory.mktemp("wikipedia")
    return build(write(home / "enwiki.xml", PAGES), home / "out")


@pytest.fixture(scope="module")
def articles(collection) -> dict[str, dict]:
    return {row["title"]: row for row in collection.articles()}


def links(article: dict) -> list[tuple[int, str]]:
    assert all(link["anchor"] == 0 for link in article["links"]), "WLP draws queries of the first section"
    return [(link["section"], link["to"]) for link in article["links"]]


def test_articles_have_sections_and_sentences(articles):
    assert list(articles) == ["Cat", "Animal", "Mouse", "1999"]
    assert articles["Cat"]["_id"] == "12"
    assert articles["Cat"]["sections"] == [
        {"title": "", "sentences": ["A cat is an animal.", "It purrs."]},
        {"title": "Food", "sentences": ["Cats eat mice in 1999."]},
    ]


def test_another_language_is_refused():
    with pytest.raises(ValueError, match="a dump is read as English Wikipedia; use kind books"):
        WikipediaFields.model_validate({"kind": "wikipedia", "path": "dewiki.xml", "language": "de"})


def test_sections_without_prose_and_of_notes_are_left_out(articles):
    assert [each["title"] for each in articles["Animal"]["sections"]] == ["", "Meat"]
    assert [each["title"] for each in articles["Mouse"]["sections"]] == [""]


def test_links_lead_to_articles_whatever_section_they_name(articles):
    assert links(articles["Cat"]) == [(0, "3"), (1, "6")]
    assert links(articles["Animal"]) == [(0, "12"), (1, "12")]
    assert links(articles["1999"]) == [(0, "3")]


def test_redirects_are_followed(articles):
    """Puss redirects to Kitty, and Kitty to a section of Cat."""
    assert links(articles["Mouse"]) == [(0, "12")]


def test_all_that_is_left_out_is_counted(collection):
    counts = json.loads((collection.folder / "statistics.json").read_text())
    assert counts["pages"] == {
        "article": 4,
        "redirect": 4,
        "disambiguation": 1,
        "listing": 1,
        "empty": 1,
        "oversized": 0,
        "unreadable": 0,
        "repeated_title": 0,
        "other_namespaces": 1,
        "other_models": 1,
    }
    assert counts["redirects_lost"] == {"missing": 0, "loop": 2}
    assert counts["links_removed"] == {"date": 1, "self": 1, "disambiguation": 1, "empty": 1, "loop": 1, "listing": 1}
    assert (counts["articles"], counts["sections"], counts["links"], counts["queries"]) == (4, 6, 6, 0)


def test_it_has_articles_alone_and_passages_are_cut_from_them_where_they_are_drawn(collection, monkeypatch):
    assert (list(collection.corpus()), collection.queries()) == ([], {})
    assert list(published.passages_of(collection))[:2] == [
        {"_id": "12-0", "title": "Cat", "text": "A cat is an animal. It purrs."},
        {"_id": "12-1", "title": "Cat", "text": "Cats eat mice in 1999."},
    ]
    monkeypatch.setattr(published, "WORDS", 6)
    short = [row["text"] for row in published.passages_of(collection)]
    assert short[:2] == ["A cat is an animal.", "It purrs."]


def test_bytes_are_the_same_however_the_dump_is_packed_and_read(collection, tmp_path):
    many = [*PAGES, *(Wiki(f"Cat {n}", f"Cat {n} is a [[cat]]. " * n) for n in range(1, 40))]
    plain = build(write(tmp_path / "enwiki.xml", many), tmp_path / "plain")
    packed = build(write(tmp_path / "enwiki.xml.bz2", many), tmp_path / "packed", processes=2)
    streams = write_multistream(tmp_path, many)
    assert len(list(dump.parts(streams))) == 2 + math.ceil(len(many) / 2)  # the ends of the dump, two pages each
    for processes in (1, 3):
        assert digests(build(streams, tmp_path / f"out-{processes}", processes).folder) == digests(plain.folder)
    assert digests(packed.folder) == digests(plain.folder)
    assert len(list(plain.articles())) == 43


def test_of_a_repeated_title_the_first_page_counts(tmp_path):
    pages = [Wiki("Cat", "First one."), Wiki("cat", "Second one."), Wiki("Dog", "Of [[cat]]s and dogs.")]
    collection = build(write(tmp_path / "enwiki.xml", pages), tmp_path / "out")
    assert [row["sections"][0]["sentences"] for row in collection.articles()] == [["First one."], ["Of cats and dogs."]]
    assert json.loads((tmp_path / "out/statistics.json").read_text())["pages"]["repeated_title"] == 1


def test_a_repeated_id_is_refused(tmp_path):
    path = write(tmp_path / "enwiki.xml", [Wiki("A", "One.", id=5), Wiki("B", "Two.", id=5)])
    with pytest.raises(EncoreError, match="id '5' occurs twice"):
        build(path, tmp_path / "out")


def test_a_page_without_a_heading_of_its_own_keeps_an_empty_lead(tmp_path):
    """Or a section of the body would be taken for the lead, from which BFS draws its queries."""
    collection = build(write(tmp_path / "enwiki.xml", [Wiki("A", "{{x}}\n== B ==\nText.")]), tmp_path / "out")
    assert [each["sentences"] for row in collection.articles() for each in row["sections"]] == [[], ["Text."]]


def test_a_dump_without_articles_is_refused(tmp_path):
    with pytest.raises(EncoreError, match="holds no article"):
        build(write(tmp_path / "enwiki.xml", []), tmp_path / "out")


def test_an_oversized_page_is_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(dump, "LARGEST", 1000)
    pages = [Wiki("Long", "Word. " * 300), Wiki("Short", "A short one.")]
    collection = build(write(tmp_path / "enwiki.xml.bz2", pages), tmp_path / "out")
    assert [row["title"] for row in collection.articles()] == ["Short"]
    assert json.loads((tmp_path / "out/statistics.json").read_text())["pages"]["oversized"] == 1


def test_what_of_a_large_page_is_held_is_bounded(monkeypatch):
    monkeypatch.setattr(dump, "LARGEST", 1000)
    parser = dump.PageParser()
    parser.feed((HEAD + "<page><title>A</title><ns>0</ns><id>1</id><revision><text>").encode())
    for _ in range(50):
        parser.feed(b"x" * 10_000)
    assert sum(map(len, parser._reading or [])) <= 1000
    assert [page.text for page in parser.feed(b"</text></revision></page>")] == [None]


def damaged(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "enwiki.xml"
    path.write_bytes(content)
    return refusal(path, tmp_path / "out")


def test_broken_xml_is_refused_with_its_line(tmp_path):
    content = (HEAD + xml(PAGES[0], 1) + "<page><title>B</page>" + END).encode()
    line = content[: content.index(b"</page>", content.index(b"<title>B"))].count(b"\n") + 1
    assert f"enwiki.xml, line {line}: no XML in UTF-8 (mismatched tag)" in damaged(tmp_path, content)


def test_other_encodings_are_refused_with_their_line(tmp_path):
    content = (HEAD + xml(Wiki("Caf", "x"), 1)).encode().replace(b"Caf", b"Caf\xe9") + END.encode()
    assert "enwiki.xml, line 4: no XML in UTF-8 (not well-formed" in damaged(tmp_path, content)


def test_a_dump_that_was_cut_short_is_refused(tmp_path):
    assert "no XML in UTF-8 (no element found)" in damaged(tmp_path, (HEAD + xml(PAGES[0], 1)).encode())


def test_what_is_no_dump_is_refused(tmp_path):
    assert "line 1: <html> is not a MediaWiki export" in damaged(tmp_path, b"<html></html>")


@pytest.mark.parametrize(
    ("lost", "found"),
    [("<id>12</id>", ""), ("<ns>0</ns>", ""), ("<title>Cat</title>", ""), ("<ns>0", "<ns>--1"), ("<ns>0", "<ns>²")],
)
def test_a_page_without_title_id_or_namespace_is_refused(tmp_path, lost, found):
    content = (HEAD + xml(PAGES[0], 1)).replace(lost, found, 1) + END
    assert "a page ends here that has no title, id or ns" in damaged(tmp_path, content.encode())


def test_a_cut_archive_is_refused(tmp_path):
    path = write(tmp_path / "enwiki.xml.bz2", PAGES)
    path.write_bytes(path.read_bytes()[:-20])
    assert "enwiki.xml.bz2, after line" in refusal(path, tmp_path / "out")


def test_an_archive_with_garbage_is_refused(tmp_path):
    path = write(tmp_path / "enwiki.xml.bz2", PAGES)
    path.write_bytes(b"no bzip2" + path.read_bytes())
    assert "cannot be read (Invalid data stream)" in refusal(path, tmp_path / "out")


def test_a_multistream_dump_with_a_damaged_stream_is_refused(tmp_path):
    path = write_multistream(tmp_path, PAGES)
    content = path.read_bytes()
    second = content.index(b"BZh9", 1)
    for damaged in (b"no bzip2" + content, content[:second] + b"x" + content[second + 1 :]):
        path.write_bytes(damaged)
        assert "block at byte 0, after line" in refusal(path, tmp_path / "out")


def test_a_multistream_dump_that_was_cut_short_is_refused(tmp_path):
    path = write_multistream(tmp_path, PAGES)
    for cut in (3, len(bz2.compress(END.encode()))):
        path.write_bytes(path.read_bytes()[:-cut])
        assert "block at byte" in refusal(path, tmp_path / "out")


def test_an_error_in_another_process_is_said_in_one_line(tmp_path):
    path = write_multistream(tmp_path, PAGES)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(EncoreError, match="block at byte"):
        build(path, tmp_path / "out", processes=2)


def test_a_dump_of_one_stream_is_read_in_batches_whatever_its_name_is(tmp_path):
    for name in ("enwiki-pages-articles.xml.bz2", "enwiki-pages-articles-multistream.xml.bz2"):
        (batch,) = dump.parts(write(tmp_path / name, PAGES))
        assert isinstance(batch, list)
        assert [page.title for page in batch] == [page.title for page in PAGES]


def test_identity_is_the_content_and_the_parser(tmp_path):
    first, second = write(tmp_path / "a.xml", PAGES), write(tmp_path / "b.xml", PAGES)
    spec = fields(first).resolve()
    assert spec == fields(second).resolve()
    assert str(tmp_path) not in json.dumps(spec)
    assert spec["parser"].startswith("mwparserfromhell ")
    assert spec != fields(write(tmp_path / "c.xml", PAGES[1:])).resolve()


def test_a_dump_that_is_not_there_can_be_planned_with_but_not_read(tmp_path):
    path = tmp_path / "enwiki.xml"
    spec = fields(path).resolve()
    with pytest.raises(EncoreError, match="is missing; fetch a pages-articles dump"):
        kinds.build_collection("wikipedia", spec, tmp_path / "out", source=path)
    write(path, PAGES)
    with pytest.raises(EncoreError, match="not the dump that was planned with; run snakemake again"):
        kinds.build_collection("wikipedia", spec, tmp_path / "out", source=path)


def test_a_pinned_digest_is_the_identity_before_and_after_the_dump_is_there(tmp_path):
    path = write(tmp_path / "enwiki.xml", PAGES)
    pinned = hashlib.sha256(path.read_bytes()).hexdigest()
    assert fields(path, sha256=pinned).resolve() == fields(tmp_path / "absent.xml", sha256=pinned).resolve()
    assert len(list(build(path, tmp_path / "out", sha256=pinned).articles())) == 4
    with pytest.raises(EncoreError, match="replace the file or the pinned `sha256`"):
        build(path, tmp_path / "out", sha256="0" * 64)


@pytest.mark.parametrize(
    "wrong", [{"path": "enwiki.7z"}, {"sha256": "12"}, {"splits": {"test": {"role": "test"}}}, {"passage_words": 100}]
)
def test_wrong_fields_are_refused(wrong):
    with pytest.raises(ValidationError):
        WikipediaFields.model_validate({"kind": "wikipedia", "path": "a.xml", **wrong})


def test_the_script_records_the_counts(tmp_path):
    path = write(tmp_path / "enwiki.xml", PAGES)
    spec = {**fields(path).resolve(), "impl": kinds.load_kind("wikipedia").impl}
    inside.made("collection", spec, {}, tmp_path / "out", source=str(path))
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (manifest["stage"], manifest["spec"]) == ("collection.wikipedia", spec)
    assert manifest["results"]["pages"]["redirect"] == 4
    assert sorted(manifest["outputs"]) == [
        "articles.jsonl.gz",
        "corpus.jsonl.gz",
        "queries.jsonl.gz",
        "statistics.json",
    ]
    with gzip.open(tmp_path / "out/articles.jsonl.gz", "rt") as file:
        assert len(list(file)) == 4

"""Documents: what of one is read, whole bodies in the place of their beginnings, and titles that give nothing away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_pydocs
from small_models import tokenizer_folder

from encore.data.collection import Collection, Judgment, write_collection
from encore.data.text_fields import Form
from encore.data.tokens import TokenStore, write_store
from encore.datasets import kinds
from encore.datasets.beir import BeirFields
from encore.datasets.pydocs.documents import DocumentsFields, shares_a_word
from encore.datasets.pydocs.splits import HeldOutQueries
from encore.errors import EncoreError
from encore.storage.files import sha256

SPEC = {"kind": "pydocs-documents", "segments": [["title", "url", "text"]]}


def made(folder: Path, base: Collection) -> Collection:
    kinds.build_collection("pydocs-documents", SPEC, folder, base=base.folder)
    return Collection(folder)


# The form


def test_the_usual_text_is_title_and_text_and_needs_no_file(tmp_path: Path) -> None:
    form = Form()
    assert form.texts({"title": "A", "text": "b c"}) == ("A b c",)
    assert form.texts({"title": "", "text": "b"}) == form.texts({"text": "b"}) == ("b",)
    form.write(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert Form.read(tmp_path) == form
    assert form.to_spec() == {}


def test_fields_are_joined_in_their_order_and_empty_ones_add_no_blank(tmp_path: Path) -> None:
    form = Form((("url", "title", "text"),))
    assert form.texts({"title": "T", "url": "u", "text": "b"}) == ("u T b",)
    assert form.texts({"title": "", "url": "u", "text": "b"}) == ("u b",)
    form.write(tmp_path)
    assert Form.read(tmp_path) == form == Form.of_spec(form.to_spec())
    Form().write(tmp_path)
    assert Form.read(tmp_path) == Form()


def test_a_damaged_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "form.json").write_text("{}")
    with pytest.raises(EncoreError, match=r"form\.json is damaged"):
        Form.read(tmp_path)


def test_a_pair_is_stored_with_a_separator_between(tmp_path: Path) -> None:
    corpus = [{"_id": "d", "title": "list", "text": "A stack holds calls.", "sentence": "the end"}]
    pair = Form((("sentence",), ("title", "text")))
    write_collection(
        tmp_path / "c", corpus, [{"_id": "q", "text": "list"}], {"test": [Judgment("q", "d", 1)]}, form=pair
    )
    write_store(Collection(tmp_path / "c"), tokenizer_folder(tmp_path / "t"), tmp_path / "s")
    store = TokenStore.open(tmp_path / "s")
    pieces = [store.pieces[number] for number in store.passages[0]]
    middle = pieces.index("[SEP]")
    assert pieces.count("[SEP]") == 1
    spoken = ["".join(part).replace("##", "") for part in (pieces[:middle], pieces[middle + 1 :])]
    assert spoken == ["theend", "listastackholdscalls."]


def test_documents_in_beirs_layout_keep_the_fields_that_are_read(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "qrels").mkdir(parents=True)
    row = {"_id": "d", "title": "T", "text": "body", "url": "https://a.b/c", "more": "no"}
    (source / "corpus.jsonl").write_text(json.dumps(row) + "\n")
    (source / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "what"}) + "\n")
    (source / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    fields = {"kind": "beir", "path": str(source), "splits": {"test": {"role": "test"}}}
    plain = BeirFields.model_validate(fields)
    full = BeirFields.model_validate({**fields, "segments": [["title", "url", "text"]]})
    assert "segments" not in plain.resolve()
    kinds.build_collection("beir", full.resolve(), tmp_path / "out", source=source)
    collection = Collection(tmp_path / "out")
    assert list(collection.texts()) == [("d", ("T https://a.b/c body",))]
    assert "more" not in next(collection.corpus())


@pytest.mark.parametrize("segments", [[], [[]], [["a"], ["b"], ["c"]]])
def test_a_form_is_one_text_or_a_pair(segments: list[list[str]]) -> None:
    with pytest.raises(ValueError, match="one list of fields, or two"):
        DocumentsFields(kind="pydocs-documents", of="pydocs", splits={}, segments=segments)


# Documents of pydocs


def test_a_document_is_the_whole_body_and_its_judgments_are_pydocs(tmp_path: Path) -> None:
    base = small_pydocs.build(tmp_path / "base")
    found = made(tmp_path / "documents", base)
    assert [row["_id"] for row in found.corpus()] == [row["_id"] for row in base.corpus()]
    assert (found.queries(), found.clusters(), found.splits()) == (base.queries(), base.clusters(), base.splits())
    assert all(found.qrels(split) == base.qrels(split) for split in base.splits())
    texts = {row["_id"]: row["text"] for row in found.corpus()}
    assert texts["lib.tools.grow"] == "height (int): How tall it was. Growing takes months."
    assert not found.has_articles()


def test_a_module_and_its_namesake_are_told_apart(tmp_path: Path) -> None:
    module = ("test", {"": (None, ["The module's."]), "walk": ("Go on foot through it", ["The function's."])})
    found = made(tmp_path / "documents", small_pydocs.build(tmp_path / "base", {"walk": module}))
    assert [(row["_id"], row["text"]) for row in found.corpus()] == [
        ("walk", "The module's."), ("walk.walk", "The function's."),
    ]  # fmt: skip


def test_no_title_and_no_address_shares_a_content_word_with_its_own_query(tmp_path: Path) -> None:
    found = made(tmp_path / "documents", small_pydocs.build(tmp_path / "base"))
    rows = {row["_id"]: row for row in found.corpus()}
    assert rows["lib.paint.sort_values"]["title"] == ""
    assert rows["lib.paint.sort_values"]["url"] == "lib/paint"
    assert rows["lib.tools.grow"]["title"] == "lib.tools.grow"
    queries = found.queries()
    assert not [
        key
        for key, row in rows.items()
        if f"q:{key}" in queries and shares_a_word(f"{row['title']} {row['url']}", queries[f"q:{key}"])
    ]


@pytest.mark.parametrize(
    ("name", "query", "shared"),
    [("numpy.sort", "Return a sorted copy", True), ("DataFrame.sortValues", "Sort it", True), ("a.b", "a b", False)],
)
def test_forms_of_a_word_count_as_shared(name: str, query: str, shared: bool) -> None:
    assert shares_a_word(name, query) is shared


def test_no_document_says_a_held_out_query(tmp_path: Path) -> None:
    base = small_pydocs.build(tmp_path / "base")
    found = made(tmp_path / "documents", base)
    held_out = HeldOutQueries(base.queries()[query] for split in ("valid", "test") for query in base.qrels(split))
    texts, queries = dict(found.texts()), found.queries()
    assert len(texts) > len(queries) > 0
    assert all(held_out.containing([queries[query]]) for query in found.qrels("test")), "they would be found"
    assert [name for name, text in texts.items() if held_out.containing(text)] == []


def test_equal_material_gives_equal_bytes(tmp_path: Path) -> None:
    base = small_pydocs.build(tmp_path / "base")
    one, other = (made(tmp_path / name, base).folder for name in ("one", "other"))
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert len(files) == 7
    assert [sha256(one / path) for path in files] == [sha256(other / path) for path in files]


def test_another_collection_than_pydocs_is_refused(tmp_path: Path) -> None:
    write_collection(tmp_path, [{"_id": "d", "title": "", "text": "t"}], [], {})
    with pytest.raises(EncoreError, match="no articles; name a collection of kind pydocs under `of`"):
        kinds.build_collection("pydocs-documents", SPEC, tmp_path / "out", base=tmp_path)
    with pytest.raises(EncoreError, match="needs --collection"):
        kinds.build_collection("pydocs-documents", SPEC, tmp_path / "out")

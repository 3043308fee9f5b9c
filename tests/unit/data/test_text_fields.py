"""What of a document is read: its fields in order, as one text or as a pair."""

import json
from pathlib import Path

import pytest

from encore.data.collection import Collection, Judgment, write_collection
from encore.data.text_fields import Form, FormFields, FormSpec
from encore.data.tokens import TokenStore, write_store
from encore.datasets import kinds
from encore.datasets.beir import BeirFields
from encore.errors import EncoreError
from tests.support.small_models import tokenizer_folder


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
    assert Form.read(tmp_path) == form == FormSpec(**form.to_spec()).form
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
    store = TokenStore(tmp_path / "s")
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
        FormFields(splits={}, segments=segments)

"""Documents: whole bodies instead of their beginnings, and titles that give nothing away."""

from pathlib import Path

import pytest
import small_pydocs

from encore.data.collection import Collection
from tools.pydocs.documents import shares_a_word, write_documents


def made(folder: Path, base: Collection) -> Collection:
    write_documents(folder, base)
    return Collection(folder)


def test_a_document_is_the_whole_body_and_its_judgments_are_pydocs(tmp_path: Path) -> None:
    base = small_pydocs.build(tmp_path / "base")
    found = made(tmp_path / "documents", base)
    assert [row["_id"] for row in found.corpus()] == [row["_id"] for row in base.corpus()]
    assert (found.queries(), found.clusters(), found.splits()) == (base.queries(), base.clusters(), base.splits())
    assert all(found.qrels(split) == base.qrels(split) for split in base.splits())
    texts = {row["_id"]: row["text"] for row in found.corpus()}
    assert texts["lib.tools.grow"] == "height (int): How tall it was. Growing takes months."
    assert not found.has_articles()


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

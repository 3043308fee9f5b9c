"""Questions about docstrings: what is asked, of which objects, and that nothing has read a part of a question."""

from pathlib import Path

import pytest
import small_pydocs

from encore.data import article_texts
from encore.data.collection import Collection
from encore.datasets import kinds
from encore.datasets.prepared_reqa import PreparedReqaFields
from tools.pydocs import questions
from tools.pydocs.splits import HeldOutQueries


@pytest.mark.parametrize(
    ("summary", "name", "question"),
    [
        ("Sort an array", "axis", "To sort an array, what is axis?"),
        ("Returns the sum", "a", "To return the sum, what is a?"),
        ("Applies it twice", "n", "To apply it twice, what is n?"),
        ("Matches a name", "n", "To match a name, what is n?"),
        ("A sorted array", "axis", "For a sorted array, what is axis?"),
        ("SVD of a matrix", "k", "For SVD of a matrix, what is k?"),
    ],
)
def test_a_summary_and_a_name_make_a_question(summary: str, name: str, question: str) -> None:
    assert questions.question(summary, name) == question


def reqa_of_pydocs(folder: Path, base: Collection, packages: tuple[str, ...] = ("lib", "other")) -> Collection:
    """The collection that kind ``prepared-reqa`` makes of the questions about some packages."""
    source = folder.parent / "source"
    questions.write_questions(source, base, list(packages))
    fields = PreparedReqaFields.model_validate(
        {"kind": "prepared-reqa", "path": str(source), "ratios": [50], "draws": 1}
    )
    kinds.build_collection("prepared-reqa", {"impl": 1, **fields.resolve()}, folder, source=source)
    return Collection(folder)


LONG = ["n (int): How many there are.", *[f"{'word ' * 39}{number}." for number in range(4)]]
OBJECTS: small_pydocs.Objects = {
    **small_pydocs.OBJECTS,
    "lib.long": ("test", {"f": ("Find one among many words", LONG)}),
}


def test_what_is_asked_about_are_held_out_objects_of_the_packages(tmp_path: Path) -> None:
    base = small_pydocs.build(tmp_path / "base", OBJECTS)
    found = reqa_of_pydocs(tmp_path / "reqa", base)
    assert set(found.queries().values()) == {
        "For Colour a fence in one afternoon, what is colour?",
        "For Colour a fence in one afternoon, what is coats?",
        "To sort fences by their values, what is by?",
        "For Sound one note after another, what is tempo?",
        "To find one among many words, what is n?",
    }
    assert set(found.clusters().values()) == {"lib.paint", "other.music", "lib.long"}


def test_nothing_that_pre_training_reads_says_a_part_of_a_question(tmp_path: Path) -> None:
    """Neither a body of the collection that objectives read, nor the texts of its vocabulary, nor a candidate."""
    base = small_pydocs.build(tmp_path / "base", OBJECTS)
    found = reqa_of_pydocs(tmp_path / "reqa", base)
    summaries = [
        text for query, text in base.queries().items() if any(query in base.qrels(s) for s in ("valid", "test"))
    ]
    said = HeldOutQueries([*summaries, *found.queries().values()])
    read = [text for article in base.articles() for section in article["sections"] for text in section["sentences"]]
    assert not said.containing(read)
    assert not [text for text in article_texts.VocabularyTexts(base) if said.containing([text])]
    assert not [name for name, texts in found.texts() if said.containing(texts)]
    assert said.containing(["It can sort fences by their values."])  # the check itself finds what it looks for

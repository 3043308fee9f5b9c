"""Zero-shot search in pydocs: what a package's set holds, and that nothing of it was learned from."""

from pathlib import Path

import pytest
import small_pydocs

from encore.data.collection import Collection
from encore.errors import EncoreError
from tools.pydocs.packages import write_packages

OBJECTS: small_pydocs.Objects = {
    "json.tool": ("train", {"dump": ("Write a tree as text", ["indent (int): Blanks of a level."])}),
    "email": ("valid", {"send": ("Bring a letter to a friend", ["to (str): Who that is."])}),
    "shed.grow": ("train", {"water": ("Give a plant a drink", ["litres (float): How much it gets."])}),
    "shed.tools": (
        "test",
        {
            "": (None, ["Everything for sheds."]),
            "rake": ("Bring leaves together in heaps", ["teeth (int): How many it has."]),
            "saw": ("Cut a plank into two", ["plank: What is cut."]),
        },
    ),
    "attic.boxes": ("test", {"open": ("See what grandmother kept", ["box: Which one is opened."])}),
}


@pytest.fixture
def base(tmp_path: Path) -> Collection:
    return small_pydocs.build(tmp_path / "base", OBJECTS)


def part(base: Collection, packages: list[str], *splits: str) -> Collection:
    folder = base.folder.parent / "-".join(packages)
    write_packages(folder, base, packages, list(splits) or ["test"])
    return Collection(folder)


def test_a_set_is_all_passages_of_a_package_and_its_queries_of_the_test(base: Collection) -> None:
    shed = part(base, ["shed"])
    assert [row["_id"] for row in shed.corpus()] == [
        "shed.grow.water",
        "shed.tools",
        "shed.tools.rake",
        "shed.tools.saw",
    ]
    assert shed.qrels("test") == {f"q:shed.tools.{name}": {f"shed.tools.{name}": 1} for name in ("rake", "saw")}
    assert set(shed.queries()) == set(shed.qrels("test")), "a training query of the package is nowhere in it"
    assert shed.clusters() == dict.fromkeys(shed.queries(), "shed.tools")
    assert shed.splits() == ["test"]


def test_what_a_model_learns_from_before_is_the_standard_library(base: Collection) -> None:
    python = part(base, ["python"], "train", "valid")
    assert [row["_id"] for row in python.corpus()] == ["json.tool.dump", "email.send"]
    assert (set(python.qrels("train")), set(python.qrels("valid"))) == ({"q:json.tool.dump"}, {"q:email.send"})


def test_sets_share_neither_a_document_nor_a_query_with_what_is_learned_from(base: Collection) -> None:
    python = part(base, ["python"], "train", "valid")
    learned = {row["_id"] for row in python.corpus()}, set(python.queries().values())
    sets = [part(base, [name]) for name in ("shed", "attic")]
    assert all(learned)
    assert all(each.queries() for each in sets)
    for each in sets:
        assert not learned[0] & {row["_id"] for row in each.corpus()}
        assert not learned[1] & set(each.queries().values())
    assert not set(sets[0].queries()) & set(sets[1].queries())


def test_no_query_of_a_set_stands_in_a_text_that_is_pre_trained_on(base: Collection) -> None:
    """The articles are pydocs' own, whose bodies hold no held-out query (test_pydocs.py); a training query may."""
    bodies = " ".join(
        text for row in base.articles() for section in row["sections"] for text in section["sentences"]
    ).lower()
    asked = [text for name in ("shed", "attic") for text in part(base, [name]).queries().values()]
    assert len(asked) == 3
    assert not [text for text in asked if text.lower() in bodies]
    held_out = base.qrels("test")
    assert all(query in held_out for name in ("shed", "attic") for query in part(base, [name]).queries())


@pytest.mark.parametrize(
    ("packages", "says"),
    [
        (["shop"], "pydocs has no object of package 'shop'; name another"),
        (["python"], "python have no query of 'test'"),
    ],
)
def test_a_set_with_nothing_in_it_is_refused(base: Collection, packages: list[str], says: str) -> None:
    with pytest.raises(EncoreError, match=says):
        part(base, packages)

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

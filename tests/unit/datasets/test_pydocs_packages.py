"""Zero-shot search in pydocs: what a package's set holds, and that nothing of it was learned from."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small_pydocs
import yaml

from encore.config.run import RunConfig
from encore.data.collection import Collection
from encore.datasets import kinds
from encore.datasets.pydocs.packages import PackagesFields
from encore.errors import EncoreError
from encore.plan.artifacts import scores
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.targets import lineage_targets

ROOT = Path(__file__).parents[3]
DEFAULT = yaml.safe_load((ROOT / "config/config.yaml").read_text())
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
SPLITS: dict[str, Any] = {"test": {"role": "test"}}


@pytest.fixture
def base(tmp_path: Path) -> Collection:
    return small_pydocs.build(tmp_path / "base", OBJECTS)


def part(base: Collection, packages: list[str], **splits: Any) -> Collection:
    given = {"kind": "pydocs-packages", "of": "pydocs", "packages": packages, "splits": splits or SPLITS}
    spec = PackagesFields.model_validate(given).resolve()
    folder = base.folder.parent / "-".join(packages)
    kinds.build_collection("pydocs-packages", {**spec, "impl": 1, "collection": "x"}, folder, base=base.folder)
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
    splits = {"train": {"role": "train"}, "valid": {"role": "valid"}}
    python = part(base, ["python"], **splits)
    assert [row["_id"] for row in python.corpus()] == ["json.tool.dump", "email.send"]
    assert (set(python.qrels("train")), set(python.qrels("valid"))) == ({"q:json.tool.dump"}, {"q:email.send"})


def test_sets_share_neither_a_document_nor_a_query_with_what_is_learned_from(base: Collection) -> None:
    python = part(base, ["python"], train={"role": "train"}, valid={"role": "valid"})
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
        (["shop"], "has no object of package 'shop'; name another under `packages`"),
        (["python"], "python of .* have no query of 'test'"),
    ],
)
def test_a_set_with_nothing_in_it_is_refused(base: Collection, packages: list[str], says: str) -> None:
    with pytest.raises(EncoreError, match=says):
        part(base, packages)


def test_splits_are_pydocs_own() -> None:
    with pytest.raises(ValueError, match="splits has 'graded'"):
        PackagesFields.model_validate(
            {"kind": "pydocs-packages", "of": "pydocs", "packages": ["a"], "splits": {"graded": {"role": "graded"}}}
        )


# Which models may be tested


@pytest.fixture
def plan(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """The embedded default with other steps."""
    monkeypatch.chdir(ROOT)

    def planned(**steps: Any) -> Plan:
        content = copy.deepcopy(DEFAULT)
        content["scale"]["steps"] |= steps
        return Plan(RunConfig.model_validate(content), catalogue)

    return planned


ZERO_SHOT = "bert-base+bow+bow-beir"


def test_a_model_of_the_standard_library_is_tested_on_each_package(plan: Callable[..., Plan]) -> None:
    made = plan()
    for name in ("beir-nfcorpus", "beir-scifact", "beir-arguana", "beir-scidocs", "beir-fiqa", "beir-trec-covid"):
        scores = made.scores(ZERO_SHOT, 0, name, "test")
        assert scores.name.startswith("pydocs-")
        assert scores.inputs["run"].inputs["collection"].spec["kind"] == "pydocs-packages"


@pytest.mark.parametrize(
    "steps",
    [
        {"bow-beir": {"collection": "pydocs", "negatives": "bm25", "systems_file": None}},
        {"bow-beir": {"collection": "pydocs-documents", "negatives": "bm25", "systems_file": None}},
        {"bow-beir": {"collection": "squad-reqa", "negatives": "bm25", "systems_file": None, "train_split": "train-1"}},
    ],
)
def test_a_model_that_may_have_learned_from_a_set_is_not_tested_on_it(plan: Callable[..., Plan], steps: Any) -> None:
    with pytest.raises(EncoreError, match="or its like; it is for zero-shot search"):
        plan(**steps).scores(ZERO_SHOT, 0, "beir-scifact", "test")


def test_a_teacher_counts_too(plan: Callable[..., Plan]) -> None:
    teacher_outputs = {"loss": "kl-pairwise", "teachers": ["bert-base+marco-bm25"]}
    made = plan(**{"bow-beir": {**DEFAULT["scale"]["steps"]["bow-beir"], **teacher_outputs}})
    assert not scores.tested_fairly(made, ZERO_SHOT, "beir-scifact", "test")


def test_bm25_is_tested_on_all(plan: Callable[..., Plan]) -> None:
    assert plan().scores("bm25", None, "beir-scifact", "test")


def test_a_set_is_tested_on_only_where_a_table_asks_for_it(plan: Callable[..., Plan]) -> None:
    targets = lineage_targets(plan(), "bert-base+ict~temperature=0.1+marco-bm25")
    assert [path for path in targets if "/pydocs." in path]
    assert not [path for path in targets if "/pydocs-numpy." in path or "/pydocs-sympy." in path]

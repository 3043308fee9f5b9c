"""A part of a collection: judged documents stay, samples nest, and links lead nowhere that is gone."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from encore.config.run import RunConfig
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.text_fields import Form
from encore.datasets import kinds
from encore.datasets.subset import SubsetFields
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from tests.support.shipped import run_file

ROOT = Path(__file__).parents[3]
NANO = run_file("nano")
SPLITS = {"train": {"role": "train"}, "test": {"role": "test", "measures": {"RR@10": "RR@10"}}}


@pytest.fixture
def base(tmp_path: Path) -> Collection:
    """300 documents; 40 training queries with one each, 5 test queries with three, one judged not to fit."""
    train = [Judgment(f"t{number}", f"d{number}", 1) for number in range(40)]
    test = [Judgment(f"q{number}", f"d{100 + 3 * number + k}", 1 - k // 2) for number in range(5) for k in range(3)]
    write_collection(
        tmp_path / "base",
        ({"_id": f"d{number}", "title": "", "text": f"text {number}", "url": f"u{number}"} for number in range(300)),
        (
            {"_id": each, "text": f"what is {each}", "metadata": {"cluster": each[0]}}
            for each in [*(f"t{number}" for number in range(40)), *(f"q{number}" for number in range(5)), "unjudged"]
        ),
        {"train": train, "test": test},
        form=Form((("url", "text"),)),
        answers=({"_id": f"{kind}{number}", "answers": ["yes"]} for kind in "qt" for number in range(5)),
    )
    return Collection(tmp_path / "base")


@pytest.fixture
def articles(tmp_path: Path) -> Collection:
    """20 articles of two passages; each links to the next."""
    names = [f"page-{number}" for number in range(20)]
    write_collection(
        tmp_path / "articles",
        ({"_id": f"{name}-{k}", "title": name, "text": f"said {k}"} for name in names for k in range(2)),
        [],
        {},
        [
            {
                "_id": name,
                "title": name,
                "sections": [{"title": "", "sentences": ["said 0", "said 1"]}],
                "links": [{"section": 0, "to": names[number - 1], "anchor": 0, "origin": "prose"}],
            }
            for number, name in enumerate(names)
        ],
    )
    return Collection(tmp_path / "articles")


def part(base: Collection, name: str, **fields: Any) -> tuple[Collection, dict[str, Any]]:
    given = {"splits": SPLITS} | fields
    spec = SubsetFields.model_validate({"kind": "subset", "of": "base", **given}).resolve()
    folder = base.folder.parent / name
    counts = kinds.build_collection("subset", {**spec, "impl": 1, "collection": "x"}, folder, base=base.folder)
    return Collection(folder), counts


def ids(collection: Collection) -> list[str]:
    return [row["_id"] for row in collection.corpus()]


def linked(collection: Collection) -> set[tuple[str, str]]:
    return {(row["_id"], link["to"]) for row in collection.articles() for link in row["links"]}


def test_what_is_judged_for_a_query_that_stays_is_never_left_out(base: Collection) -> None:
    small, counts = part(base, "small", passages=30, train_queries=8)
    assert counts["passages"] == 30
    assert counts["splits"] == {"test": {"queries": 5, "judgments": 15}, "train": {"queries": 8, "judgments": 8}}
    assert small.qrels("test") == base.qrels("test"), "with what is judged not to fit"
    kept = set(ids(small))
    for split in ("train", "test"):
        for query, grades in small.qrels(split).items():
            assert grades == base.qrels(split)[query]
            assert grades.keys() <= kept


def test_nothing_but_what_is_asked_for_stays_and_rows_stay_as_they_were(base: Collection) -> None:
    small, _ = part(base, "small", passages=30, train_queries=8)
    judged = {query for split in ("train", "test") for query in small.qrels(split)}
    assert set(small.queries()) == judged
    assert set(small.answers()) == judged & base.answers().keys()
    assert small.clusters() == {query: query[0] for query in judged}
    rows = {row["_id"]: row for row in base.corpus()}
    assert all(row == rows[row["_id"]] for row in small.corpus())
    assert ids(small) == [name for name in ids(base) if name in set(ids(small))], "in the same order"
    assert Form.read(small.folder) == Form.read(base.folder)


def test_a_larger_part_contains_a_smaller_one_and_the_same_part_has_the_same_bytes(base: Collection) -> None:
    small, _ = part(base, "small", passages=60, train_queries=8)
    same, _ = part(base, "same", passages=60, train_queries=8)
    wide, _ = part(base, "wide", passages=120, train_queries=8)
    queries, _ = part(base, "queries", passages=120, train_queries=20)
    assert {path.name: path.read_bytes() for path in small.folder.glob("*.gz")} == {
        path.name: path.read_bytes() for path in same.folder.glob("*.gz")
    }
    assert set(ids(small)) < set(ids(wide))
    assert set(small.qrels("train")) < set(queries.qrels("train"))


def test_without_a_number_all_of_it_stays(base: Collection) -> None:
    whole, _ = part(base, "whole", splits={"test": SPLITS["test"]})
    assert ids(whole) == ids(base)
    assert whole.splits() == ["test"]
    few, _ = part(base, "few", train_queries=3)
    assert ids(few) == ids(base)
    assert len(few.qrels("train")) == 3


def test_articles_stay_whole_with_the_links_between_them_and_without_passages(articles: Collection) -> None:
    small, counts = part(articles, "pages", articles=12, splits={})
    kept = [row["_id"] for row in small.articles()]
    assert counts["articles"] == len(kept) == 12
    assert ids(small) == [], "it is only pre-trained on"
    expected = {(name, to) for name, to in linked(articles) if {name, to} <= {*kept}}
    assert linked(small) == expected
    assert 0 < len(expected) < 12
    fewer, _ = part(articles, "fewer", articles=5, splits={})
    assert {row["_id"] for row in fewer.articles()} < set(kept)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"passages": 10}, "55 documents are judged, and only 10 may stay; raise `passages`"),
        ({"passages": 301}, "there are 245 documents besides the judged ones, and 246 are to stay; lower the number"),
        ({"train_queries": 41}, "there are 40 queries of split 'train', and 41 are to stay"),
        ({"splits": {"graded": {"role": "graded"}}}, "has no split 'graded'; it has test, train"),
        ({"articles": 1, "splits": {}}, "there are 0 articles, and 1 are to stay"),
    ],
)
def test_what_cannot_be_had_is_refused(base: Collection, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(EncoreError, match=says):
        part(base, "refused", **fields)


def test_articles_are_not_cut_up(articles: Collection) -> None:
    with pytest.raises(EncoreError, match="which `passages` would cut up; choose whole `articles`"):
        part(articles, "refused", passages=10, splits={})
    with pytest.raises(ValueError, match="`articles` chooses whole articles"):
        SubsetFields.model_validate({"kind": "subset", "of": "x", "articles": 3, "passages": 10})


@pytest.fixture
def planned(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], Plan]:
    """A plan with datasets of one's own, the first of which stands for MS MARCO's passages."""
    monkeypatch.chdir(ROOT)

    def plan(datasets: dict[str, Any]) -> Plan:
        content = copy.deepcopy(NANO) | {"datasets": datasets}
        content["scale"]["datasets"]["msmarco-passage"] = next(iter(datasets))
        return Plan(RunConfig.model_validate(content), catalogue)

    return plan


def subset(of: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "subset", "of": of, "splits": SPLITS, **fields}


def test_a_part_that_stands_for_the_whole_is_made_of_the_whole_itself(planned: Callable[..., Plan]) -> None:
    plan = planned({"marco-small": subset("msmarco-passage", passages=1000)})
    made = plan.collection("msmarco-passage")
    assert made.name.startswith("marco-small-")
    assert made.inputs["collection"].name.startswith("msmarco-passage-")
    assert made.inputs["collection"].inputs["fetched"].folder.startswith("results/ir_datasets/msmarco-passage-")
    other = planned({"marco-small": subset("msmarco-passage", passages=1001)}).collection("msmarco-passage")
    assert other.name != made.name
    assert other.inputs["collection"] == made.inputs["collection"]


def test_a_part_of_a_part_can_be_had_and_a_circle_cannot(planned: Callable[..., Plan]) -> None:
    made = planned({"a": subset("b"), "b": subset("msmarco-passage")}).collection("a")
    assert [each.name.rpartition("-")[0] for each in made.ancestors()][-2:] == ["b", "a"]
    with pytest.raises(EncoreError, match=r"dataset 'a' is derived from itself \(a of b of a\); fix `of`"):
        planned({"a": subset("b"), "b": subset("a")}).collection("a")
    with pytest.raises(
        EncoreError, match="'a': `of` names the unknown dataset 'msmarco-pasage'; did you mean msmarco-p"
    ):
        planned({"a": {"kind": "subset", "of": "msmarco-pasage"}})


def test_a_part_has_the_splits_and_measures_of_the_whole(planned: Callable[..., Plan]) -> None:
    plan = planned(
        {"a": {"kind": "subset", "of": "msmarco-document", "passages": 9}, "b": {"kind": "subset", "of": "a"}}
    )
    whole = plan.resolve.own("msmarco-document").fields
    for name in ("a", "b"):
        fields = plan.resolve.own(name).fields
        assert {split: each.measures for split, each in fields.splits.items()} == {
            split: each.measures for split, each in whole.splits.items()
        }
        assert fields.length == whole.length == 512
        assert plan.scores("bm25", None, name, "graded").spec["splits"] == {"graded": whole.splits["graded"].measures}


def test_a_part_cannot_be_judged_by_answers(planned: Callable[..., Plan]) -> None:
    fields = planned({"a": {"kind": "subset", "of": "nq-open", "passages": 9}}).resolve.own("a").fields
    assert (set(fields.splits), set(fields.absent)) == ({"train", "valid"}, {"test"})


def test_a_part_and_one_with_titles_are_scored_as_the_whole(planned: Callable[..., Plan]) -> None:
    titled = {"kind": "with-titles", "of": "own", "titles": "msmarco-titles", "splits": {}}
    own = {"kind": "beir", "path": "x", "ignore_identical_ids": True, "ignore_copies": True, "zero_shot": True}
    plan = planned(
        {
            "small": {"kind": "subset", "of": "own", "passages": 9},
            "own": {**own, "splits": SPLITS},
            "splits": subset("own", zero_shot=False),
            "titled": titled,
        }
    )
    flags = {
        name: (fields.ignore_identical_ids, fields.ignore_copies, fields.zero_shot)
        for name in ("small", "splits", "titled")
        if (fields := plan.resolve.own(name).fields)
    }
    assert flags == {"small": (True, True, True), "splits": (True, True, False), "titled": (True, True, True)}

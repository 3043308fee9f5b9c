"""What is only pre-trained on has articles and no passages: objectives learn the same, and nothing else is planned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore import objectives
from encore.commands.preflight.sizes import SIZES, CollectionSizes, read_stated
from encore.data import article_texts, vocabulary
from encore.data.articles import write_article_collection
from encore.data.collection import Collection, write_collection
from encore.data.tokens import TokenStore, write_store
from encore.datasets import kinds
from encore.datasets.reqa import published
from encore.datasets.wikipedia import WikipediaFields
from encore.errors import EncoreError
from encore.plan.artifacts import inspections
from encore.plan.artifacts.collections import named_collection, tokens
from encore.plan.lineage import Lineage
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from tests.support.shipped import run_file
from tests.support.small_dump import Wiki, write

ROOT = Path(__file__).parents[3]
NANO = run_file("nano")
PAGES = [
    Wiki(
        f"Owl {n}", f"An '''owl''' of kind {n} hunts by night. It sleeps by day.\n== Food ==\nIt fears [[Owl {n + 1}]]."
    )
    for n in range(8)
]
STEP = {"kind": "pretrain", "collection": "c", "steps": 1, "batch": 4, "learning_rate": 1e-3, "length": 24}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[TokenStore, TokenStore]:
    """The same articles alone, and with the passages that they are cut into."""
    home = tmp_path_factory.mktemp("home")
    dump = write(home / "enwiki.xml", PAGES)
    fields = WikipediaFields.model_validate({"kind": "wikipedia", "path": str(dump)})
    kinds.build_collection("wikipedia", fields.resolve(), home / "alone", source=dump, processes=2)
    alone = Collection(home / "alone")
    write_collection(home / "both", published.passages_of(alone), (), {}, alone.articles())
    pieces = vocabulary.train(article_texts.VocabularyTexts(alone), 120)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(pieces), home / "tokenizer")
    for name in ("alone", "both"):
        write_store(Collection(home / name), home / "tokenizer", home / f"tokens-{name}")
    return TokenStore(home / "tokens-alone"), TokenStore(home / "tokens-both")


def test_all_but_passages_has_the_same_bytes(stores: tuple[TokenStore, TokenStore]) -> None:
    alone, both = (
        {path.relative_to(store.folder): path.read_bytes() for path in store.folder.rglob("*") if path.is_file()}
        for store in stores
    )
    differing = {path.name.partition(".")[0] for path in both if alone[path] != both[path]}
    assert alone.keys() == both.keys()
    assert differing == {"passages"}
    assert (len(stores[0].passages), len(stores[1].passages)) == (0, 16)


@pytest.mark.parametrize("name", ["mlm", "ict", "bfs", "wlp", "bow"])
def test_objectives_learn_from_the_same_examples(name: str, stores: tuple[TokenStore, TokenStore]) -> None:
    objective = objectives.load(name)
    tasks = [objective(objective.Fields.model_validate(STEP | {"objective": name}), store) for store in stores]
    assert len(tasks[0]) == len(tasks[1]) > 0
    for index in range(len(tasks[0])):
        one, other = (task.example(index, np.random.default_rng(index)) for task in tasks)
        np.testing.assert_equal(one, other)


def test_packed_articles_are_the_same_bytes_for_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("encore.data.articles.TOGETHER", 3)
    section = {"title": "", "sentences": ["It is."]}
    rows = [{"_id": str(n), "title": f"T{n}", "sections": [section], "links": []} for n in range(10)]
    made = []
    for processes in (1, 3):
        write_article_collection(tmp_path / str(processes), rows, {}, processes)
        made.append((tmp_path / str(processes) / "articles.jsonl.gz").read_bytes())
    assert made[0] == made[1]
    assert list(Collection(tmp_path / "1").articles()) == rows


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def planned(datasets: dict[str, Any]) -> Plan:
    return load_plan(Path("config/own.yaml"), {**NANO, "datasets": datasets})


@pytest.mark.usefixtures("at_the_root")
@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "subset", "of": "wikipedia", "passages": 9},
        {"kind": "with-titles", "of": "wikipedia", "titles": "msmarco-titles", "splits": {}},
    ],
)
def test_what_is_made_of_its_passages_is_refused_before_any_job(entry: dict[str, Any]) -> None:
    with pytest.raises(EncoreError, match=r"'a' is made of passages, and 'wikipedia' has articles only.*`of`"):
        named_collection(planned({"a": entry}), "a")


@pytest.mark.usefixtures("at_the_root")
def test_distractors_and_parts_of_it_are_planned() -> None:
    plan = planned({"a": {"kind": "subset", "of": "wikipedia", "articles": 9}})
    for name in ("a", "nq-reqa-open"):
        assert named_collection(plan, name).inputs["collection"].stage == "collection.wikipedia"
    sizes = CollectionSizes(plan, read_stated(SIZES))
    assert [sizes.of(f"{name}-00000000").passages.count for name in ("a", "wikipedia")] == [0, 0]


@pytest.mark.usefixtures("at_the_root")
def test_a_figure_of_its_passages_is_refused_and_one_of_a_given_text_is_planned() -> None:
    plan = load_plan(Path("config/paper.yaml"))
    lineage = plan.resolve.lineage("bert-base+cpdae")
    with pytest.raises(EncoreError, match=r"'wikipedia' has articles only, to pre-train on, and no passage to show"):
        inspections.of_vectors(plan, lineage, 0, "wikipedia")
    shown = inspections.of_texts(plan, lineage, 0, "wikipedia", {"kind": "heat", "length": 64, "text": "An owl."})
    assert shown.inputs["tokens"] == tokens(plan, "wikipedia", plan.resolve.backbone(Lineage("bert-base")))

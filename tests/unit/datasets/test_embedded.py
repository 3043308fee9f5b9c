"""The collections that Encore ships: what the catalogue names is there, and nothing learned from says a test query."""

from collections.abc import Callable
from itertools import combinations

import pytest

from encore.data.collection import Collection
from encore.datasets import archives, kinds
from encore.plan.catalogue import Catalogue
from tools.pydocs.splits import HeldOutQueries

Built = Callable[[str], Collection]


@pytest.fixture(scope="module")
def built(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("embedded")

    def build(name: str) -> Collection:
        if not (folder / name).exists():
            fields = catalogue.datasets[name]
            kinds.build_collection(fields.kind, fields.resolve(), folder / name)
        return Collection(folder / name)

    return build


def embedded(catalogue: Catalogue) -> list[str]:
    return [name for name, fields in catalogue.datasets.items() if fields.embedded]


def test_every_licence_is_beside_the_texts() -> None:
    names = {path.stem for path in (archives.EMBEDDED_FOLDER / "licences").iterdir()}
    assert names == {"python", "matplotlib", "networkx", "numpy", "pandas", "scikit-learn", "scipy", "sympy"}


@pytest.mark.slow
def test_every_collection_has_the_splits_of_its_entry(catalogue: Catalogue, built: Built) -> None:
    assert len(embedded(catalogue)) == 14
    for name in embedded(catalogue):
        splits = catalogue.datasets[name].splits
        assert all(built(name).qrels(split) for split in splits), name


@pytest.mark.slow
def test_collections_that_are_apart_share_no_query_and_no_document(catalogue: Catalogue, built: Built) -> None:
    together = [name for name in embedded(catalogue) if catalogue.datasets[name].apart_from]
    assert len(together) == 7
    assert {each for name in together for each in catalogue.datasets[name].apart_from} == {"pydocs-python"}
    texts = {
        name: {*built(name).queries().values(), *(row["_id"] for row in built(name).corpus())}
        for name in [*together, "pydocs-python"]
    }
    assert not [pair for pair in combinations(texts, 2) if texts[pair[0]] & texts[pair[1]]]
    assert texts["pydocs-numpy"] & {row["_id"] for row in built("pydocs").corpus()}, "they are parts of pydocs"


@pytest.mark.slow
def test_no_text_that_is_learned_from_says_a_held_out_query(built: Built) -> None:
    pydocs, documents = built("pydocs"), built("pydocs-documents")
    queries = pydocs.queries()
    asked = [queries[query] for split in ("valid", "test") for query in pydocs.qrels(split)]
    held_out = HeldOutQueries(asked)
    sentences = [section["sentences"] for article in pydocs.articles() for section in article["sections"]]
    assert (len(asked), len(sentences)) == (3692, 11499)
    assert held_out.containing([asked[0]]), "it would be found"
    assert not [number for number, texts in enumerate(sentences) if held_out.containing(texts)]
    assert not [name for name, texts in documents.texts() if held_out.containing(texts)]

"""A growing collection: nested corpora, search in a part of the vectors, and the plan of its figure."""

import json
from copy import deepcopy
from itertools import pairwise

import faiss
import numpy as np
import pytest

from encore.config.run import RunConfig
from encore.data.rankings import Ranking
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.figures.plan import figure_plan
from encore.products.targets import check_target, everything_declared
from encore.retrieval import nested_corpora
from encore.retrieval.dense import Searcher, Shard
from encore.storage.document_ids import DocIds
from encore.storage.files import open_text_writer
from tests.support.shipped import run_file
from tests.support.small_reads import figure_reads

NANO = run_file("nano")
CORPUS = [f"d{number}" for number in range(50)]
NAME = "corpus_growth"
FIGURE = {"systems": {"Plain": "bert-base+marco-bm25"}, "queries": 20, "depth": 10, "sizes": [0.5, 900]}


def ranking(*documents):
    return Ranking(list(documents), np.arange(len(documents), 0, -1, dtype=np.float32))


def grown(order=0, depth=2):
    run = {"p": ranking("d1", "d2", "d3"), "q": ranking("d2", "d9", "d4")}
    return nested_corpora.ordered(CORPUS, {"d7", "d1"}, run, depth, order)


def written(folder, first, rest):
    for name, documents in ((nested_corpora.START, first), (nested_corpora.REST, rest)):
        with open_text_writer(folder / name) as file:
            file.writelines(f"{document}\n" for document in documents)
    return folder


def test_it_starts_from_what_is_relevant_and_from_the_first_ranks():
    first, rest = grown()
    assert first == ["d1", "d2", "d7", "d9"]
    assert sorted([*first, *rest]) == sorted(CORPUS)
    assert grown(depth=3)[0] == ["d1", "d2", "d3", "d4", "d7", "d9"]


def test_the_order_is_drawn_and_the_same_for_all_systems():
    assert grown()[1] == grown()[1] != grown(order=1)[1]
    assert grown()[1] != sorted(grown()[1], key=CORPUS.index)


def test_to_join_is_equally_likely_for_all():
    """Over 400 orders each of 46 passages is among the first 23 in about half: within 4.5 standard deviations."""
    times = np.zeros(len(CORPUS))
    for order in range(400):
        times[[CORPUS.index(name) for name in grown(order=order)[1][:23]]] += 1
    joined = times[times > 0]
    assert len(joined) == 46
    assert np.abs(joined - 200).max() < 4.5 * np.sqrt(400 / 4)


def test_a_larger_collection_contains_a_smaller_one(tmp_path):
    folder = written(tmp_path, *grown())
    parts = [nested_corpora.members(folder, size) for size in ("start", 10, 0.5, 49, 50)]
    assert [len(part) for part in parts] == [4, 10, 25, 49, 50]
    assert all(a < b for a, b in pairwise(parts))


@pytest.mark.parametrize("size", [3, 0.01, 51])
def test_a_size_that_cannot_be_is_refused_with_both_ends(tmp_path, size):
    with pytest.raises(EncoreError, match="starts from 4 and has 50"):
        nested_corpora.members(written(tmp_path, *grown()), size)


@pytest.mark.parametrize("cuts", [[], [1024], [1024, 2048]])
def test_search_in_a_part_finds_what_products_with_that_part_say(cuts):
    """An oracle of its own: products of the kept vectors in float64, by score and descending id."""
    generator = np.random.default_rng(2)
    vectors = generator.normal(size=(2500, 16)).astype(np.float32)
    queries = generator.normal(size=(25, 16)).astype(np.float32)
    documents = [f"d{number}" for number in generator.permutation(2500)]
    members = set(generator.permutation(documents)[:300].tolist())
    shards = []
    for a, b in pairwise([0, *cuts, 2500]):
        index = faiss.IndexFlatIP(16)
        index.add(vectors[a:b])
        shards.append(Shard(index, DocIds.of(documents[a:b])))
    run = Searcher(shards, members=members).search([str(n) for n in range(25)], queries, 20)
    for number, query in enumerate(queries):
        products = vectors.astype(np.float64) @ query.astype(np.float64)
        pairs = [(p, d) for p, d in zip(products.tolist(), documents, strict=True) if d in members]
        assert run[str(number)].documents == [name for _, name in sorted(pairs, reverse=True)[:20]]
    whole = Searcher(shards).search(["q"], queries[:1], 20)["q"]
    everything = Searcher(shards, members=set(documents)).search(["q"], queries[:1], 20)["q"]
    assert everything.documents == whole.documents


def test_a_part_smaller_than_the_depth_is_ranked_whole():
    index = faiss.IndexFlatIP(4)
    index.add(np.eye(4, dtype=np.float32))
    held = Searcher([Shard(index, DocIds.of(["a", "b", "c", "d"]))], members={"b", "d"})
    assert held.passages == 2
    assert held.search(["q"], np.ones((1, 4), dtype=np.float32), 3)["q"].documents == ["d", "b"]


# Plans


def make(**changes):
    """A run that draws the figure of our own, with other systems and sizes."""
    content = deepcopy(NANO) | {"tables": {}, "figures": [NAME]}
    content["scale"]["figures"] = {NAME: FIGURE | changes}
    return Plan(RunConfig.model_validate(content), load_catalogue())


pytestmark = pytest.mark.usefixtures("at_the_root")


def test_each_size_masks_the_vectors_of_the_run_over_all():
    plan = make()
    (row,) = figure_plan(plan, NAME).dumped()["rows"]
    assert [point["size"] for point in row["points"]] == ["start", 0.5, 900, "all"]
    runs = [plan.find(point["run"]) for point in row["points"]]
    whole = runs[-1]
    assert "subset" not in whole.inputs
    for run in runs[:-1]:
        assert {role: each for role, each in run.inputs.items() if role != "subset"} == whole.inputs
        assert run.inputs["subset"].stage == "nested_corpora"
    assert len({run.inputs["subset"].folder for run in runs[:-1]}) == 1
    assert len({run.folder for run in runs}) == 4
    assert runs[1].folder.split("/")[-1].startswith("pydocs-stdlib.test.20.50pct-")
    assert f"results/figures/{NAME}.png" in everything_declared(plan)
    assert json.dumps(figure_plan(plan, NAME).dumped())


def test_its_targets_are_found():
    check_target(make(), f"results/figures/{NAME}.svg")
    plan = make()
    for artifact in figure_reads(make(), NAME):
        check_target(plan, artifact.manifest)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"systems": {"BM25": "bm25"}}, "not a lineage searched exactly"),
        ({"systems": {"HNSW": "bert-base+marco-bm25@hnsw"}}, "not a lineage searched exactly"),
        ({"systems": {"x": "bert-base+marco-bm52"}}, "did you mean marco-bm25"),
        ({"panels": [{"label": "RR", "split": "tset", "measure": "RR@10"}]}, "has no split 'tset'; did you mean test"),
    ],
)
def test_a_wrong_figure_is_explained_in_one_line(changes, says):
    with pytest.raises(EncoreError, match=says) as refused:
        figure_plan(make(**changes), NAME).dumped()
    assert "\n" not in str(refused.value)

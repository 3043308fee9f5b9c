"""Exact search: against a NumPy ranking, in any division into shards, ties at the cut included."""

from itertools import pairwise
from types import SimpleNamespace

import faiss
import numpy as np
import pytest
import torch

from encore.errors import EncoreError
from encore.retrieval import dense
from encore.retrieval.dense import LONG, SPARE, Searcher, Shard, open_shard, open_shards, speed_line
from encore.storage.document_ids import DocIds
from tests.support.small_shard import write_shard

DIMENSION = 64


class Passages(list):
    """What is needed of the token store's passages."""

    def __init__(self, names):
        super().__init__(names)
        self.names = names


def shard(vectors, documents):
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(np.ascontiguousarray(vectors, dtype=np.float32))
    return Shard(index, DocIds.of(documents))


def divided(vectors, documents, cuts):
    bounds = [0, *cuts, len(documents)]
    return [shard(vectors[a:b], documents[a:b]) for a, b in pairwise(bounds)]


def by_hand(vectors, documents, query, depth):
    """The ranking by definition: float64 products, then score and id, both descending."""
    scores = vectors.astype(np.float64) @ query.astype(np.float64)
    return [name for _, name in sorted(zip(scores.tolist(), documents, strict=True), reverse=True)][:depth]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    documents = [f"d{number}" for number in rng.permutation(2500)]
    return (
        rng.standard_normal((2500, DIMENSION)).astype(np.float32),
        documents,
        rng.standard_normal((40, DIMENSION)).astype(np.float32),
    )


def test_ranking_is_the_one_by_definition(data):
    vectors, documents, queries = data
    names = [f"q{i}" for i in range(40)]
    run = Searcher([shard(vectors, documents)]).search(names, queries, 20)
    assert list(run) == names
    for name, query in zip(names, queries, strict=True):
        assert run[name].documents == by_hand(vectors, documents, query, 20)
        assert run[name].scores.dtype == np.float32
        assert np.allclose(run[name].scores, np.sort(vectors @ query)[::-1][:20], atol=1e-5)


@pytest.mark.parametrize("depth", [10, 300])
@pytest.mark.parametrize("cuts", [[1024], [2048], [1024, 2048], [0, 1024]])
def test_shards_change_no_byte(data, cuts, depth):
    vectors, documents, queries = data
    queries = np.tile(queries, (52, 1))  # enough for FAISS to multiply matrices, and more than a batch
    names = [str(i) for i in range(len(queries))]
    whole = Searcher([shard(vectors, documents)]).search(names, queries, depth)
    parts = Searcher(divided(vectors, documents, cuts)).search(names, queries, depth)
    for name in names:
        assert parts[name].documents == whole[name].documents
        assert parts[name].scores.tobytes() == whole[name].scores.tobytes()


@pytest.mark.parametrize("cuts", [[], [100], [3, 700]])
def test_a_tie_at_the_cut_is_complete(cuts):
    """300 equal vectors, many more than the spare ranks: the highest ids must be kept, whichever FAISS meets first."""
    vectors = np.zeros((900, DIMENSION), dtype=np.float32)
    vectors[:5, 0], vectors[5:305, 0] = 2.0, 1.0
    documents = [f"d{number:03d}" for number in range(900)]
    assert SPARE < 290
    run = Searcher(divided(vectors, documents, cuts)).search(["q"], np.eye(DIMENSION, dtype=np.float32)[:1], 10)
    assert run["q"].documents == ["d004", "d003", "d002", "d001", "d000", "d304", "d303", "d302", "d301", "d300"]
    assert run["q"].scores.tolist() == [2.0] * 5 + [1.0] * 5


@pytest.mark.parametrize("depth", [1, 20, 300])
def test_ties_at_many_ranks_go_to_the_higher_ids(depth):
    """Small whole numbers, whose products have few values and no rounding."""
    rng = np.random.default_rng(2)
    vectors, queries = (rng.integers(-1, 2, (count, DIMENSION)).astype(np.float32) for count in (1500, 70))
    documents, names = [f"d{number}" for number in rng.permutation(1500)], [f"q{i}" for i in range(70)]
    run = Searcher([shard(vectors, documents)]).search(names, queries, depth)
    for name, query in zip(names, queries, strict=True):
        assert run[name].documents == by_hand(vectors, documents, query, depth)


def test_hits_that_are_cut_off_are_not_kept():
    """Of a view numpy keeps the whole: the hits of all shards, for each batch of queries."""
    for kept in dense.ordered(
        np.zeros((2, 9), np.float32), np.arange(18).reshape(2, 9), 3, DocIds.of(map(str, range(18)))
    ):
        assert kept.base is None


def test_a_query_without_tokens_is_refused():
    store = SimpleNamespace(folder="tokens", queries=SimpleNamespace(names=DocIds.of(["q1"])))
    encoder = torch.nn.Linear(1, 1)
    with pytest.raises(EncoreError, match="tokens lacks the query 'q2'; make the tokens again"):
        dense.embed_queries(encoder, store, ["q1", "q2"], 8, {"precision": "fp32"})


def test_zeros_of_both_signs_tie():
    vectors = np.zeros((3, DIMENSION), dtype=np.float32)
    vectors[1, 0], vectors[2, 0] = 1e-30, -1e-30
    query = np.full((1, DIMENSION), 1e-30, dtype=np.float32)
    run = Searcher([shard(vectors, ["b", "c", "a"])]).search(["q"], query, 3)
    assert run["q"].documents == ["c", "b", "a"]
    assert not np.signbit(run["q"].scores).any()


def test_a_collection_smaller_than_the_depth_is_ranked_whole(data):
    vectors, documents, queries = data
    run = Searcher(divided(vectors[:30], documents[:30], [7])).search(["q"], queries[:1], 1000)
    assert sorted(run["q"].documents) == sorted(documents[:30])


def folder_of(path, vectors, documents):
    path.mkdir()
    faiss.write_index(shard(vectors, documents).index, str(path / "index"))
    (path / "docid").write_text("".join(f"{name}\n" for name in documents))
    return path


def test_shards_must_hold_the_collection(data, tmp_path):
    vectors, documents, _ = data
    one = folder_of(tmp_path / "one", vectors[:50], documents[:50])
    two = folder_of(tmp_path / "two", vectors[50:90], documents[50:90])
    assert [len(each.documents) for each in open_shards([two, one], documents[:90], DIMENSION)] == [40, 50]
    for folders in ([one], [one, one], [one, two, two]):
        with pytest.raises(EncoreError, match=r"a shard is missing, given twice"):
            open_shards(folders, documents[:90], DIMENSION)
    with pytest.raises(EncoreError, match="64 dimensions, queries have 8"):
        open_shards([one, two], documents[:90], 8)


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_vectors_come_in_the_order_of_the_tokens(tmp_path, order):
    """Whatever the order of the shards, and of the documents in each."""
    names, vectors = DocIds.of("abcd"), np.arange(16, dtype=np.float32).reshape(4, 4)
    for name, rows in (("one", [0, 1]), ("two", [3, 2])):
        write_shard(tmp_path / name, names.take(np.array(rows)), 4, [vectors[rows]])
    store = SimpleNamespace(passages=Passages(names))
    assert np.array_equal(dense.vectors_by_row([tmp_path / name for name in order], store, 4), vectors)


def test_a_damaged_shard_is_one_clear_line(data, tmp_path):
    vectors, documents, _ = data
    folder = folder_of(tmp_path / "one", vectors[:50], documents[:50])
    index = (folder / "index").read_bytes()
    for content in (index[: len(index) // 2], b"", b"not an index at all"):
        (folder / "index").write_bytes(content)
        with pytest.raises(EncoreError, match="not readable") as caught:
            open_shard(folder)
        assert "\n" not in str(caught.value)
        assert str(folder) in str(caught.value)
    (folder / "index").write_bytes(index)
    (folder / "docid").write_text("d1\nd2\n")
    with pytest.raises(EncoreError, match="50 vectors for 2 documents"):
        open_shard(folder)
    (folder / "docid").unlink()
    with pytest.raises(EncoreError, match="not readable"):
        open_shard(folder)


def test_a_search_says_how_fast_it_was_and_names_a_slow_machine(data):
    vectors, documents, queries = data
    searcher = Searcher([shard(vectors, documents)])
    for _ in range(2):
        searcher.search([f"q{number}" for number in range(40)], queries, 10)
    assert searcher.operations == 2 * 2 * 2500 * 40 * DIMENSION
    speed = searcher.speed()
    assert (speed["way"], speed["threads"]) == ("torch on cpu", torch.get_num_threads())
    assert speed["gflops"] == pytest.approx(searcher.operations / searcher.seconds / 1e9, rel=0.01)

    slow, usual = ({"way": "torch on cpu", "threads": 4, "gflops": rate} for rate in (12.5, 50.0))
    assert "where 200 are usual" in speed_line(slow, LONG)
    assert speed_line(usual, LONG) == "exact search by torch on cpu, threads: 4: 50.0 GFLOP/s"
    assert "usual" not in speed_line(slow, LONG - 1), "a short search says little"
    assert "usual" in speed_line({"way": "torch on cuda", "gflops": 500.0}, LONG)

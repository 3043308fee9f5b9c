"""Exact search by cheaper products: the ranking by definition, for vectors that make rounding hard, and its bound."""

from itertools import pairwise

import faiss
import numpy as np
import pytest
import torch

from encore.errors import EncoreError
from encore.retrieval import inner_products as products
from encore.retrieval import rescored, tiles
from encore.retrieval.dense import Searcher, Shard
from encore.storage.document_ids import DocIds

CPU = torch.device("cpu")
PASSAGES, QUERIES, DIMENSION, WANTED = 1500, 20, 40, 10
PRECISIONS = sorted(rescored.ROUND)


def ordinary(draw):
    return draw.standard_normal((PASSAGES, DIMENSION))


def near_tied(draw):
    """Clusters whose members differ by less than fp16 can tell."""
    return draw.standard_normal((60, DIMENSION))[draw.integers(0, 60, PASSAGES)] + 1e-5 * ordinary(draw)


def tied(draw):
    return draw.standard_normal((90, DIMENSION))[draw.integers(0, 90, PASSAGES)]


def huge(draw):
    return 1e15 * ordinary(draw)


def tiny(draw):
    return 1e-15 * ordinary(draw)


def of_all_norms(draw):
    """From below to above what fp16 holds, and those of the first tile."""
    return ordinary(draw) * 10.0 ** draw.uniform(-9, 9, (PASSAGES, 1))


def sparse(draw):
    """A few large numbers among many that fp16 has no bits for."""
    return ordinary(draw) * 10.0 ** draw.uniform(-12, 0, (1, DIMENSION))


def zeros_first(draw):
    return ordinary(draw) * (np.arange(PASSAGES) > 100)[:, None]


KINDS = [ordinary, near_tied, tied, huge, tiny, of_all_norms, sparse, zeros_first]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Several tiles, and far fewer candidates held than there are passages."""
    for device in ("cpu", "cuda"):
        monkeypatch.setitem(tiles.TILE, device, 64)
    monkeypatch.setitem(tiles.HELD, "cpu", 3)
    monkeypatch.setattr(rescored, "ROOM", 300)


def drawn(kind, seed):
    draw = np.random.default_rng(seed)
    vectors, queries = kind(draw).astype(np.float32), draw.standard_normal((QUERIES, DIMENSION))
    return vectors, (queries * 10.0 ** draw.integers(-6, 6, (QUERIES, 1))).astype(np.float32)


def by_definition(vectors, queries):
    """All scores: products and sums in float64, the second half of the terms added to the first, rounded to float32."""
    terms = queries.astype(np.float64)[:, None] * vectors.astype(np.float64)[None]
    while terms.shape[2] > 1:
        half = terms.shape[2] // 2
        rest = terms[:, :, 2 * half :]
        terms = np.concatenate([terms[:, :, :half] + terms[:, :, half : 2 * half], rest], axis=2)
    return terms[:, :, 0].astype(np.float32)


def finds_the_best(precision, kind, seed):
    """Whether the scores are those of the best passages and of the rows, byte for byte."""
    vectors, queries = drawn(kind, seed)
    search, every = rescored.search_in(precision, [vectors], CPU), by_definition(vectors, queries)
    scores, rows = search.best(torch.from_numpy(queries), WANTED)
    assert np.array_equal(np.take_along_axis(every, rows, 1), scores)
    assert all(len(set(found)) == WANTED for found in rows.tolist())
    return np.array_equal(scores, -np.sort(-every, axis=1)[:, :WANTED])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_best_are_those_by_definition(precision, kind):
    assert all(finds_the_best(precision, kind, seed) for seed in range(8))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_without_the_bound_they_are_not(precision, monkeypatch):
    monkeypatch.setattr(rescored.Rounding, "error", lambda self, queries: queries.norms * 0)
    assert not all(finds_the_best(precision, near_tied, seed) for seed in range(8))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_no_product_is_further_off_than_the_bound(precision, kind):
    """And the bound is no looser than both unit roundoffs and the sum's."""
    vectors, queries = map(torch.from_numpy, drawn(kind, 0))
    scale = 1 / float(vectors.abs().max())
    rounding, rounded = rescored.Rounding(precision, scale, CPU), rescored.RoundedQueries.of(queries, precision)
    rescored.multiply(rounded.numbers, rounding(vectors), found := torch.empty(QUERIES, PASSAGES))
    error = rounding.error(rounded)
    scaled = queries.double() / queries.double().abs().amax(1, keepdim=True)
    exact = scaled @ (vectors.double() * scale).T
    assert ((found - exact).abs() <= error[:, None]).all()
    norms = scaled.norm(dim=1) * (vectors.double() * scale).norm(dim=1).max()
    assert (error <= 1.01 * norms * (2 * 2.0**-11 + DIMENSION * 2.0**-22)).all()


def test_numbers_are_rounded_to_the_nearest():
    near = torch.tensor([1 + 2.0**-11 + 2.0**-20, 1 + 2.0**-11 - 2.0**-20, -3.0, 0.0], dtype=torch.float64)
    for precision in PRECISIONS:
        assert rescored.ROUND[precision](near).tolist() == [1 + 2.0**-10, 1.0, -3.0, 0.0]


def shard(vectors, documents):
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(vectors)
    return Shard(index, DocIds.of(documents))


@pytest.mark.parametrize("kind", [ordinary, near_tied, tied])
@pytest.mark.parametrize("depth", [1, 30])
def test_rankings_have_the_same_bytes_in_any_shards_batches_and_precision(kind, depth, monkeypatch):
    """Ties stand by descending id, all of them looked at."""
    vectors, queries = drawn(kind, 3)
    documents = [f"d{number:04d}" for number in np.random.default_rng(0).permutation(PASSAGES)]
    names = [str(number) for number in range(QUERIES)]
    every = by_definition(vectors, queries)
    for precision, cuts, batch in (("fp16", (), 64), ("fp16", (1, 700), 7), ("tf32", (0, 311), 64)):
        monkeypatch.setitem(products.BATCH, "cpu", batch)
        bounds = [0, *cuts, PASSAGES]
        parts = [shard(vectors[a:b], documents[a:b]) for a, b in pairwise(bounds)]
        run = Searcher(parts, products=precision).search(names, queries, depth)
        for name, scores in zip(names, every, strict=True):
            best = sorted(zip(scores.tolist(), documents, strict=True), reverse=True)[:depth]
            assert run[name].documents == [document for _, document in best]
            assert run[name].scores.tolist() == [score for score, _ in best]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_only_the_kept_are_searched(precision):
    vectors, queries = drawn(ordinary, 1)
    kept = np.random.default_rng(3).random(PASSAGES) < 0.3
    scores, rows = rescored.search_in(precision, [vectors], CPU).best(torch.from_numpy(queries), WANTED, kept)
    assert kept[rows].all()
    assert np.array_equal(scores, -np.sort(-by_definition(vectors[kept], queries), axis=1)[:, :WANTED])


def test_a_collapsed_model_is_searched_in_fp32_and_the_search_says_so():
    draw = np.random.default_rng(5)
    vectors = (np.ones((PASSAGES, DIMENSION)) + 1e-4 * ordinary(draw)).astype(np.float32)
    queries = (1 + draw.random((QUERIES, DIMENSION))).astype(np.float32)
    documents, names = [str(number) for number in range(PASSAGES)], [str(number) for number in range(QUERIES)]
    searcher = Searcher([shard(vectors, documents)], products="fp16")
    run = searcher.search(names, queries, WANTED)
    speed = searcher.speed()
    assert (speed["products"], speed["in_fp32"]) == ("fp16", QUERIES)
    best = -np.sort(-by_definition(vectors, queries), axis=1)[:, :WANTED]
    assert all(run[name].scores.tolist() == scores.tolist() for name, scores in zip(names, best, strict=True))
    usual = Searcher([shard(vectors, documents)])
    assert usual.speed()["products"] == "fp32"
    assert "in_fp32" not in usual.speed()


def test_fp32_is_searched_as_ever():
    """The bytes of torch's product of each tile, padded with zeros, and no other class."""
    vectors, queries = drawn(ordinary, 2)
    search = rescored.search_in("fp32", [vectors], CPU)
    assert type(search) is products.Fp32Search
    scores, rows = search.best(torch.from_numpy(queries), WANTED)
    padded = np.zeros((-(-PASSAGES // 64) * 64, DIMENSION), np.float32)
    padded[:PASSAGES] = vectors
    parts = [torch.mm(torch.from_numpy(queries), tile.T) for tile in torch.from_numpy(padded).split(64)]
    every = torch.cat(parts, 1)[:, :PASSAGES].numpy()
    assert scores.tobytes() == np.take_along_axis(every, rows, 1).tobytes()
    assert np.array_equal(scores, -np.sort(-every, axis=1)[:, :WANTED])


def test_another_precision_is_refused():
    with pytest.raises(EncoreError, match="products of exact search in 'fp8' are unknown; use one of fp32, tf32, fp16"):
        rescored.search_in("fp8", [np.zeros((1, 1), np.float32)], CPU)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("stay", ["none", "rounded", "both"])
def test_a_gpu_finds_the_bytes_of_the_cpu(stay, precision, kind, monkeypatch):
    """Whichever tiles stay on it."""
    vectors, queries = drawn(kind, 4)
    shards, gpu, every = [vectors[:500], vectors[500:]], torch.device("cuda"), by_definition(vectors, queries)
    fitting = {"none": [], "rounded": [True], "both": [True, True]}[stay]
    ours, _ = rescored.search_in(precision, [vectors], CPU).best(torch.from_numpy(queries), WANTED)
    monkeypatch.setattr(tiles.Tiles, "_fit", lambda *_: bool(fitting) and fitting.pop())
    search = rescored.search_in(precision, shards, gpu)
    there = [part.resident is not None for part in (search.tiles, search.exact.tiles)]
    assert there == {"none": [False, False], "rounded": [True, False], "both": [True, True]}[stay]
    theirs, rows = search.best(torch.from_numpy(queries).to(gpu), WANTED)
    assert ours.tobytes() == theirs.tobytes()
    assert np.array_equal(np.take_along_axis(every, rows, 1), theirs)


@pytest.mark.usefixtures("gpu")
def test_fp16_stays_in_half_the_memory_and_is_rounded_once(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (1 << 40, 1 << 40))
    vectors, queries = drawn(ordinary, 4)
    search = rescored.search_in("fp16", [vectors], torch.device("cuda"))
    assert search.tiles.resident.dtype == torch.float16
    norm = float(search.rounding.norm)
    monkeypatch.setattr(rescored.Rounding, "__call__", None)
    search.best(torch.from_numpy(queries).to("cuda"), WANTED)
    assert float(search.rounding.norm) == norm > 0


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_no_product_of_a_gpu_is_further_off_than_the_bound(precision):
    draw, gpu = torch.Generator("cuda").manual_seed(0), torch.device("cuda")
    vectors, queries = (torch.randn(size, 768, generator=draw, device=gpu) for size in (4096, 256))
    rounding, rounded = rescored.Rounding(precision, 0.25, gpu), rescored.RoundedQueries.of(queries, precision)
    found = torch.empty(256, 3 * 4096, device=gpu)[:, 4096:8192]
    with products.matrix_units(tf32=True):
        rescored.multiply(rounded.numbers, rounding(vectors), found)
    error = rounding.error(rounded)
    exact = queries.double() / queries.double().abs().amax(1, keepdim=True) @ (vectors.double() * 0.25).T
    assert ((found - exact).abs() <= error[:, None]).all()

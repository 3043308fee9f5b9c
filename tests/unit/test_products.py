"""The best inner products: against FAISS and float64, whatever the tiles, on the CPU's and on the GPU's path."""

import faiss
import numpy as np
import pytest
import torch

from encore.retrieval import products

CPU = torch.device("cpu")
PASSAGES, QUERIES, DIMENSION = 3000, 50, 32


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(7)
    vectors = generator.standard_normal((PASSAGES, DIMENSION)).astype(np.float32)
    return vectors, generator.standard_normal((QUERIES, DIMENSION)).astype(np.float32)


@pytest.fixture(params=["cpu", "cuda"])
def ranking(request, monkeypatch):
    """Either way to rank scores; torch's runs on CPU tensors as well."""
    monkeypatch.setitem(products.BEST, "cpu", products.BEST[request.param])


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setitem(products.TILE, "cpu", 64)
    monkeypatch.setitem(products.HELD, "cpu", 3)


@pytest.mark.usefixtures("ranking")
@pytest.mark.parametrize("wanted", [1, 10, 500, PASSAGES])
@pytest.mark.parametrize("tile", [64, 1024, 4096])
def test_they_are_those_of_faiss_and_of_float64(data, tile, wanted, monkeypatch):
    monkeypatch.setitem(products.TILE, "cpu", tile)
    vectors, queries = data
    scores, rows = products.Tiles(vectors, CPU).best(torch.from_numpy(queries), wanted)
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(vectors)
    theirs, _ = index.search(queries, wanted)
    assert scores.dtype == np.float32
    assert scores.shape == rows.shape == (QUERIES, wanted)
    np.testing.assert_allclose(scores, theirs, atol=2e-5)
    exact = queries.astype(np.float64) @ vectors.astype(np.float64).T
    np.testing.assert_allclose(np.take_along_axis(exact, rows, 1), scores, atol=2e-5)
    assert all(len(set(found)) == wanted for found in rows.tolist())


@pytest.mark.parametrize(("gigabytes", "tiles"), [(139, 4), (80, 4), (40, 3), (24, 2), (12, 1)])
def test_a_small_gpu_ranks_fewer_scores_together(gigabytes, tiles):
    """As ranking takes some of its memory, and their number decides no score."""
    assert products.held_in(gigabytes << 30) == tiles


@pytest.mark.usefixtures("ranking", "small_tiles")
@pytest.mark.parametrize("wanted", [5, 200])
def test_only_the_kept_are_searched(data, wanted):
    vectors, queries = data
    kept = np.random.default_rng(3).random(PASSAGES) < 0.1
    scores, rows = products.Tiles(vectors, CPU).best(torch.from_numpy(queries), wanted, kept)
    assert kept[rows].all()
    exact = np.sort((queries.astype(np.float64) @ vectors[kept].astype(np.float64).T), axis=1)[:, ::-1]
    np.testing.assert_allclose(scores, exact[:, :wanted], atol=2e-5)


@pytest.mark.parametrize("way", ["cpu", "cuda"])
@pytest.mark.parametrize("wanted", [1, 7, 60])
def test_any_scores_are_ranked_with_their_rows(way, wanted):
    """Many equal ones, both zeros, the smallest and largest there are, and infinite ones, which a mask leaves."""
    some = np.array([0.0, -0.0, 1.5, -1.5, 1e-45, -1e-45, 3e38, -3e38, -np.inf, np.inf], np.float32)
    scores = np.random.default_rng(0).choice(some, (40, 96))
    found = products.BEST[way](wanted)
    for first in range(0, 96, 24):
        found.add(torch.from_numpy(scores[:, first : first + 24]), first)
    best, rows = found.found()
    assert np.array_equal(best, -np.sort(-scores, axis=1)[:, :wanted])
    assert np.array_equal(np.take_along_axis(scores, rows, 1), best)
    assert all(len(set(each)) == wanted for each in rows.tolist())


@pytest.mark.usefixtures("small_tiles")
def test_both_ways_to_rank_find_the_same(data):
    vectors, queries = data
    found = []
    for way in ("cpu", "cuda"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(products.BEST, "cpu", products.BEST[way])
            found.append(products.Tiles(vectors, CPU).best(torch.from_numpy(queries), 100))
    (scores, rows), (others, theirs) = found
    assert scores.tobytes() == others.tobytes()
    tied = np.isin(scores, [value for each in scores for value in each[1:][each[1:] == each[:-1]]])
    assert tied.mean() < 0.01
    assert np.array_equal(rows[~tied], theirs[~tied])


def test_a_score_has_the_same_bytes_wherever_its_tile_begins(data):
    """Also in a mapped file, whose vectors need not begin at a multiple of four bytes."""
    vectors, queries = data
    whole, _ = products.Tiles(vectors, CPU).best(torch.from_numpy(queries), 1024)
    shifted = np.frombuffer(b"\0" + vectors[1024:2048].tobytes(), np.uint8)[1:].view(np.float32)
    scores, rows = products.Tiles(shifted.reshape(-1, DIMENSION), CPU).best(torch.from_numpy(queries), 1024)
    everything, places = products.Tiles(vectors, CPU).best(torch.from_numpy(queries), PASSAGES)
    for query in range(QUERIES):
        of_row = dict(zip(places[query].tolist(), everything[query].tolist(), strict=True))
        assert [of_row[row + 1024] for row in rows[query].tolist()] == scores[query].tolist()
    assert whole.tobytes() == everything[:, :1024].tobytes()


@pytest.mark.usefixtures("gpu")
def test_a_gpu_finds_what_the_cpu_finds(data):
    vectors, queries = data
    ours, _ = products.Tiles(vectors, CPU).best(torch.from_numpy(queries), 100)
    gpu = torch.device("cuda")
    theirs, _ = products.Tiles(vectors, gpu).best(torch.from_numpy(queries).to(gpu), 100)
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * float(np.linalg.norm(queries, axis=1).max()))


def test_products_are_in_fp32_where_models_compute_in_tf32(monkeypatch):
    """A GPU would round the factors; only what torch is told can be seen here."""
    told, ranked, cublas = [], products.Tiles.ranked, torch.backends.cuda.matmul

    def watched(*given):
        told.append(cublas.allow_tf32)
        return ranked(*given)

    monkeypatch.setattr(products.Tiles, "ranked", watched)
    for models in (True, False):
        cublas.allow_tf32 = models
        products.Tiles(np.eye(4, dtype=np.float32), CPU).best(torch.eye(4), 2)
        assert cublas.allow_tf32 is models
    assert told == [False, False]

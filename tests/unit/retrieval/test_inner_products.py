"""The best inner products: against FAISS and float64, whatever the tiles, on the CPU's and on the GPU's path."""

import faiss
import numpy as np
import pytest
import torch

from encore.retrieval import inner_products as products
from encore.retrieval import ranking, tiles
from encore.storage import progress
from tests.support.simulated_gpu import simulated_gpu

CPU = torch.device("cpu")
PASSAGES, QUERIES, DIMENSION = 3000, 50, 32


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(7)
    vectors = generator.standard_normal((PASSAGES, DIMENSION)).astype(np.float32)
    return vectors, generator.standard_normal((QUERIES, DIMENSION)).astype(np.float32)


@pytest.fixture(params=["cpu", "cuda"])
def way_to_rank(request, monkeypatch):
    """Either way to rank scores; torch's runs on CPU tensors as well."""
    monkeypatch.setitem(ranking.BEST, "cpu", ranking.BEST[request.param])


@pytest.fixture
def small_tiles(monkeypatch):
    for device in ("cpu", "cuda"):
        monkeypatch.setitem(tiles.TILE, device, 64)
    monkeypatch.setitem(tiles.HELD, "cpu", 3)
    monkeypatch.setitem(products.BATCH, "cuda", 16)


@pytest.mark.usefixtures("way_to_rank")
@pytest.mark.parametrize("wanted", [1, 10, 500, PASSAGES])
@pytest.mark.parametrize("tile", [64, 1024, 4096])
def test_they_are_those_of_faiss_and_of_float64(data, tile, wanted, monkeypatch):
    monkeypatch.setitem(tiles.TILE, "cpu", tile)
    vectors, queries = data
    scores, rows = products.ExactSearch([vectors], CPU).best(torch.from_numpy(queries), wanted)
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(vectors)
    theirs, _ = index.search(queries, wanted)
    assert scores.dtype == np.float32
    assert scores.shape == rows.shape == (QUERIES, wanted)
    np.testing.assert_allclose(scores, theirs, atol=2e-5)
    exact = queries.astype(np.float64) @ vectors.astype(np.float64).T
    np.testing.assert_allclose(np.take_along_axis(exact, rows, 1), scores, atol=2e-5)
    assert all(len(set(found)) == wanted for found in rows.tolist())


@pytest.mark.parametrize(
    ("gigabytes", "queries", "together"), [(37, 4096, 4), (5, 4096, 1), (1, 4096, 1), (37, 1, 18_000)]
)
def test_scores_of_few_queries_are_ranked_together(gigabytes, queries, together):
    """As ranking takes some of a GPU's memory, and the number of tiles decides no score."""
    assert products.held_in(gigabytes << 30, queries) == pytest.approx(together, rel=0.06)


@pytest.mark.parametrize("columns", [1, 64, 500, 3 * 1024])
@pytest.mark.parametrize("wanted", [1, 7, 60])
def test_the_largest_are_in_the_piles_with_the_largest_maxima(columns, wanted):
    """Also where many scores are equal, and next to others in memory."""
    wanted = min(columns, wanted)
    scores = torch.from_numpy(np.random.default_rng(1).integers(0, 200, (30, columns + 5)).astype(np.float32))[:, 5:]
    found, at = ranking.largest(scores, wanted)
    assert torch.equal(found.sort(descending=True).values, scores.sort(descending=True).values[:, :wanted])
    assert torch.equal(scores.gather(1, at), found)
    assert all(len(set(each)) == wanted for each in at.tolist())


@pytest.mark.usefixtures("way_to_rank", "small_tiles")
@pytest.mark.parametrize("wanted", [5, 200])
def test_only_the_kept_are_searched(data, wanted):
    vectors, queries = data
    kept = np.random.default_rng(3).random(PASSAGES) < 0.1
    scores, rows = products.ExactSearch([vectors], CPU).best(torch.from_numpy(queries), wanted, kept)
    assert kept[rows].all()
    exact = np.sort((queries.astype(np.float64) @ vectors[kept].astype(np.float64).T), axis=1)[:, ::-1]
    np.testing.assert_allclose(scores, exact[:, :wanted], atol=2e-5)


def test_a_long_search_says_how_far_it_is(data, small_tiles, capsys, monkeypatch):
    monkeypatch.setattr(progress, "TOLD", -1)  # seconds between two lines
    vectors, queries = data
    products.ExactSearch([vectors], CPU).best(torch.from_numpy(queries), 3)
    assert (
        f"{QUERIES} queries, {PASSAGES:,} passages: {PASSAGES:,} compared, " in capsys.readouterr().out.splitlines()[-1]
    )


@pytest.mark.parametrize("way", ["cpu", "cuda"])
@pytest.mark.parametrize("wanted", [1, 7, 60])
def test_any_scores_are_ranked_with_their_rows(way, wanted):
    """Many equal ones, both zeros, the smallest and largest there are, and infinite ones, which a mask leaves.

    There are more queries than are ranked together, and not a multiple of these.
    """
    some = np.array([0.0, -0.0, 1.5, -1.5, 1e-45, -1e-45, 3e38, -3e38, -np.inf, np.inf], np.float32)
    scores = np.random.default_rng(0).choice(some, (2 * ranking.TOGETHER + 3, 96))
    found = ranking.BEST[way](wanted)
    for first in range(0, 96, 24):
        found.add(torch.from_numpy(scores[:, first : first + 24]), first)
    best, rows = (each.numpy() for each in found.found())
    assert np.array_equal(best, -np.sort(-scores, axis=1)[:, :wanted])
    assert np.array_equal(np.take_along_axis(scores, rows, 1), best)
    assert all(len(set(each)) == wanted for each in rows.tolist())


@pytest.mark.usefixtures("small_tiles")
def test_both_ways_to_rank_find_the_same(data):
    vectors, queries = data
    found = []
    for way in ("cpu", "cuda"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(ranking.BEST, "cpu", ranking.BEST[way])
            found.append(products.ExactSearch([vectors], CPU).best(torch.from_numpy(queries), 100))
    (scores, rows), (others, theirs) = found
    assert scores.tobytes() == others.tobytes()
    tied = np.isin(scores, [value for each in scores for value in each[1:][each[1:] == each[:-1]]])
    assert tied.mean() < 0.01
    assert np.array_equal(rows[~tied], theirs[~tied])


def test_a_score_has_the_same_bytes_wherever_its_tile_begins(data):
    """Also in a mapped file, whose vectors need not begin at a multiple of four bytes."""
    vectors, queries = data
    whole, _ = products.ExactSearch([vectors], CPU).best(torch.from_numpy(queries), 1024)
    shifted = np.frombuffer(b"\0" + vectors[1024:2048].tobytes(), np.uint8)[1:].view(np.float32)
    scores, rows = products.ExactSearch([shifted.reshape(-1, DIMENSION)], CPU).best(torch.from_numpy(queries), 1024)
    everything, places = products.ExactSearch([vectors], CPU).best(torch.from_numpy(queries), PASSAGES)
    for query in range(QUERIES):
        of_row = dict(zip(places[query].tolist(), everything[query].tolist(), strict=True))
        assert [of_row[row + 1024] for row in rows[query].tolist()] == scores[query].tolist()
    assert whole.tobytes() == everything[:, :1024].tobytes()


def test_each_vector_is_read_once_for_as_many_queries_as_lists_have_memory_for(data, small_tiles, monkeypatch):
    """And how many these are decides no byte."""
    vectors, queries = data
    read, cuts = [], tiles.Tiles._cuts
    monkeypatch.setattr(tiles.Tiles, "_cuts", lambda *given: read.append(given) or cuts(*given))
    monkeypatch.setitem(products.BATCH, "cpu", 10)
    found = []
    for batches, passes in ((5, 1), (2, 3), (0, 5)):
        monkeypatch.setattr(products, "LISTS", batches * 10 * 100 * products.HIT)
        read.clear()
        found.append(products.ExactSearch([vectors], CPU).best(torch.from_numpy(queries), 100))
        assert len(read) == passes
    for scores, rows in found[1:]:
        assert scores.tobytes() == found[0][0].tobytes()
        assert rows.tobytes() == found[0][1].tobytes()


@pytest.mark.usefixtures("gpu", "small_tiles")
@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("memory", [0, 1 << 40])
def test_a_gpu_finds_what_the_cpu_finds(data, memory, kind, monkeypatch):
    """Where tiles stay on it and where they are copied anew, of several shards, for several batches of queries."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (memory, memory))
    vectors, queries = data[0].astype(kind), torch.from_numpy(data[1])
    shards, gpu = [vectors[:700], vectors[700:700], vectors[700:]], torch.device("cuda")
    kept = np.random.default_rng(3).random(PASSAGES) < 0.5
    search = products.ExactSearch(shards, gpu)
    assert (search.tiles.resident is not None) is (memory > 0)
    ours = products.ExactSearch(shards, CPU)
    near = 1e-5 * float(queries.norm(dim=1).max())
    for mask in (None, kept):
        scores, rows = ours.best(queries, 100, mask)
        theirs, found = search.best(queries.to(gpu), 100, mask)
        np.testing.assert_allclose(scores, theirs, atol=near)
        alone = np.abs(np.diff(scores, axis=1)) > 2 * near
        alone = np.pad(alone, ((0, 0), (1, 0)), constant_values=True) & np.pad(alone, ((0, 0), (0, 1)))
        assert alone.mean() > 0.9
        assert np.array_equal(rows[alone], found[alone])


def test_pinned_memory_is_filled_when_its_last_copy_has_left_it(data, small_tiles, monkeypatch):
    made, of, fill, filled = [], tiles._Slot.of, tiles.Tiles._fill, []

    def slot(*given):
        made.append(of(*given))
        return made[-1]

    def checked(self, buffer, part):
        filled.append(next(each.copied.seen for each in made if each.pinned is buffer))
        return fill(self, buffer, part)

    monkeypatch.setattr(tiles._Slot, "of", slot)
    monkeypatch.setattr(tiles.Tiles, "_fill", checked)
    with simulated_gpu():
        products.ExactSearch([data[0]], torch.device("cuda")).best(torch.from_numpy(data[1]).to("cuda"), 5)
    assert len(made) == 2
    assert filled == [True] * 47


def test_the_host_waits_for_no_product(data, small_tiles):
    """Of all tiles, for all queries, until their best are requested."""
    with simulated_gpu() as gpu:
        queries, device = torch.from_numpy(data[1]).to("cuda"), torch.device("cuda")
        search = products.ExactSearch([data[0]], device)
        gpu.waits.clear()
        products.ranked(search.tiles, queries.split(16), 100, None, 0)
        assert gpu.waits == {"retrieval/tiles.py: slot.copied.synchronize()": 45}  # for copies, of all tiles but two
        assert gpu.calls["mm"] == 47 * 4


def test_products_are_in_fp32_where_models_compute_in_tf32(monkeypatch):
    """A GPU would round the factors; only what torch is told can be seen here."""
    told, ranked, cublas = [], products.ranked, torch.backends.cuda.matmul

    def watched(*given):
        told.append(cublas.allow_tf32)
        return ranked(*given)

    monkeypatch.setattr(products, "ranked", watched)
    for models in (True, False):
        cublas.allow_tf32 = models
        products.ExactSearch([np.eye(4, dtype=np.float32)], CPU).best(torch.eye(4), 2)
        assert cublas.allow_tf32 is models
    assert told == [False, False]

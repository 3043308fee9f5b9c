"""Encoding: the same bytes for any number of shards, the same vectors as one text at a time."""

import subprocess
import sys

import faiss
import numpy as np
import pytest
import torch

from encore.data.tokens import Sequences
from encore.errors import EncoreError
from encore.models import embed
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.memory import PartSize
from encore.retrieval.dense import Searcher, open_shards
from encore.retrieval.encode import CollectionShard, encode
from tests.support.simulated_gpu import simulated_gpu
from tests.support.small_shard import write_shard

BLOCK = 100
PASSAGES, LENGTH = 2 * BLOCK + 60, 10


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("encore.retrieval.encode.BLOCK", BLOCK)
        yield


@pytest.fixture(scope="module")
def passages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    rng = np.random.default_rng(2)
    lengths = rng.integers(1, 14, PASSAGES)
    rng.integers(5, 60, lengths.sum()).astype("<u2").tofile(folder / "passages.ids.bin")
    np.save(folder / "passages.offsets.npy", np.concatenate([[0], lengths.cumsum()]))
    (folder / "passages.names.txt").write_text("".join(f"d{i}\n" for i in rng.permutation(PASSAGES)))
    return Sequences(folder, "passages")


@pytest.fixture(scope="module")
def encoder():
    torch.set_num_threads(1)  # equal bytes are promised for one thread
    torch.manual_seed(4)
    return Encoder(
        EncoderConfig(60, layers=1, hidden=16, heads=2, intermediate=32, max_length=16, pooling="mean")
    ).eval()


@pytest.fixture(scope="module")
def whole(encoder, passages):
    return np.concatenate(list(encode(encoder, passages, CollectionShard(0, 1), LENGTH)))


@pytest.mark.parametrize("count", [2, 3])
def test_vectors_are_the_same_bytes_for_any_number_of_shards(encoder, passages, whole, count):
    assert whole.shape == (PASSAGES, 16)
    parts = [CollectionShard(number, count) for number in range(count)]
    shards = [block for part in parts for block in encode(encoder, passages, part, LENGTH)]
    assert np.concatenate(shards).tobytes() == whole.tobytes()


def test_vectors_are_those_of_single_texts(encoder, passages, whole):
    for row in (0, 1, BLOCK, PASSAGES - 1):
        ids = torch.tensor([[2, *passages[row][: LENGTH - 2].tolist(), 3]])
        with torch.no_grad():
            alone = encoder.embed(ids, torch.ones_like(ids, dtype=torch.bool)).numpy()[0]
        assert np.allclose(whole[row], alone, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("passages", [0, 1, BLOCK, BLOCK + 1, 10 * BLOCK + 5])
def test_shards_are_whole_blocks_and_all_of_the_collection(passages, count):
    parts = [CollectionShard(number, count).rows(passages) for number in range(count)]
    assert [row for part in parts for row in part] == list(range(passages))
    assert all(part.start % BLOCK == 0 for part in parts if part)
    blocks = [-(-len(part) // BLOCK) for part in parts]
    assert max(blocks) - min(blocks) <= 1


def test_shards_have_names():
    assert CollectionShard.parse("002-of-016") == CollectionShard(2, 16)
    for name in ("3-of-4", "001-of-001", "000-of-000", "000-of-001x", ""):
        with pytest.raises(EncoreError, match=r"is not a name like 000-of-001"):
            CollectionShard.parse(name)


@pytest.mark.parametrize("stored", ["fp32", "fp16"])
def test_the_ranking_is_the_same_bytes_for_any_number_of_shards(passages, whole, stored, tmp_path):
    queries = np.random.default_rng(0).standard_normal((30, 16)).astype(np.float32)
    names = [f"q{i}" for i in range(30)]
    runs = []
    for count in (1, 2, 3):
        folders = []
        for rows in (CollectionShard(number, count).rows(PASSAGES) for number in range(count)):
            folders.append(tmp_path / f"{rows.start}-of-{count}")
            part = slice(rows.start, rows.stop)
            write_shard(folders[-1], passages.names[part], 16, [whole[part]], stored)
        runs.append(Searcher(open_shards(folders[::-1], passages.names, 16)).search(names, queries, 50))
    for run in runs[1:]:
        for name in names:
            assert run[name].documents == runs[0][name].documents
            assert run[name].scores.tobytes() == runs[0][name].scores.tobytes()


KINDS = {"fp32": faiss.IndexFlatIP, "fp16": faiss.IndexScalarQuantizer}


@pytest.mark.parametrize("stored", KINDS)
def test_a_shard_is_an_index_and_its_documents(stored, tmp_path):
    found = np.arange(12, dtype=np.float32).reshape(3, 4)
    for name in ("one", "two"):
        write_shard(tmp_path / name, ["c", "a", "b"], 4, [found[:2], found[2:]], stored)
    index = faiss.read_index(str(tmp_path / "one" / "index"))
    assert isinstance(index, KINDS[stored])
    assert (index.ntotal, index.d, index.metric_type) == (3, 4, faiss.METRIC_INNER_PRODUCT)
    assert np.array_equal(index.reconstruct_n(0, 3), found)
    assert (tmp_path / "one" / "docid").read_text() == "c\na\nb\n"
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["docid", "index"]
    faiss.write_index(index, str(tmp_path / "whole"))
    written = [(tmp_path / name).read_bytes() for name in ("one/index", "two/index", "whole")]
    assert written[0] == written[1] == written[2]


def test_half_precision_takes_half_the_bytes_and_its_products_are_exact(tmp_path):
    """The best are those of float64 products with the rounded vectors, which is all that half precision changes."""
    generator = np.random.default_rng(5)
    vectors = (generator.standard_normal((3000, 24)) * 10.0 ** generator.integers(-6, 3, (3000, 1))).astype(np.float32)
    queries = generator.standard_normal((20, 24)).astype(np.float32)
    documents = [f"d{row}" for row in range(3000)]
    write_shard(tmp_path / "half", documents, 24, [vectors], "fp16")
    write_shard(tmp_path / "full", documents, 24, [vectors])
    half, full = ((tmp_path / name / "index").stat().st_size for name in ("half", "full"))
    assert full - half == pytest.approx(3000 * 24 * 2, abs=100)
    shard = open_shards([tmp_path / "half"], documents, 24)[0]
    assert np.array_equal(shard.vectors, vectors.astype(np.float16))
    assert np.array_equal(shard.index.reconstruct_n(0, 3000), shard.vectors.astype(np.float32)), "as FAISS reads them"
    exact = queries.astype(np.float64) @ shard.vectors.astype(np.float64).T
    run = Searcher([shard]).search([f"q{row}" for row in range(20)], queries, 10)
    for row in range(20):
        assert run[f"q{row}"].documents == [documents[place] for place in np.argsort(-exact[row])[:10]]


def test_a_number_beyond_half_precision_is_refused(tmp_path):
    with pytest.raises(EncoreError, match=r"a number above 65504, the largest of fp16; set `numerics: vectors: fp32`"):
        write_shard(tmp_path, ["a"], 2, [np.array([[1.0, -7e4]], np.float32)], "fp16")
    assert not (tmp_path / "index").exists()


def test_a_shard_may_be_empty(encoder, passages, tmp_path):
    found = encode(encoder, passages, CollectionShard(0, 5), LENGTH)  # three blocks for five shards
    write_shard(tmp_path, [], 16, found)
    assert open_shards([tmp_path], [], 16)[0].documents == []


def test_a_diverged_model_is_one_clear_line(passages):
    broken = Encoder(EncoderConfig(vocabulary=60, layers=1, hidden=16, heads=2, intermediate=32, max_length=16)).eval()
    torch.nn.init.constant_(broken.embeddings.LayerNorm.bias, float("nan"))
    with pytest.raises(EncoreError, match="not finite"):
        embed.embed_texts(broken, passages, np.arange(10), LENGTH)


def test_progress_tells_rate_and_end(encoder, passages, capsys):
    list(encode(encoder, passages, CollectionShard(2, 3), LENGTH))
    assert capsys.readouterr().out.startswith("encoding: 60 of 60 passages, ")


@pytest.mark.slow
def test_preparing_and_opening_import_no_compiler():
    """torch's takes over a second, in each of many short programs."""
    code = (
        "import sys, torch; from encore.models.encoder import Encoder; from encore.models.config import EncoderConfig\n"
        "from encore.training import machine; machine.prepare({})\n"
        "with torch.device('meta'): \\\n"
        "    Encoder(EncoderConfig(60, layers=1, hidden=16, heads=2, intermediate=32, max_length=16))\n"
        "print(torch.are_deterministic_algorithms_enabled(), 'torch._dynamo' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(not torch.cuda.is_available()), "False"]


LIMITS = [("cpu", [3] * 40, [16, 16, 8]), ("cuda", [3] * 1100, [1024, 76]), ("cuda", [2**14] * 5, [2, 2, 1])]
LIMITS += [("cuda", [8, 2**13, 2**14, 2**16, 2**16], [2, 1, 1, 1]), ("cuda", [], [])]


@pytest.mark.parametrize(("device", "lengths", "sizes"), LIMITS)
def test_batches_have_so_many_texts_and_tokens(device, lengths, sizes):
    found = embed.PASS[device].split(np.array(lengths, dtype=np.int64))
    assert [len(part) for part in found] == sizes
    assert [row for part in found for row in part] == list(range(len(lengths)))


@pytest.mark.parametrize("pooling", ["cls", "mean", "content"])
def test_a_gpu_gives_the_vectors_of_the_processor(passages, pooling, gpu, monkeypatch):
    torch.manual_seed(4)
    made = Encoder(EncoderConfig(60, 2, 16, 2, 32, 16, pooling=pooling)).eval()
    rows = np.random.default_rng(0).permutation(PASSAGES)
    expected = embed.embed_texts(made, passages, rows, LENGTH)
    monkeypatch.setitem(embed.PASS, "cuda", PartSize(1024, 80))  # many batches
    found = embed.embed_texts(made.to("cuda"), passages, rows, LENGTH)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_gpu_is_waited_for_once_a_block_when_the_next_is_begun(passages, monkeypatch):
    monkeypatch.setitem(embed.PASS, "cuda", PartSize(1024, 80))
    torch.manual_seed(4)
    made = Encoder(EncoderConfig(60, 2, 16, 2, 32, 16, pooling="cls")).eval()
    begun, begin = [], embed._begin
    monkeypatch.setattr(embed, "_begin", lambda *given: begun.append(len(begun)) or begin(*given))
    with simulated_gpu() as gpu, torch.autocast("cuda", torch.bfloat16):
        made.to("cuda")
        gpu.waits.clear()
        gpu.calls.clear()
        for number, _ in enumerate(encode(made, passages, CollectionShard(0, 1), LENGTH)):
            assert len(begun) == min(number + 2, 3)
        assert gpu.calls["embedding"] > 20, "many batches"
    assert gpu.waits == {"models/transfer.py: self._copied.synchronize()": 3}


def test_encoding_goes_on_in_smaller_batches_where_memory_runs_out(passages, monkeypatch, capsys):
    torch.manual_seed(4)
    made = Encoder(EncoderConfig(60, 2, 16, 2, 32, 16, pooling="cls")).eval()
    expected, whole, sizes = list(encode(made, passages, CollectionShard(0, 1), LENGTH)), Encoder.embed, []

    def narrow(self, ids, mask):
        sizes.append(len(ids))
        if len(ids) > 5:
            raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
        return whole(self, ids, mask)

    monkeypatch.setattr(Encoder, "embed", narrow)
    found = list(encode(made, passages, CollectionShard(0, 1), LENGTH))
    assert "out of memory; continuing with " in capsys.readouterr().out
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(expected), atol=1e-5)
    assert sum(size > 5 for size in sizes) < 10, "it is learned for all blocks"

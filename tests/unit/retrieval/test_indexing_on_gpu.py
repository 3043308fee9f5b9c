"""IVF-PQ on a GPU, by an interface like that of FAISS's build for GPUs, whose kernels are the processor's."""

from dataclasses import dataclass, field
from typing import Any

import faiss
import numpy as np
import pytest

from encore.config.systems import read_index_type
from encore.retrieval import indexing
from encore.retrieval.dense import Shard
from encore.storage.document_ids import DocIds

IVFPQ = {"kind": "ivfpq", "nlist": 8, "m": 4, "bits": 8, "nprobe": 8, "seed": 5}
DEPTH = 10


@dataclass
class Options:
    """``faiss.GpuClonerOptions`` of a build with cuVS."""

    use_cuvs: bool = True
    useFloat16: bool = False  # noqa: N815


@dataclass
class OnFakeGpu:
    """A copy with a seed of its own, like one on a GPU, and what was asked of it."""

    index: Any
    options: Options
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.index.cp.seed = 1234
        self.cp = self.index.cp

    @property
    def is_trained(self):
        return self.index.is_trained

    def train(self, vectors):
        self.asked.append("train")
        self.index.train(vectors)

    def add(self, vectors):
        self.asked.append("add")
        self.index.add(vectors)

    def search(self, queries, wanted):
        assert wanted <= 2048, "a GPU gives no more"
        self.asked.append("search")
        return self.index.search(queries, wanted)


@pytest.fixture
def made(monkeypatch):
    """The copies that were made on the GPU."""
    copies = []

    def to_gpu(resources, device, index, options):
        assert (resources, device) == ("resources", 0)
        if index.pq.nbits != 8:
            raise RuntimeError("Error in verifyPQSettings_\nBits per code must be 8 (passed 6)")
        copies.append(OnFakeGpu(faiss.clone_index(index), options))
        return copies[-1]

    for name, value in {
        "StandardGpuResources": lambda: "resources",
        "get_num_gpus": lambda: 1,
        "GpuClonerOptions": Options,
        "index_cpu_to_gpu": to_gpu,
        "index_gpu_to_cpu": lambda copy: copy.index,
    }.items():
        monkeypatch.setattr(faiss, name, value, raising=False)
    return copies


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(0).standard_normal((10_000, 16)).astype(np.float32)


def built(vectors, **fields):
    return indexing.build_index(read_index_type({**IVFPQ, **fields}), [vectors])


def answered(index, vectors, depth=DEPTH):
    held = Shard(index, DocIds.of([f"d{number}" for number in range(len(vectors))]))
    return indexing.search_approximate(indexing.ready(held, {"nprobe": 4}), ["q", "r"], vectors[:2] + 0.1, depth)


@pytest.fixture(scope="module")
def on_cpu(vectors):
    """An index from the processor."""
    return built(vectors)[0]


@pytest.mark.slow
def test_it_is_trained_and_filled_there_from_its_seed(made, vectors, on_cpu):
    index, device = built(vectors)
    (copy,) = made
    assert device == "cuda"
    assert copy.asked == ["train", "add"]
    assert copy.options == Options(use_cuvs=False, useFloat16=False)
    assert type(index) is faiss.IndexIVFPQ
    assert faiss.serialize_index(index).tobytes() == faiss.serialize_index(on_cpu).tobytes()


def test_it_is_searched_there_as_far_as_a_gpu_gives_results(made, vectors, on_cpu):
    run = answered(on_cpu, vectors)
    (copy,) = made
    assert copy.asked == ["search"] * 2
    assert copy.index.nprobe == 4
    made.clear()
    deep = answered(on_cpu, vectors, 2100)
    assert not made[0].asked
    assert {query: ranking.documents[:DEPTH] for query, ranking in deep.items()} == {
        query: ranking.documents for query, ranking in run.items()
    }


def test_tables_that_are_too_large_are_halved(made, vectors):
    lists = faiss.IndexIVFPQ(faiss.IndexFlatIP(96), 96, 4, 96, 8, faiss.METRIC_INNER_PRODUCT)
    assert indexing.searched(lists).copy.options.useFloat16


@pytest.mark.parametrize("fields", [{"kind": "hnsw"}, {"kind": "fp16"}, {**IVFPQ, "bits": 6}])
def test_what_faiss_has_no_kernels_for_stays_on_the_processor(made, vectors, fields, capsys):
    index, device = indexing.build_index(read_index_type(fields), [vectors[:3000]])
    assert device == "cpu"
    assert indexing.searched(index) is index
    assert made == []
    said = "FAISS computes on the processor: Bits per code must be 8 (passed 6)\n"
    assert capsys.readouterr().out.count(said) == (2 if "bits" in fields else 0)


@pytest.mark.parametrize("gpus", [None, 0])
def test_without_a_gpu_nothing_is_copied(made, vectors, on_cpu, gpus, monkeypatch):
    if gpus is None:
        monkeypatch.delattr(faiss, "StandardGpuResources")
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    assert indexing.searched(on_cpu) is on_cpu
    assert len(answered(on_cpu, vectors)["q"].documents) == DEPTH
    assert made == []

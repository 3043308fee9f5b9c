"""What encoding, indexing, searching and ranking again need."""

from __future__ import annotations

from typing import Any

import numpy as np

from encore.commands.preflight import shapes
from encore.commands.preflight.cost import Cost, Work
from encore.commands.preflight.sizes import CollectionSize, CollectionSizes
from encore.config.finetuning import FinetuneStep
from encore.models import flops
from encore.models.config import EncoderConfig
from encore.plan.artifact import Artifact

FP32 = 4
LINE = 21.0  # bytes of a line of a packed run whose scores are all different
ROW = 130.0  # bytes of RAM that a line of a run takes while it is read
NAME = 24.0  # bytes of RAM of a document's id where rows are found by it; a third of it, where ids are found by row
GRAPH = 8.0  # distances that building a graph computes for each candidate that it looks at
ROUNDS = 25  # of k-means
TRAINED = 256  # vectors a centroid that k-means looks at, at most
LUCENE = 0.45  # bytes of Lucene's index for a byte of text
CHARACTERS = 4.6  # bytes of text of a word piece
TOGETHER = {"encode": 256, "rerank": 128}  # texts in one forward pass on a GPU
INSPECTED = 16  # texts of an inspection in one forward pass
LARGE = 8_841_823  # passages of MS MARCO, in which a BM25 query's time is known


def encode(shard: Artifact, sizes: CollectionSizes) -> Cost:
    """A shard's vectors: the passages' forward passes, and all vectors twice in memory."""
    shape, size = shapes.shape_of(shard.inputs["model"]), sizes.of(shard.inputs["tokens"].inputs["collection"])
    count = size.passages.count / int(shard.folder.rpartition("-of-")[2])
    lengths = size.passages.read(shard.spec["length"])
    vectors = count * shape.dimension * FP32
    return Cost(
        works=(_reading(shape, count, lengths), Work("bytes", vectors)),
        start="torch",
        kept=vectors + 12 * count,
        ram=3 * vectors + NAME * size.passages.count + FP32 * shapes.parameters(shape),
        gpu=True,
        gpu_memory=inference(shape, TOGETHER["encode"], float(lengths.max())),
    )


def search(run: Artifact, sizes: CollectionSizes) -> Cost:
    """Exact search: every query with every passage, all vectors in memory."""
    shape, size, queries = _asked(run, sizes)
    vectors = size.passages.count * shape.dimension * FP32
    products = flops.product(queries, shape.dimension, size.passages.count)
    works = (
        _queries(run, shape, size, queries),
        Work("search", products, threads=_threads(run)),
        Work("bytes", vectors),
        lines(run, queries),
    )
    return Cost(
        works=works,
        start="torch",
        kept=LINE * queries * run.spec["depth"],
        ram=vectors + 3 * NAME * size.passages.count + ROW * queries * run.spec["depth"],
        gpu=True,
        gpu_memory=inference(shape, TOGETHER["encode"], run.spec["query_length"]),
    )


def build_index(index: Artifact, sizes: CollectionSizes) -> Cost:
    """An index of a named type, on one thread; the vectors are there three times."""
    shard = index.inputs["shard0"]
    shape, size = shapes.shape_of(shard.inputs["model"]), sizes.of(shard.inputs["tokens"].inputs["collection"])
    count, dimension, fields = size.passages.count, shape.dimension, index.spec["index"]
    vectors = count * dimension * FP32
    return Cost(
        works=(*_building(fields, count, dimension), Work("bytes", 2 * vectors)),
        start="torch",
        kept=indexed_bytes(fields, count, dimension) + 12 * count,
        ram=3 * vectors + indexed_bytes(fields, count, dimension) + NAME * count,
    )


def indexed_bytes(fields: dict[str, Any], count: float, dimension: int) -> float:
    """Bytes of an index of a type over so many vectors."""
    match fields["kind"]:
        case "hnsw":  # the vectors, and 2 m links of 4 bytes in the lowest layer, m in each other
            return count * (FP32 * dimension + FP32 * fields["m"] * (2 + 1 / max(fields["m"] - 1, 1)))
        case "ivfpq":
            codes = count * (fields["m"] * fields["bits"] / 8 + 8)
            return float(codes + FP32 * dimension * (fields["nlist"] + 2 ** fields["bits"]))
        case "fp16":
            return count * dimension * FP32 / 2
    return count * dimension * FP32


def _building(fields: dict[str, Any], count: float, dimension: int) -> list[Work]:
    if fields["kind"] == "hnsw":
        return [Work("graph", GRAPH * flops.product(count, dimension, fields["ef_construction"]))]
    if fields["kind"] != "ivfpq":
        return []
    centroids = fields["nlist"] + 2 ** fields["bits"]
    trained = min(count, TRAINED * fields["nlist"])
    return [Work("search", flops.product(ROUNDS * trained + count, dimension, centroids))]


def search_index(run: Artifact, sizes: CollectionSizes) -> Cost:
    """Search in an index of a named type; the exact run is read next to it."""
    shape, size, queries = _asked(run, sizes)
    fields = {**run.inputs["index"].spec["index"], **run.spec["search"]}
    index = indexed_bytes(fields, size.passages.count, shape.dimension)
    works = [_queries(run, shape, size, queries), Work("bytes", index), lines(run, 2 * queries)]
    match fields["kind"]:
        case "hnsw":
            looked = GRAPH * max(fields["ef_search"], run.spec["depth"])
            works.append(Work("graph", flops.product(queries, shape.dimension, looked)))
        case "ivfpq":
            looked = size.passages.count * fields["nprobe"] / fields["nlist"]
            works.append(Work("graph", flops.product(queries, fields["m"], looked)))
        case _:
            products = flops.product(queries, shape.dimension, size.passages.count)
            works.append(Work("search", products, threads=_threads(run)))
    return Cost(
        works=tuple(works),
        start="torch",
        kept=LINE * queries * run.spec["depth"],
        ram=index + 3 * NAME * size.passages.count + 2 * ROW * queries * run.spec["depth"],
        gpu=True,
        gpu_memory=inference(shape, TOGETHER["encode"], run.spec["query_length"]),
    )


def lucene_index(index: Artifact, sizes: CollectionSizes) -> Cost:
    """Lucene's index; the documents are held in memory to be sorted, and written next to it for a while."""
    size = sizes.of(index.inputs["collection"])
    text = size.passages.tokens * CHARACTERS
    if "predicted_queries" in index.inputs:
        text *= 2
    return Cost(
        works=(Work("lucene_bytes", text), Work("documents", size.passages.count)),
        start="java",
        kept=LUCENE * text,
        scratch=2 * text,
        ram=1.3 * text + NAME * size.passages.count,
        threads=2,
    )


def lucene_search(run: Artifact, sizes: CollectionSizes) -> Cost:
    """BM25: beyond what any query takes, its time grows with the root of the passages, since most are skipped."""
    size = sizes.of(run.inputs["collection"])
    queries = size.topics(run.spec["split"], run.spec["queries"])
    return Cost(
        works=(Work("lucene_queries", queries * _slower(size)), lines(run, queries)),
        start="java",
        kept=LINE / 2 * queries * run.spec["depth"],
        ram=ROW * queries * run.spec["depth"],
        threads=2,
    )


def _slower(size: CollectionSize) -> float:
    """Time of a BM25 query here over one in MS MARCO: at least 8 %, which its 1,000 answers take anywhere."""
    return float(0.08 + 0.92 * (size.passages.count / LARGE) ** 0.5)


def fuse(run: Artifact, sizes: CollectionSizes) -> Cost:
    """Two runs as one."""
    queries = sizes.of(run.spec["collection"]).topics(run.spec["split"], run.spec["queries"])
    return Cost(
        works=(lines(run, 3 * queries),),
        kept=LINE * queries * run.spec["depth"],
        ram=3 * ROW * queries * run.spec["depth"],
    )


def tune_fusion(weight: Artifact, sizes: CollectionSizes) -> Cost:
    """Every weight that is tried, over both lists of the queries that choose."""
    size, depth = sizes.of(weight.inputs["collection"]), weight.inputs["sparse_train"].spec["depth"]
    queries = sum(size.topics(split, weight.spec["queries"]) for split in weight.spec["splits"].values())
    read = queries * depth * 2
    return Cost(works=(Work("lines", read * (1 + len(weight.spec["weights"]) / 8)),), kept=1e4, ram=ROW * read)


def rerank(run: Artifact, sizes: CollectionSizes) -> Cost:
    """The best of a run read again with a trained scorer."""
    size = sizes.of(run.spec["collection"])
    queries = size.topics(run.spec["split"], run.spec["queries"])
    pairs = queries * min(run.spec["reranked"], size.passages.count)
    work, memory = scoring(run.inputs["model"], size, queries, pairs)
    return Cost(
        works=(work, lines(run, 2 * queries)),
        start="torch",
        kept=LINE * queries * run.spec["depth"],
        ram=2 * ROW * queries * run.spec["depth"] + 2 * NAME * size.passages.count,
        gpu=True,
        gpu_memory=memory,
    )


def scoring(model: Artifact, size: CollectionSize, queries: float, pairs: float) -> tuple[Work, float]:
    """What a model reads to score pairs, and the GPU memory of that."""
    shape = shapes.shape_of(model)
    step = shapes.step_of(model) if "weights" in model.inputs else None
    length = step.length if step else shape.max_length
    passages = size.passages.read(length)
    if isinstance(step, FinetuneStep) and step.scorer == "cross-encoder":
        together = passages + float(np.minimum(size.query_lengths, step.query_length).mean()) + 1
        work = _reading(shape, pairs, together)
        return work, inference(shape, TOGETHER["rerank"], float(together.max()))
    read = _reading(shape, pairs + queries, passages)
    return read, inference(shape, TOGETHER["encode"], float(passages.max()))


def teacher_scores(scores: Artifact, sizes: CollectionSizes) -> Cost:
    """What a teacher says of training queries with their positives and negatives; published scores are only read."""
    size = sizes.of(scores.inputs["tokens"].inputs["collection"])
    if "model" not in scores.inputs:
        return Cost(works=(Work("lines", 4e7),), kept=40e6 * 12, ram=40e6 * 24, notes=("40 M triples assumed",))
    queries = size.topics(scores.spec["split"], scores.spec["queries"])
    pairs = queries * (1 + scores.spec["fill"])
    work, memory = scoring(scores.inputs["model"], size, queries, pairs)
    kept = pairs * 20.0
    if scores.spec["form"] == "vectors":
        kept = _vectors_of(scores.inputs["model"], size, queries, min(pairs, size.passages.count))
    ram = 3 * NAME * size.passages.count + 40 * pairs
    return Cost((work, Work("bytes", kept)), "torch", kept=kept, ram=ram, gpu=True, gpu_memory=memory)


def _vectors_of(model: Artifact, size: CollectionSize, queries: float, passages: float) -> float:
    """Bytes of the vectors of texts, one each, or one for each of their tokens."""
    step, shape = shapes.step_of(model), shapes.shape_of(model)
    if isinstance(step, FinetuneStep) and step.scorer == "late-interaction":
        tokens = passages * float(size.passages.read(step.length).mean()) + queries * step.query_length
        return tokens * step.token_dimension * FP32 / 2  # in 16 bits
    return (passages + queries) * shape.dimension * FP32


def latency(measured: Artifact, sizes: CollectionSizes) -> Cost:
    """Queries answered one by one, after some that warm up; the index is read once."""
    size, queries = sizes.of(measured.inputs["collection"]), measured.spec["warm_up"] + measured.spec["queries"]
    model = measured.inputs.get("model")
    if model is None:
        return Cost(works=(Work("lucene_queries", queries * _slower(size)),), start="java", kept=1e4, threads=2)
    shape = shapes.shape_of(model)
    vectors = size.passages.count * shape.dimension * FP32
    products = flops.product(queries, shape.dimension, size.passages.count)
    works = (_reading(shape, queries, np.array([32.0]), 1), Work("search", products), Work("bytes", vectors))
    memory = inference(shape, 1, 512)
    return Cost(works, "torch", kept=1e4, ram=vectors + NAME * size.passages.count, gpu=True, gpu_memory=memory)


def masked_loss(measured: Artifact, sizes: CollectionSizes) -> Cost:
    """The forward passes of a sample of passages; the vocabulary head runs at masked places only."""
    shape, size = shapes.shape_of(measured.inputs["model"]), sizes.of(measured.inputs["tokens"].inputs["collection"])
    lengths, spec = size.passages.read(measured.spec["step"]["length"]), measured.spec
    rows = spec["step"]["batch"]
    work = _reading(shape, min(size.passages.count, spec["texts"]), lengths, rows)
    memory = inference(shape, rows, float(lengths.max()))
    return Cost((work,), "torch", kept=1e3, ram=FP32 * shapes.parameters(shape), gpu=True, gpu_memory=memory)


def inspect_model(inspection: Artifact, sizes: CollectionSizes) -> Cost:
    """The forward passes of a figure's few texts."""
    shape = shapes.shape_of(inspection.inputs["model"])
    size = sizes.of(inspection.inputs["tokens"].inputs["collection"])
    lengths, spec = size.passages.read(inspection.spec["length"]), inspection.spec
    field = {"coverage": "texts", "map": "candidates"}.get(spec["kind"])
    texts = min(size.passages.count, spec[field] if field else 1)
    work = _reading(shape, texts, lengths, INSPECTED)
    memory = inference(shape, INSPECTED, float(lengths.max()))
    return Cost((work,), "torch", kept=1e5, ram=FP32 * shapes.parameters(shape), gpu=True, gpu_memory=memory)


def _threads(run: Artifact) -> int:
    """Of an exact search: FAISS gets as many as torch."""
    return int(run.spec["numerics"]["threads"])


def lines(run: Artifact, queries: float) -> Work:
    """Lines of runs that are written or read."""
    return Work("lines", queries * run.spec["depth"])


def _asked(run: Artifact, sizes: CollectionSizes) -> tuple[EncoderConfig, CollectionSize, float]:
    size = sizes.of(run.inputs["collection"])
    return shapes.shape_of(run.inputs["model"]), size, size.topics(run.spec["split"], run.spec["queries"])


def _queries(run: Artifact, shape: EncoderConfig, size: CollectionSize, queries: float) -> Work:
    return _reading(shape, queries, np.minimum(size.query_lengths + 2, run.spec["query_length"]))


def _reading(shape: EncoderConfig, count: float, lengths: np.ndarray, rows: int = TOGETHER["encode"]) -> Work:
    """The forward passes of texts, sorted by length, so that hardly anything is padding."""
    each = float(np.mean([flops.forward(shape, 1, round(length)) for length in _few(lengths)]))
    return Work("encode", count * each, shape, rows, float(lengths.mean()))


def _few(lengths: np.ndarray) -> np.ndarray:
    return np.quantile(lengths, (np.arange(16) + 0.5) / 16)


def inference(shape: EncoderConfig, texts: int, length: float) -> float:
    """Bytes on a GPU that reads texts without learning: weights, and a few states of one layer."""
    return FP32 * shapes.parameters(shape) + texts * length * (6 * shape.hidden + 2 * shape.intermediate) * FP32

"""How much a job has to do, counted from the plan alone: what its memory, disk and time follow from.

The amounts, each where a job has it:

- ``passages``, ``passage_tokens``, ``article_tokens`` and ``tokens`` (of both): of its collection; ``text_tokens``: of
  the texts that an objective makes of it; ``queries``; ``lines`` of its runs, ``text_lines`` if they are also
  written as text, ``at_once`` those of BM25's that are read together, ``retrieved`` the most different passages in
  them; ``pairs`` that a teacher scores;
- ``parameters`` of its model; ``vectors``: the numbers in the vectors of its passages, ``vector_bytes``: their bytes,
  ``query_vectors``: those of queries;
  ``index``: bytes of an approximate index, ``aside``: those that are held next to it while it is built; ``grown``:
  numbers that vectors are multiplied with while a graph grows, waiting for memory counted as such; ``clustered``:
  operations of k-means, and of assigning all vectors to its centroids;
- ``flops``: operations of a model, as ``models/flops.py`` and the objectives count them; ``longest``: tokens of the
  longest text that it reads; ``trained_examples`` of a pre-training;
- ``products``: operations of exact search; ``scanned``: bytes of vectors that are read again for each query;
  ``ranked``: queries times passages, of which BM25 reads as large a share in any collection;
- ``unpacked``: bytes of a download after unpacking; ``cores`` that share its work; ``java``: bytes that Java may take.
  ``jobs.py`` adds these.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from encore.commands.preflight import shapes, trainings
from encore.commands.preflight.sizes import CollectionSize, CollectionSizes, TextLengths
from encore.commands.preflight.trainings import FP32
from encore.config.datasets import is_reported
from encore.config.finetuning import FinetuneStep
from encore.models import flops
from encore.models.config import EncoderConfig
from encore.plan.artifact import Artifact
from encore.plan.published_counts import share_with_triples

Amounts = dict[str, float]
T5_BASE = 223e6  # parameters of t5-base, the only T5 of others that an expansion names
HITS = 4e6  # of BM25's that are read together, and a Java process keeps in HEAP bytes: as in retrieval/lucene.py
HEAP = 2.0**30
FETCHED = 200  # numbers that a core could multiply while it waits for a vector of a graph, as measured in 80,000
K_MEANS_SAMPLE = 256  # vectors that FAISS's k-means learns from at most, for each centroid
PUBLISHED = 4e7  # triples in a file of published teacher scores


class _Job(NamedTuple):
    """A job with its collection, its model's shape (``Any``, since some count without one) and its general amounts."""

    made: Artifact
    size: CollectionSize
    shape: Any
    found: Amounts

    @property
    def spec(self) -> dict[str, Any]:
        return self.made.spec


def amounts(made: Artifact, sizes: CollectionSizes) -> Amounts:
    """The amounts of the job that makes an artifact, by name; only the general ones for an unknown kind of job."""
    found: Amounts = {}
    rule, size, model = rule_of(made), sizes.behind(made), shapes.model_of(made)
    share = share_with_triples(sizes.plan.catalogue, made)
    if size:
        found |= {"passages": size.passages.count, "passage_tokens": size.passages.tokens, "tokens": size.tokens}
        found |= {"article_tokens": size.article_tokens, "words": words_in(size.tokens), **_asked(made, size, share)}
    shape = shapes.shape_of(model) if model else None
    if shape:
        found["parameters"] = shapes.parameters(shape)
    if shape and size:
        shards = int(made.folder.rpartition("-of-")[2]) if rule == "encode" else 1
        found["vectors"] = size.passages.count * shape.dimension / shards
    if rule == "train_doc2query":  # a T5 that learns to write queries: six operations for a parameter and token
        fields = made.spec["expansion"]
        tokens = fields["steps"] * fields["batch"] * (fields["length"] + fields["query_length"]) / 2
        return found | {"flops": 6.0 * _t5(fields) * tokens, "parameters": _t5(fields)}
    if size and shape and model and rule in ("pretrain", "finetune"):
        return found | trainings.amounts(shapes.step_of(model), shape, size, share)
    return found | (COUNTED[rule](_Job(made, size, shape, found)) if size and rule in COUNTED else {})


def rule_of(artifact: Artifact) -> str:
    """The rule that makes an artifact: its stage, without the kind."""
    return artifact.stage.partition(".")[0]


def words_in(tokens: float) -> float:
    """How many different words a text has, by Heaps' law: 2.7 million in 352 million, as in Anserini's MS MARCO."""
    return 20.0 * tokens**0.6


def _asked(made: Artifact, size: CollectionSize, share: float) -> Amounts:
    """Queries, and lines of runs; a fusion is tuned on those of two splits."""
    run = made.inputs.get("run", made).spec
    if made.stage == "tune_fusion":
        queries = sum(size.topics(split, run["queries"]) for split in run["splits"].values())
        return {"queries": queries, "lines": 2 * queries * made.inputs["sparse_train"].spec["depth"]}
    if isinstance(run.get("run"), dict):  # a latency, of a sample after some queries that warm up
        return {"queries": float(run["warm_up"] + run["queries"])}
    if "split" not in run:
        return {}
    queries = size.topics(run["split"], run.get("queries"), share)
    ranked, lines = queries * size.passages.count, queries * run.get("depth", 0)
    found = {"queries": queries, "lines": lines, "text_lines": lines * is_reported(run["split"]), "ranked": ranked}
    return found | {"at_once": min(lines, HITS), "retrieved": min(lines, size.passages.count)}


def _encode(job: _Job) -> Amounts:
    lengths = job.size.passages.read(job.spec["length"])
    operations = job.found["vectors"] / job.shape.dimension * trainings.reading(job.shape, lengths, flops.embedding)
    bytes_each = 2 if job.spec.get("vectors") == "fp16" else FP32
    return {"flops": operations, "longest": float(lengths.max()), "vector_bytes": job.found["vectors"] * bytes_each}


def _search(job: _Job) -> Amounts:
    queries, count, dimension = job.found["queries"], job.size.passages.count, job.shape.dimension
    lengths = trainings.query_lengths(job.size, job.shape, job.spec["query_length"])
    found = {"flops": queries * trainings.reading(job.shape, lengths, flops.embedding)}
    found |= {"longest": float(job.spec["query_length"]), "products": flops.product(queries, dimension, count)}
    found["query_vectors"] = queries * dimension * FP32
    if "index" not in job.made.inputs:
        return found
    index = job.made.inputs["index"].spec["index"]
    read = looked_at(index | job.spec["search"], count, dimension, job.spec["depth"])
    return found | {"index": built(index, count, dimension)["index"], "products": flops.product(queries, 1, read)}


def looked_at(index: dict[str, Any], count: float, dimension: int, depth: int) -> float:
    """How many numbers a query is multiplied with, or looks up, in an index of ``count`` vectors."""
    match index["kind"]:
        case "hnsw":  # the neighbours of each candidate, of which FAISS keeps as many as it is asked for
            return min(count, max(depth, index["ef_search"]) * 2.0 * index["m"]) * (dimension + FETCHED)
        case "ivfpq":  # all centroids, and the codes of some lists
            return index["nlist"] * dimension + index["nprobe"] * count / index["nlist"] * index["m"]
        case _:
            return count * dimension


def built(index: dict[str, Any], count: float, dimension: int) -> Amounts:
    """What an index of ``count`` vectors takes, as FAISS makes and writes it."""
    vectors = count * dimension * FP32
    match index["kind"]:
        case "hnsw":  # 2 m links of 4 bytes in the lowest layer, m in each other; they are copied while they grow
            links = count * FP32 * index["m"] * (2 + 1 / max(index["m"] - 1, 1))
            looked = looked_at(index | {"ef_search": index["ef_construction"]}, count, dimension, 0)
            return {"index": vectors + links, "aside": links, "grown": count * looked}
        case "ivfpq":
            lists, codes = index["nlist"], 2 ** index["bits"]
            k_means = ((lists, 10), (codes, 25))  # centroids, and FAISS's rounds
            clustered = math.fsum(
                each * (rounds * min(count, K_MEANS_SAMPLE * each) + count) for each, rounds in k_means
            )
            size = count * (index["m"] * index["bits"] / 8 + 8) + FP32 * dimension * (lists + codes)
            return {"index": size, "aside": vectors, "clustered": flops.product(1, dimension, clustered)}
        case _:
            return {"index": vectors / 2}


def _teacher_scores(job: _Job) -> Amounts:
    if job.spec["form"] == "published":
        return {"pairs": PUBLISHED}
    pairs = job.found["queries"] * (1 + job.spec["fill"])
    return {"pairs": pairs} if job.spec["form"] == "listed" else _scoring(job, pairs)


def _rerank(job: _Job) -> Amounts:
    """Of a first stage each query's best are read, of a whole collection each passage once."""
    count = job.size.passages.count
    return _scoring(job, job.found["queries"] * min(job.spec["reranked"], count) if "reranked" in job.spec else count)


def _scoring(job: _Job, pairs: float) -> Amounts:
    """Pairs that a trained scorer reads: query and passage together, or each separately."""
    model = job.made.inputs["model"]
    step = shapes.step_of(model) if "weights" in model.inputs else None
    scorer = step.scorer if isinstance(step, FinetuneStep) else ""
    lengths, texts = job.size.passages.read(step.length if step else job.shape.max_length), pairs + job.found["queries"]
    if scorer == "cross-encoder":
        queries = trainings.query_lengths(job.size, job.shape, step.query_length)  # type: ignore[union-attr]
        lengths, texts = lengths + float(queries.mean()) - 1, pairs
    found = _reading(job.shape, lengths, texts) | {"pairs": pairs, "vectors": 0.0}
    if job.spec.get("form") == "vectors":  # of each text, or, in 16 bits, of each of its tokens
        late = scorer == "late-interaction"
        each = lengths.mean() * step.token_dimension / 2 if late else job.shape.dimension  # type: ignore[union-attr]
        found["vectors"] = float(each * (min(pairs, job.size.passages.count) + job.found["queries"]))
    return found


def _reading(shape: EncoderConfig, lengths: np.ndarray, texts: float) -> Amounts:
    return {"flops": texts * trainings.reading(shape, lengths), "longest": float(lengths.max())}


def _attend(job: _Job) -> Amounts:
    """All texts are read with the parent model, except for the states of its last layer."""
    texts = _texts(job.spec["texts"], job.size)
    shape, lengths = replace(job.shape, layers=job.shape.layers - 1), texts.read(job.spec["texts"]["length"])
    return _reading(shape, lengths, texts.count) | {"text_tokens": texts.tokens}


def _texts(fields: dict[str, Any], size: CollectionSize) -> TextLengths:
    return trainings.texts(SimpleNamespace(**{"length": sys.maxsize, **fields}), size)


def _predict_queries(job: _Job) -> Amounts:
    """Queries written for every passage, two operations for a parameter and token; or read from a published file."""
    if "doc2query_model" not in job.made.inputs:
        return {}
    parameters = _t5(job.made.inputs["doc2query_model"].spec["expansion"])
    read, written = job.size.passages.read(job.spec["length"]), job.spec["per_passage"] * job.spec["query_length"]
    tokens = job.size.passages.count * (written + float(read.mean()))
    return {"flops": 2.0 * parameters * tokens, "parameters": parameters}


def _t5(fields: dict[str, Any]) -> float:
    """Parameters of the T5 that an expansion names."""
    if "checkpoint" not in fields:
        return T5_BASE
    hidden, inner, layers = (float(fields[name]) for name in ("hidden", "intermediate", "layers"))
    return 8192 * hidden + layers * (12 * hidden * hidden + 4 * hidden * inner)


COUNTED: dict[str, Callable[[_Job], Amounts]] = {
    "attend": _attend,
    "build_index": lambda job: built(job.spec["index"], job.size.passages.count, job.shape.dimension),
    "encode": _encode,
    "measure_latency": lambda job: {"scanned": job.found["queries"] * job.found.get("vectors", 0.0) * FP32},
    "predict_queries": _predict_queries,
    "prepare": lambda job: {"text_tokens": _texts(job.spec["preparation"], job.size).tokens},
    "rerank": _rerank,
    "search": _search,
    "search_index": _search,
    "teacher_scores": _teacher_scores,
}

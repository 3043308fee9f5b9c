"""How much a job has to do, counted from the plan alone: what its time, memory and disk are fitted to.

The amounts, each where a job has it:

- ``start``: 1, for what any job of a rule takes; ``imports``: 1 where Python starts for it, 0 where it is a fork;
- ``passages``, ``tokens``: of its collection, the tokens of articles included (``article_tokens``); ``queries``,
  and ``lines`` of a run, ``text_lines`` where it is written as text too;
- ``joined``: tokens that are copied from other stores;
- ``text_tokens``: of the texts that an objective makes of the collection, for what reads each of them once;
- ``parameters``: of its model; ``vectors``: the numbers in the vectors of its passages, ``vector_bytes``: theirs;
- ``flops``: operations of a model, as ``models/flops.py`` and the objectives count them, texts at their own lengths;
  where there is a GPU, it does these. ``trained_tokens``: those that a training reads in all its steps, of
  ``trained_examples``;
- ``products``: operations of exact search; ``graph``: the same at random places of memory; ``scanned``: bytes of
  vectors that are read anew for each query; ``ranked``: queries times the root of the passages, as BM25 skips most;
- ``index``: bytes of an approximate index; ``pairs``: scored by a teacher; ``pieces``: of a vocabulary that is trained;
  ``bytes``: to download, ``unpacked``: to unpack.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

from encore.commands.preflight import shapes, trainings
from encore.commands.preflight.lengths import TextLengths
from encore.commands.preflight.sizes import CollectionSize, CollectionSizes
from encore.config.datasets import is_reported
from encore.config.finetuning import FinetuneStep
from encore.models import flops
from encore.models.config import EncoderConfig
from encore.plan.artifact import Artifact
from encore.plan.published_counts import share_with_triples

Amounts = dict[str, float]
FP32 = 4
LOOKED = 8.0  # distances that a graph computes for each candidate that it keeps
T5_BASE = 223e6  # parameters of t5-base, the only T5 of others that an expansion names
PUBLISHED = 4e7  # triples in a file of published teacher scores


def amounts(made: Artifact, sizes: CollectionSizes) -> Amounts:
    """The amounts of the job that makes an artifact, by name; a kind of job that is not known has the general ones."""
    found: Amounts = {"start": 1.0, "imports": 1.0}
    size, model = sizes.behind(made), shapes.model_of(made)
    share = share_with_triples(sizes.plan.catalogue, made)
    if size:
        found |= {"passages": size.passages.count, "tokens": size.tokens, "article_tokens": size.article_tokens}
        found |= _asked(made, size, share)
        if sizes.plan.config.execution.text_runs == "all" and "lines" in found:
            found["text_lines"] = found["lines"]
    shape = shapes.shape_of(model) if model else None
    if shape:
        found["parameters"] = shapes.parameters(shape)
        if size:
            found["vectors"] = size.passages.count * shape.dimension / _shards(made)
    rule = made.stage.partition(".")[0]
    if size and model and shape and rule in ("pretrain", "finetune"):
        found |= trainings.amounts(shapes.step_of(model), shape, size, share)
    elif size and shape and rule in WITH_MODEL:
        found |= WITH_MODEL[rule](_Job(made, size, shape, found))
    elif size and rule in WITHOUT_MODEL:
        found |= WITHOUT_MODEL[rule](made, size, found)
    elif rule == "tokens" and "collection" not in made.inputs:
        found["joined"] = found.pop("tokens", 0.0)
    elif rule == "train_doc2query":
        found |= _train_doc2query(made)
    elif rule == "tokenizer" and size:
        found["pieces"] = made.spec["vocabulary"]
    elif rule == "start" and "tokens" not in made.inputs:  # random numbers, or another model's weights
        found.pop("tokens", None)
    return found


class _Job(NamedTuple):
    """A job with a model: its artifact, its collection, its model's shape, and its general amounts."""

    made: Artifact
    size: CollectionSize
    shape: EncoderConfig
    found: Amounts

    @property
    def spec(self) -> dict[str, Any]:
        return self.made.spec


def _asked(made: Artifact, size: CollectionSize, share: float) -> Amounts:
    """Queries, and lines of runs; those that a fusion is tuned on are of two splits."""
    run = made.inputs.get("run", made).spec
    if made.stage == "tune_fusion":
        queries = sum(size.topics(split, run["queries"]) for split in run["splits"].values())
        return {"queries": queries, "lines": 2 * queries * made.inputs["sparse_train"].spec["depth"]}
    if isinstance(run.get("run"), dict):  # a latency, of a sample after some queries that warm up
        queries = float(run["warm_up"] + run["queries"])
        return {"queries": queries, "ranked": queries * size.passages.count**0.5}
    if "split" not in run:
        return {}
    queries = size.topics(run["split"], run.get("queries"), share)
    ranked, lines = queries * size.passages.count**0.5, queries * run.get("depth", 0)
    return {"queries": queries, "lines": lines, "text_lines": lines * is_reported(run["split"]), "ranked": ranked}


def _shards(made: Artifact) -> int:
    return int(made.folder.rpartition("-of-")[2]) if made.stage == "encode" else 1


def _encode(job: _Job) -> Amounts:
    lengths = job.size.passages.read(job.spec["length"])
    count = job.size.passages.count / _shards(job.made)
    operations = count * trainings.reading(job.shape, lengths, flops.embedding)
    bytes_each = 2 if job.spec.get("vectors") == "fp16" else FP32
    return {"flops": operations, "longest": float(lengths.max()), "vector_bytes": job.found["vectors"] * bytes_each}


def _search(job: _Job) -> Amounts:
    queries = job.found["queries"]
    lengths = trainings.query_lengths(job.size, job.shape, job.spec["query_length"])
    query_flops = queries * trainings.reading(job.shape, lengths, flops.embedding)
    found = {"flops": query_flops, "longest": float(job.spec["query_length"])}
    fields = {**job.made.inputs["index"].spec["index"], **job.spec["search"]} if "index" in job.made.inputs else {}
    dimension, count = job.shape.dimension, job.size.passages.count
    match fields.get("kind"):
        case "hnsw":
            looked = LOOKED * max(fields["ef_search"], job.spec["depth"])
            return found | {"graph": flops.product(queries, dimension, looked), "index": _index(fields, job)}
        case "ivfpq":
            looked = count * fields["nprobe"] / fields["nlist"]
            return found | {"graph": flops.product(queries, fields["m"], looked), "index": _index(fields, job)}
    own = {"index": _index(fields, job)} if fields else {}
    return found | own | {"products": flops.product(queries, dimension, count)}


def _build_index(job: _Job) -> Amounts:
    fields, count, dimension = job.spec["index"], job.size.passages.count, job.shape.dimension
    found = {"index": _index(fields, job)}
    if fields["kind"] == "hnsw":
        found["graph"] = LOOKED * flops.product(count, dimension, fields["ef_construction"])
    if fields["kind"] == "ivfpq":  # 25 rounds of k-means over at most 256 vectors a centroid, and all vectors once
        trained = min(count, 256 * fields["nlist"])
        found["products"] = flops.product(25 * trained + count, dimension, fields["nlist"] + 2 ** fields["bits"])
    return found


def _index(fields: dict[str, Any], job: _Job) -> float:
    """Bytes of an index of a type, as FAISS writes them."""
    count, dimension = job.size.passages.count, job.shape.dimension
    match fields["kind"]:
        case "hnsw":  # the vectors, and 2 m links of 4 bytes in the lowest layer, m in each other
            return count * FP32 * (dimension + fields["m"] * (2 + 1 / max(fields["m"] - 1, 1)))
        case "ivfpq":
            codes = count * (fields["m"] * fields["bits"] / 8 + 8)
            return float(codes + FP32 * dimension * (fields["nlist"] + 2 ** fields["bits"]))
        case "fp16":
            return count * dimension * FP32 / 2
    return count * dimension * FP32


def _rerank(job: _Job) -> Amounts:
    return _scoring(job, job.found["queries"] * min(job.spec["reranked"], job.size.passages.count))


def _teacher_scores(job: _Job) -> Amounts:
    return _scoring(job, job.found["queries"] * (1 + job.spec["fill"]))


def _scoring(job: _Job, pairs: float) -> Amounts:
    """Pairs that a trained scorer reads: query and passage together, or each for itself."""
    model = job.made.inputs["model"]
    step = shapes.step_of(model) if "weights" in model.inputs else None
    lengths = job.size.passages.read(step.length if step else job.shape.max_length)
    texts = pairs + job.found["queries"]
    if isinstance(step, FinetuneStep) and step.scorer == "cross-encoder":
        lengths, texts = (
            lengths + float(trainings.query_lengths(job.size, job.shape, step.query_length).mean()) - 1,
            pairs,
        )
    found = {"flops": texts * trainings.reading(job.shape, lengths), "longest": float(lengths.max()), "pairs": pairs}
    late = isinstance(step, FinetuneStep) and step.scorer == "late-interaction"
    found["vectors"] = 0.0
    if job.spec.get("form") == "vectors":  # of each text, or, in 16 bits, of each of its tokens
        each = lengths.mean() * step.token_dimension / 2 if late else job.shape.dimension  # type: ignore[union-attr]
        found["vectors"] = float(each * (min(pairs, job.size.passages.count) + job.found["queries"]))
    return found


def _measure_latency(job: _Job) -> Amounts:
    lengths = trainings.query_lengths(job.size, job.shape, 512)
    query_flops = job.found["queries"] * trainings.reading(job.shape, lengths, flops.embedding)
    return {"flops": query_flops, "scanned": job.found["queries"] * job.found["vectors"] * FP32, "longest": 512.0}


def _masked_loss(job: _Job) -> Amounts:
    return _some_texts(job, job.spec["step"]["length"], job.spec["texts"])


def _inspect_model(job: _Job) -> Amounts:
    field = {"coverage": "texts", "map": "candidates", "vectors": "texts"}.get(job.spec["kind"])
    return _some_texts(job, job.spec["length"], job.spec[field] if field else 1)


def _some_texts(job: _Job, length: int, texts: float) -> Amounts:
    lengths = job.size.passages.read(length)
    read = min(texts, job.size.passages.count) * trainings.reading(job.shape, lengths)
    return {"flops": read, "longest": float(lengths.max())}


def _attend(job: _Job) -> Amounts:
    """All texts are read with the parent model, but for the states of its last layer."""
    texts, shape = _texts(job.spec["texts"], job.size), replace(job.shape, layers=job.shape.layers - 1)
    lengths = texts.read(job.spec["texts"]["length"])
    found = {"flops": texts.count * trainings.reading(shape, lengths), "longest": float(lengths.max())}
    return found | {"text_tokens": texts.tokens}


def _prepare(made: Artifact, size: CollectionSize, found: Amounts) -> Amounts:
    return {"text_tokens": _texts(made.spec["preparation"], size).tokens}


def _texts(fields: dict[str, Any], size: CollectionSize) -> TextLengths:
    return trainings.texts(SimpleNamespace(**{"length": sys.maxsize, **fields}), size)


def _published_scores(made: Artifact, size: CollectionSize, found: Amounts) -> Amounts:
    return {"pairs": PUBLISHED}


def _predict_queries(made: Artifact, size: CollectionSize, found: Amounts) -> Amounts:
    """Queries written for every passage, two operations a parameter and token; or read from a published file."""
    if "doc2query_model" not in made.inputs:
        return {}
    written = made.spec["per_passage"] * made.spec["query_length"]
    count = _t5(made.inputs["doc2query_model"].spec["expansion"])
    tokens = size.passages.count * (written + float(size.passages.read(made.spec["length"]).mean()))
    return {"flops": 2.0 * count * tokens, "parameters": count}


def _train_doc2query(made: Artifact) -> Amounts:
    """A T5 that learns to write queries: six operations a parameter and token."""
    fields = made.spec["expansion"]
    tokens = fields["steps"] * fields["batch"] * (fields["length"] + fields["query_length"]) / 2
    return {"flops": 6.0 * _t5(fields) * tokens, "parameters": _t5(fields)}


def _t5(fields: dict[str, Any]) -> float:
    if "checkpoint" not in fields:
        return T5_BASE
    hidden, inner, layers = (float(fields[name]) for name in ("hidden", "intermediate", "layers"))
    return 8192 * hidden + layers * (12 * hidden * hidden + 4 * hidden * inner)


WITH_MODEL: dict[str, Callable[[_Job], Amounts]] = {
    "attend": _attend,
    "encode": _encode,
    "search": _search,
    "search_index": _search,
    "build_index": _build_index,
    "rerank": _rerank,
    "teacher_scores": _teacher_scores,
    "measure_latency": _measure_latency,
    "masked_loss": _masked_loss,
    "inspect_model": _inspect_model,
}
WITHOUT_MODEL: dict[str, Callable[[Artifact, CollectionSize, Amounts], Amounts]] = {
    "prepare": _prepare,
    "teacher_scores": _published_scores,
    "predict_queries": _predict_queries,
}

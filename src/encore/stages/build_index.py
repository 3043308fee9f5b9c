"""Gather a collection's shards into one index of a named type."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from encore.config.systems import K_MEANS_SAMPLE
from encore.models.flops import product
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, PROCESS, Needs, Size

FETCHED = 200  # numbers that a core could multiply while it waits for a vector of a graph, as measured in 80,000


class Spec(Fields):
    """The type of index, and whose vectors it holds."""

    index: dict[str, Any]  # the fields that decide how it is built
    vectors: str  # the folder of the shards


class Inputs(Roles):
    """All shards."""

    shards: list[Path]


class BuildIndex(Stage[Spec, Inputs]):
    """FAISS's file of one index."""

    impl = 2
    devices = "one GPU"
    unnamed = frozenset({"shards"})
    does = "indexes"

    def needs(self, size: Size) -> Needs:
        index, aside, seconds = built(self.spec.index, size.passages, size.shape.dimension)
        seconds += size.passages * size.shape.dimension / 45e6  # 80 million in 16 bits, 25 beyond memory
        memory = PROCESS + index + aside + 24 * size.passages
        return Needs(memory, index + 30 * size.passages, core_seconds=seconds)

    def make(self, job: Job) -> Facts:
        from encore.config.systems import read_index_type
        from encore.retrieval.indexing import make_index

        results, build = make_index(read_index_type(self.spec.index), self.inputs.shards, job.output)
        return {"results": results, "build": build}


def looked_at(index: Mapping[str, Any], count: float, dimension: int, depth: int) -> float:
    """How many numbers a query is multiplied with, or looks up, in an index of ``count`` vectors."""
    match index["kind"]:
        case "hnsw":  # the neighbours of each candidate, of which FAISS keeps as many as it is asked for
            return min(count, max(depth, index["ef_search"]) * 2.0 * index["m"]) * (dimension + FETCHED)
        case "ivfpq":  # all centroids, and the codes of some lists
            return index["nlist"] * dimension + index["nprobe"] * count / index["nlist"] * index["m"]
        case _:
            return count * dimension


def built(index: Mapping[str, Any], count: float, dimension: int) -> tuple[float, float, float]:
    """Bytes of an index of ``count`` vectors, bytes held next to it while it is built, and seconds to build it."""
    vectors = FP32 * count * dimension
    match index["kind"]:
        case "hnsw":  # 2 m links of 4 bytes in the lowest layer, m in each other; they are copied when they are saved
            links = 4 * count * index["m"] * (2 + 1 / max(index["m"] - 1, 1))
            grown = count * looked_at({**index, "ef_search": index["ef_construction"]}, count, dimension, 0)
            return vectors + links, links, grown / 2.2e9  # 2.1 to 3.9e9; docs/scales.md
        case "ivfpq":
            lists, codes = index["nlist"], 2 ** index["bits"]
            size = count * (index["m"] * index["bits"] / 8 + 8) + FP32 * dimension * (lists + codes)
            rounds = ((lists, 10), (codes, 25))  # of FAISS's k-means for so many centroids; then all are assigned
            drawn = {each: min(count, K_MEANS_SAMPLE * each) for each, _ in rounds}
            read = math.fsum(each * (times * drawn[each] + count) for each, times in rounds)
            held = FP32 * dimension * max(drawn.values()) + 12 * count  # their numbers, and ids, are drawn of all
            return size, held, product(1, dimension, read) / 4e10  # 4.0 to 5.4e10, of 60,000 and 120,000 vectors
        case _:
            return vectors / 2, 0.0, 0.0


STAGE = BuildIndex

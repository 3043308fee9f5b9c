"""Gather a collection's shards into one index of a named type."""

from pathlib import Path
from typing import Any

from encore.stages.base import Facts, Fields, Job, Roles, Stage


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
    unnamed = frozenset({"shards"})

    def make(self, job: Job) -> Facts:
        from encore.retrieval.indexing import make_index

        results, build = make_index(self.spec.dumped(), self.inputs.shards, job.output)
        return {"results": results, "build": build}


STAGE = BuildIndex

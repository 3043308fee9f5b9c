"""Encode one shard of a collection's passages into a FAISS index."""

from pathlib import Path
from typing import Any, Literal

from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """How passages are encoded."""

    length: int  # tokens that are read of each passage, special ones included
    numerics: dict[str, Any]
    vectors: Literal["fp32", "fp16"] = "fp32"  # how they are stored


class Inputs(Roles):
    """The model, and the tokens of the collection."""

    model: Path
    tokens: Path


class Encode(Stage[Spec, Inputs]):
    """Its folder is named after the shard: ``000-of-001``."""

    impl = 2
    devices = "one GPU"
    resumes = True

    def make(self, job: Job) -> Facts:
        from encore.retrieval.encode import make_shard

        how, (model, tokens) = self.spec.model_dump(), self.inputs.folders()
        return {"results": make_shard(how, model, tokens, job.output.name, job.output, job.state)}


STAGE = Encode

"""Encode one shard of a collection's passages into a FAISS index."""

from pathlib import Path
from typing import Any, Literal

from encore.models.flops import embedding
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, PROCESS, Needs, Size


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
    does = "indexes"

    def needs(self, size: Size) -> Needs:
        length, passages = self.spec.length, size.passages / int(size.folder.rpartition("-of-")[2])
        return Needs(
            memory=PROCESS + FP32 * size.parameters + 24 * size.passages,
            disk=40 * passages,
            vectors=passages * size.shape.dimension * (2 if self.spec.vectors == "fp16" else FP32),
            operations=passages * embedding(size.shape, 1, size.passage_tokens(length)),
            gpu_memory=size.reading_memory(length),
        )

    def make(self, job: Job) -> Facts:
        from encore.retrieval.encode import Encoding, make_shard

        spec, (model, tokens) = self.spec, self.inputs.folders()
        how = Encoding(spec.length, spec.numerics, spec.vectors)
        return {"results": make_shard(how, model, tokens, job.output.name, job.output, job.state)}


STAGE = Encode

"""Read the texts that an objective trains on with the parent model, for what it attends to in them (B-PROP)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from encore.models.flops import forward
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, PROCESS, Needs, Size


class Spec(Fields):
    """Which texts (``AttendedTexts``)."""

    texts: dict[str, Any]


class Inputs(Roles):
    """The texts' tokens, and the model that reads them."""

    tokens: Path
    weights: Path


class Attend(Stage[Spec, Inputs]):
    """Blocks of texts are shared by all processes."""

    devices = "GPUs"
    resumes = True

    def needs(self, size: Size) -> Needs:
        """All texts are read, except for the states of the model's last layer."""
        texts, length = size.collection.chunks(self.spec.texts), self.spec.texts["length"]
        operations = texts.count * forward(replace(size.shape, layers=size.shape.layers - 1), 1, texts.read(length))
        memory, on_gpu = PROCESS + FP32 * size.parameters + 0.3 * texts.tokens, size.reading_memory(length)
        return Needs(memory, 4 * texts.tokens, operations=operations, precision="fp32", gpu_memory=on_gpu)

    def make(self, job: Job) -> Facts:
        from encore.data.tokens import TokenStore
        from encore.objectives.parts.attention import AttendedTexts, attend

        texts, store = AttendedTexts(**self.spec.texts), TokenStore(self.inputs.tokens)
        return {"results": attend(texts, store, self.inputs.weights, job.output, job.state)}


STAGE = Attend

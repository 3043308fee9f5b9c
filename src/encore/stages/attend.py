"""Read the texts that an objective trains on with the parent model, for what it attends to in them (B-PROP)."""

from pathlib import Path
from typing import Any

from encore.stages.base import Facts, Fields, Job, Roles, Stage


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

    def make(self, job: Job) -> Facts:
        from encore.data.tokens import TokenStore
        from encore.objectives.parts.attention import AttendedTexts, attend

        texts, store = AttendedTexts(**self.spec.texts), TokenStore(self.inputs.tokens)
        return {"results": attend(texts, store, self.inputs.weights, job.output, job.state)}


STAGE = Attend

"""Measure how well a model predicts masked words of a collection's passages."""

from pathlib import Path
from typing import Any

from encore import objectives
from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """How texts are masked, and how many."""

    step: dict[str, Any]  # of MLM
    texts: int
    numerics: dict[str, Any]


class Inputs(Roles):
    """The model, and the collection's tokens."""

    model: Path
    tokens: Path


class MaskedLoss(Stage[Spec, Inputs]):
    """The mean loss."""

    devices = "one GPU"

    def make(self, job: Job) -> Facts:
        from encore.objectives.inspection.pretraining import measure_masked_loss

        spec, given = self.spec, self.inputs
        step = objectives.fields(spec.step)
        results = measure_masked_loss(step, spec.texts, spec.numerics, given.tokens, given.model, job.output)
        print(f"masked loss {results} in {job.output}")
        return {"results": results}


STAGE = MaskedLoss

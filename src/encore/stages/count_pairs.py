"""Count the pairs of texts that a pre-training step learns from, and their tokens."""

from pathlib import Path
from typing import Any

from encore import objectives
from encore.stages.base import Facts, Fields, Job, Roles
from encore.stages.of_objective import ObjectiveStage


class Spec(Fields):
    """The fields of the step that decide which pairs there are."""

    step: dict[str, Any]

    @property
    def variant(self) -> str:
        """The objective."""
        return str(self.step["objective"])


class Inputs(Roles):
    """The texts' tokens."""

    tokens: Path


class CountPairs(ObjectiveStage[Spec, Inputs]):
    """The pairs of an epoch."""

    def make(self, job: Job) -> Facts:
        from encore.objectives.inspection.pretraining import count_pairs

        results = count_pairs(objectives.fields(self.spec.step), self.inputs.tokens, job.output)
        print(f"pairs {results} in {job.output}")
        return {"results": results}


STAGE = CountPairs

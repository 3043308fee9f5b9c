"""Count the pairs of texts that a pre-training step learns from, and their tokens."""

from pathlib import Path
from typing import Any

from encore import objectives
from encore.stages.base import Facts, Fields, Job, Roles, Stage


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


class CountPairs(Stage[Spec, Inputs]):
    """The pairs of an epoch."""

    @classmethod
    def version(cls, variant: str) -> list[int]:
        """The stage's, and that of the objective."""
        return [cls.impl, objectives.load(variant).impl]

    @classmethod
    def modules(cls, variant: str) -> list[str]:
        """The stage's, and that of the objective."""
        return [cls.__module__, objectives.load(variant).__module__]

    def make(self, job: Job) -> Facts:
        from encore.evaluation.inspection.pretraining import count_pairs

        results = count_pairs(objectives.fields(self.spec.step), self.inputs.tokens, job.output)
        print(f"pairs {results} in {job.output}")
        return {"results": results}


STAGE = CountPairs

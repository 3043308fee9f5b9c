"""Train one objective on text alone, from the parent lineage's weights."""

from pathlib import Path
from typing import Any

from encore import objectives
from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """The step, and what chance depends on."""

    step: dict[str, Any]  # fields of the objective (``objectives.fields``)
    seed: int
    numerics: dict[str, Any]

    @property
    def variant(self) -> str:
        """The objective."""
        return str(self.step["objective"])


class Inputs(Roles):
    """The texts' tokens, the model to continue from, and what the objective prepared."""

    tokens: Path
    weights: Path
    prepared: Path | None = None


class Pretrain(Stage[Spec, Inputs]):
    """Each objective is a file in ``objectives/``, with a version of its own."""

    impl = 2
    devices = "GPUs"
    resumes = True

    @classmethod
    def version(cls, variant: str) -> list[int]:
        """The stage's, and that of the objective."""
        return [cls.impl, objectives.load(variant).impl]

    @classmethod
    def modules(cls, variant: str) -> list[str]:
        """The stage's, and that of the objective."""
        return [cls.__module__, objectives.load(variant).__module__]

    def make(self, job: Job) -> Facts:
        from encore.objectives.parts.step import PretrainInputs, pretrain
        from encore.training.checkpoint import Resume

        spec, given = self.spec, self.inputs
        inputs = PretrainInputs(given.tokens, given.weights, given.prepared)
        resume = Resume(job.state, job.checkpoint_seconds, job.workers)
        done = pretrain(objectives.fields(spec.step), spec.seed, spec.numerics, inputs, job.output, resume)
        held_out = {"held_out": done.held_out[-1].rounded()} if done.held_out else {}
        return {"results": done.results | held_out, **done.facts}


STAGE = Pretrain

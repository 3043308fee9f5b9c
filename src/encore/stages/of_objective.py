"""What the stages have in common of which each objective is a variant: pre-training, its preparation, its pairs."""

from encore import objectives
from encore.stages.base import InputsT, SpecT, Stage


class ObjectiveStage(Stage[SpecT, InputsT]):
    """Each objective is a file in ``objectives/``, and has a version."""

    @classmethod
    def version(cls, variant: str) -> list[int]:
        """The stage's, and that of the objective."""
        return [cls.impl, objectives.load(variant).impl]

    @classmethod
    def modules(cls, variant: str) -> list[str]:
        """The stage's, and that of the objective."""
        return [cls.__module__, objectives.load(variant).__module__]

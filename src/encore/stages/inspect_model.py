"""A model's outputs on a few texts, for figures and tables, which read these and no model."""

from pathlib import Path

from encore.objectives.inspection import Inspection
from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields, Inspection):
    """The kind of inspection, and its fields."""

    head: str | None = None  # ``start`` or ``own``, or the name of the folder whose vocabulary head is asked


class Inputs(Roles):
    """The model and the collection's tokens; for a map of candidates also the run and the collection."""

    model: Path
    tokens: Path
    head: Path | None = None  # the model whose vocabulary head is asked
    run: Path | None = None
    collection: Path | None = None


class InspectModel(Stage[Spec, Inputs]):
    """``inspection.json``."""

    impl = 2
    devices = "one GPU"

    def make(self, job: Job) -> Facts:
        from encore.objectives.inspection import inspect_model

        given = self.inputs
        further = (given.head, given.run, given.collection)
        results = inspect_model(self.spec, given.model, given.tokens, job.output, *further)
        print(f"inspection of kind {self.spec.kind} in {job.output}")
        return {"results": results}


STAGE = InspectModel

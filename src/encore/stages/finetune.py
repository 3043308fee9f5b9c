"""Train on judged queries with negatives, from the weights that the step continues from."""

from functools import partial
from pathlib import Path
from typing import Any

from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """The step, which passages are no negatives, what chance depends on, and whose vectors are searched."""

    step: dict[str, Any]  # ``FinetuneStep``
    seed: int
    numerics: dict[str, Any]
    ignore_identical_ids: bool = False
    ignore_copies: bool = False
    index: str | None = None  # the folder of the shards


class Inputs(Roles):
    """Texts, judgments and a model; negatives and teachers where the step has some."""

    tokens: Path
    collection: Path
    weights: Path
    negatives: Path | None = None
    clusterer: Path | None = None  # whose vectors of queries are clustered into batches
    teachers: list[Path] = []
    shards: list[Path] = []  # that queries are searched in, for ``negatives: index``


class Finetune(Stage[Spec, Inputs]):
    """With ``validate_every`` the weights are those of the best validation."""

    impl = 4
    devices = "GPUs"
    resumes = True
    unnamed = frozenset({"shards"})

    def make(self, job: Job) -> Facts:
        from encore.finetuning.step import FinetuneInputs, finetune
        from encore.retrieval.dense import vectors_by_row
        from encore.training.checkpoint import Resume

        given = self.inputs
        inputs = FinetuneInputs(
            tokens=given.tokens,
            collection=given.collection,
            weights=given.weights,
            negatives=given.negatives,
            teachers=given.teachers,
            clusterer=given.clusterer,
            index=partial(vectors_by_row, given.shards) if given.shards else None,
        )
        resume = Resume(job.state, job.checkpoint_seconds, job.workers)
        done = finetune(self.spec.dumped(), inputs, job.output, resume)
        best = {"best_step": done.best_step} if done.validations else {}
        return {"results": done.results | best, **done.facts}


STAGE = Finetune

"""Train on judged queries with negatives, from the weights that the step continues from."""

from functools import partial
from pathlib import Path
from typing import Any

from encore.config.datasets import Ignored
from encore.config.finetuning import PART, FinetuneStep
from encore.config.validation import checked
from encore.models.config import EncoderConfig
from encore.models.flops import forward, product
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, PROCESS, Example, Needs, Size, training_memory
from encore.training.schedule import total_steps

NEGATIVE = 150  # bytes of a negative's id and row, while all are read
KEPT = 60  # negatives of a query, where the spec does not say: two merged sets of 30


class Spec(Fields, Ignored):
    """The step, which passages are no negatives, what chance depends on, and whose vectors are searched."""

    step: dict[str, Any]  # ``FinetuneStep``
    seed: int
    numerics: dict[str, Any]
    index: str | None = None  # the folder of the shards

    @property
    def training(self) -> FinetuneStep:
        """The step with types."""
        return checked(FinetuneStep, self.step, "fine-tuning step")


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
    does = "trains"

    def needs(self, size: Size) -> Needs:
        step, shape = self.spec.training, size.shape
        queries = max(1, round(size.asked(step.train_split, step.queries)))
        read, asked = size.passage_tokens(step.length), size.query_tokens(step.query_length)
        steps = total_steps(step, queries)
        operations = steps * step.batch * example(step, shape, read, asked).operations(shape)
        if step.negatives == "index":
            operations += steps * product(step.batch, shape.dimension, size.passages)
        tries = len(step.learning_rates)
        operations *= 1 + tries / PART
        if step.validates:
            looked_at = step.validation_pool + step.validation_queries
            validations = (steps // step.validate_every if step.validate_every else 0) + (tries + 3 if tries else 0)
            operations += validations * looked_at * forward(shape, 1, read)
        validated = dict[str, float]()
        if step.validates:
            validated["validation_queries"] = max(1, round(size.asked(step.valid_split, step.validation_queries)))
        full = example(step, shape, step.length, step.query_length)
        memory, notes = training_memory(step, full, size, self.spec.numerics)
        negatives = queries * (size.given["negatives"].get("keep") or KEPT) if "negatives" in size.given else 0
        return Needs(
            memory=PROCESS + 12 * size.parameters + 16 * size.passages + NEGATIVE * negatives,
            disk=FP32 * size.parameters,
            checkpoint=36 * size.parameters,
            operations=operations,
            gpu_memory=memory,
            counts={"steps": steps, "queries": queries, "epochs": steps * step.batch / queries} | validated,
            notes=notes,
        )

    def make(self, job: Job) -> Facts:
        from encore.finetuning.step import FinetuneInputs, finetune
        from encore.retrieval.dense import vectors_by_row
        from encore.training.checkpoint import Resume

        spec, given = self.spec, self.inputs
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
        done = finetune(
            spec.training, inputs, job.output, seed=spec.seed, numerics=spec.numerics, ignored=spec, resume=resume
        )
        return {"results": done.results, **done.facts}


def example(step: FinetuneStep, shape: EncoderConfig, length: float, asked: float) -> Example:
    """What is read of a query and its passages, or of their pairs.

    Args:
        length: tokens of a passage.
        asked: those of a query.
    """
    if step.negatives == "index":
        return Example(asked / length, length)
    passages = 1 + step.negatives_per_query
    if step.scorer == "cross-encoder":
        return Example(passages, length + asked - 1)
    late = step.scorer == "late-interaction"  # each token of a query with each of all passages
    numbers = step.token_dimension * asked * length if late else shape.dimension
    return Example(passages + asked / length, length, compared=step.batch * passages * numbers)


STAGE = Finetune

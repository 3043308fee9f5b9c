"""Train one objective on text alone, from the parent lineage's weights."""

from pathlib import Path
from typing import Any

from encore import objectives
from encore.config.entries import PretrainStep
from encore.models.config import EncoderConfig
from encore.objectives.autoencoding import AutoencodingFields
from encore.objectives.condenser import CondenserFields
from encore.objectives.costa import CostaFields
from encore.objectives.parts.decoding import DecodingFields
from encore.objectives.parts.masked_texts import MaskingFields
from encore.objectives.parts.pairs import PairFields
from encore.objectives.parts.preference import PreferenceFields
from encore.objectives.simlm import SimlmFields
from encore.stages.base import Facts, Fields, Job, Roles
from encore.stages.needs import FP32, PROCESS, SENTENCE, Example, Needs, Size, training_memory
from encore.stages.of_objective import ObjectiveStage
from encore.training.schedule import total_steps

EXAMPLES = 6e3  # in a second: 9,900 of costa, the slowest objective, in docs/performance.md


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


class Pretrain(ObjectiveStage[Spec, Inputs]):
    """Each objective is a file in ``objectives/``, with a version of its own."""

    impl = 2
    devices = "GPUs"
    resumes = True
    does = "trains"

    def needs(self, size: Size) -> Needs:
        step, texts = objectives.fields(self.spec.step), size.collection.chunks(self.spec.step)
        steps = total_steps(step, max(1, round(texts.count)))
        asked = min(SENTENCE + 2, step.query_length)
        longest = example(step, size.shape, step.length, step.query_length)
        memory, notes = training_memory(step, longest, size, self.spec.numerics)
        examples = float(steps + step.head_warmup) * step.batch
        return Needs(
            memory=PROCESS + 12 * size.parameters + 0.35 * size.collection.tokens,
            disk=FP32 * size.parameters,
            checkpoint=24 * size.parameters,
            operations=examples * example(step, size.shape, texts.read(step.length), asked).operations(size.shape),
            gpu_memory=memory,
            core_seconds=examples / EXAMPLES,
            cores=size.processes * max(1, size.workers),
            counts={"steps": steps, "pieces_per_text": texts.mean},
            notes=notes,
        )

    def make(self, job: Job) -> Facts:
        from encore.objectives.parts.step import PretrainInputs, pretrain
        from encore.training.checkpoint import Resume

        spec, given = self.spec, self.inputs
        inputs = PretrainInputs(given.tokens, given.weights, given.prepared)
        resume = Resume(job.state, job.checkpoint_seconds, job.workers)
        done = pretrain(objectives.fields(spec.step), spec.seed, spec.numerics, inputs, job.output, resume)
        held_out = {"held_out": done.held_out[-1].rounded()} if done.held_out else {}
        return {"results": done.results | held_out, **done.facts}


def example(step: PretrainStep, shape: EncoderConfig, length: float, asked: float) -> Example:
    """What is read of an example, by the fields that mean the same in every objective.

    Args:
        length: tokens of a text.
        asked: tokens of a query or word set, where there are such.
    """
    views = objectives.load(step.objective).views
    texts, layers, predicted = float(views), 0.0, step.mask_ratio if isinstance(step, MaskingFields) else 0.0
    compared = views * step.batch * shape.dimension if step.contrasts_texts else 0.0
    match step:
        case PairFields():
            texts, predicted = texts + asked / length, step.mask_ratio if step.mlm_weight else 0.0
        case PreferenceFields():  # the longest of a batch's sets has about four pieces for each word of a mean one
            texts += 2 * step.pairs * min(4 * step.set_size + 2, step.query_length) / length
        case CondenserFields():
            layers, predicted = step.head_layers, 2 * predicted
        case CostaFields():  # spans are means of states, by a product, and compared with all texts
            compared = step.spans * len(step.granularities) * (length + step.batch) * shape.hidden
        case AutoencodingFields():
            layers, predicted = step.decoder_layers, predicted + step.decoder_mask_ratio
        case DecodingFields() | SimlmFields():  # a decoder predicts nearly all pieces
            layers, predicted = getattr(step, "decoder_layers", 1), predicted + 1
    return Example(texts + views * layers / shape.layers, length, views * predicted * length, compared)


STAGE = Pretrain

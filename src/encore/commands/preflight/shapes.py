"""The shape of a planned model and its parameters, from the plan alone."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from encore import objectives
from encore.config.checkpoints import CONFIG
from encore.config.entries import Backbone, Step
from encore.config.finetuning import FinetuneStep
from encore.config.published import read_json
from encore.models.config import EncoderConfig
from encore.models.flops import PRODUCTS
from encore.plan.artifact import Artifact
from encore.storage.files import canonical

BERT = 30_522  # word pieces of BERT's vocabulary, for a checkpoint that is not here yet


def step_of(model: Artifact) -> Step:
    """The step that a model is trained by, from its spec."""
    return _read(model.stage.startswith("pretrain"), canonical(model.spec["step"]))


@cache
def _read(pretraining: bool, fields: str) -> Step:
    """Many jobs are about one step, whose fields take a while to check; so do a backbone's."""
    step = json.loads(fields)
    return objectives.fields(step) if pretraining else FinetuneStep.model_validate(step)


def model_of(made: Artifact) -> Artifact | None:
    """The model that a job trains or reads with, or None."""
    if made.stage.partition(".")[0] in ("start", "pretrain", "finetune"):
        return made
    if "shard0" in made.inputs and "model" not in made.inputs:
        return model_of(made.inputs["shard0"])
    return made.inputs.get("model", made.inputs.get("weights"))


def shape_of(model: Artifact) -> EncoderConfig:
    """The shape of a model: its backbone's, with the projector that a step may have added."""
    if "weights" in model.inputs:
        shape, projector = shape_of(model.inputs["weights"]), model.spec["step"].get("projector", "none")
        return shape if projector == "none" else replace(shape, projector=projector)
    return _shape(canonical(model.spec["backbone"]), _vocabulary_of(model.source))


@cache
def _shape(fields: str, vocabulary: int | None) -> EncoderConfig:
    return shape_of_backbone(Backbone.model_validate(json.loads(fields)), vocabulary)


def shape_of_backbone(backbone: Backbone, vocabulary: int | None = None) -> EncoderConfig:
    """The shape that a backbone's start will have; ``vocabulary``: of a checkpoint that is here."""
    fields = backbone.model_dump()
    kept = {name: fields[name] for name in EncoderConfig.__dataclass_fields__ if name in fields}
    markers = {  # a marker such as `[Q]` has a piece for each letter and sign
        name: tuple(range(5, 5 + len(kept[name]))) for name in ("query_marker", "passage_marker")
    }
    return EncoderConfig(**{**kept, **markers, "vocabulary": fields["vocabulary"] or vocabulary or BERT})


def _vocabulary_of(folder: str | None) -> int | None:
    """The word embeddings that the ``config.json`` of a checkpoint's folder says; None without one."""
    path = Path(folder or "") / CONFIG
    return read_json(path).get("vocab_size") if folder and path.is_file() else None


def parameters(shape: EncoderConfig) -> int:
    """Parameters of an encoder, both towers counted."""
    width, inner = shape.hidden, shape.intermediate
    if shape.architecture == "bow-mlp":
        own = shape.vocabulary * width + _linear(width, inner) + _linear(inner, shape.dimension)
    else:
        embeddings = (shape.vocabulary + shape.max_length + shape.segments + 2) * width
        layer = 4 * _linear(width, width) + _linear(width, inner) + _linear(inner, width) + 4 * width
        head = _linear(width, shape.projection_dim) if shape.projection_dim else 0
        own = embeddings + shape.layers * layer + PRODUCTS[shape.projector] * _linear(width, width) + head
    return own * (2 if shape.encoders == "separate" else 1)


def _linear(inner: int, outer: int) -> int:
    """A matrix and its bias."""
    return inner * outer + outer

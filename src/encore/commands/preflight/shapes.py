"""The shape of a planned model, from the plan alone."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from encore.config.checkpoints import CONFIG
from encore.config.entries import Backbone
from encore.config.published import read_json
from encore.models.config import EncoderConfig
from encore.plan.artifact import Artifact
from encore.stages.start import Start
from encore.storage.files import canonical

BERT = 30_522  # word pieces of BERT's vocabulary, for a checkpoint that is not here yet


def model_of(made: Artifact) -> Artifact | None:
    """The model that a job trains or reads with, or None."""
    if "backbone" in made.spec or "weights" in made.inputs:
        return made
    if "shard0" in made.inputs and "model" not in made.inputs:
        return model_of(made.inputs["shard0"])
    return made.inputs.get("model")


def shape_of(model: Artifact) -> EncoderConfig:
    """The shape of a model: its backbone's, with the projector that a step may have added."""
    if "weights" in model.inputs:
        shape, projector = shape_of(model.inputs["weights"]), model.spec.get("step", {}).get("projector", "none")
        return shape if projector == "none" else replace(shape, projector=projector)
    return _shape(canonical(model.typed(Start).backbone), _vocabulary_of(model.source))


@cache
def _shape(fields: str, vocabulary: int | None) -> EncoderConfig:
    """Many jobs are about one backbone, whose fields take a while to check."""
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

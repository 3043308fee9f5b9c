"""Backbones that start from the model of a lineage: what is refused before anything is planned."""

from typing import Any

from encore.config import lineage as naming
from encore.config.entries import Backbone
from encore.config.validation import explained, nearest
from encore.errors import EncoreError

# What weights have the form of; everything else a backbone may say anew of the model that it takes.
SHAPE = (
    *("architecture", "vocabulary", "collection", "layers", "hidden", "heads", "intermediate", "max_length"),
    *("projection_dim", "encoders"),
)


def check(backbones: dict[str, Backbone], steps: dict[str, dict[str, Any]], file: str) -> None:
    """Check the lineage of every backbone with ``start: lineage``.

    Raises:
        EncoreError: it is no lineage of pre-training steps that are known, its backbone has another shape, or it leads
            back to the backbone itself; one line with file and entry.
    """
    for name, backbone in backbones.items():
        if backbone.start == "lineage":
            _check_start(name, backbones, steps, f"{file}: {name}: lineage")


def _check_start(name: str, backbones: dict[str, Backbone], steps: dict[str, dict[str, Any]], place: str) -> None:
    lineage = backbones[name].lineage
    if lineage is None:
        raise EncoreError(f"{place}: is missing; name the lineage whose model is taken, such as tiny+mlm")
    read = explained(naming.parse, lineage, place)
    if read.backbone not in backbones:
        raise EncoreError(f"{place}: unknown backbone {read.backbone!r}{nearest(read.backbone, backbones)}")
    for step in (step.name for step in read.steps):
        if step not in steps:
            raise EncoreError(f"{place}: unknown step {step!r}{nearest(step, steps)}")
        if steps[step]["kind"] != "pretrain":
            raise EncoreError(f"{place}: {step!r} is fine-tuning; a start has learned from texts alone")
    seen, origin = [name], read.backbone
    while origin not in seen and (further := backbones[origin].lineage):
        seen.append(origin)
        origin = further.partition("+")[0]
        if origin not in backbones:
            return  # its own entry is refused
    if origin in seen:
        raise EncoreError(f"{place}: {name!r} starts from itself ({' from '.join([*seen, origin])}); name another")
    own, taken = backbones[name], backbones[read.backbone]
    for field in SHAPE:
        if getattr(own, field) != getattr(taken, field):
            raise EncoreError(
                f"{place}: {field} is {getattr(own, field)} here and {getattr(taken, field)} in {read.backbone!r}, "
                "whose weights are taken; give both the same"
            )

"""The resolved configuration of a lineage: each value of its backbone, steps and index, and where it comes from."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from encore.commands.plan import plan_of
from encore.config import published
from encore.plan.lineage import split_index
from encore.plan.plan import Plan


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument(
        "lineage", help="for example bert-base+costa~temperature=0.05+marco-bm25, with or without @hnsw"
    )


def answer(arguments: argparse.Namespace) -> int:
    """The resolved backbone, steps and index."""
    print(config_text(plan_of(arguments), arguments.lineage))
    return 0


def config_text(plan: Plan, text: str) -> str:
    """A paragraph for the backbone, each step and the index of a lineage, with a line for each value.

    Args:
        text: the lineage, with or without an index.
    """
    resolve, (name, index) = plan.resolve, split_index(text)
    lineage = resolve.lineage(name)
    layers = _layers(plan, lineage.backbone)
    found = [_told(f"backbone {lineage.backbone}", resolve.backbone(lineage), layers)]
    for named in lineage.steps:
        step, layers = resolve.step(named), resolve.step_layers(named)
        if step.collection != plan.catalogue.steps[named.name]["collection"]:
            layers[plan.config.at("scale.datasets")] = {"collection": step.collection}
        found.append(_told(f"step {named}", step, layers))
    if index:
        found.append(_told(f"index {index}", resolve.index_type(index), resolve.index_layers(index)))
    replaced = [] if str(lineage) == name else [plan.config.at(f"`scale:` makes {lineage} of {name}")]
    return "\n\n".join([*replaced, *found])


def _layers(plan: Plan, name: str) -> dict[str, dict[str, Any]]:
    """The fields of a backbone by the place that sets them: the catalogue, the run, or a file of its checkpoint."""
    entry, backbone = plan.catalogue.backbones[name], plan.resolve.named_backbone(name)
    written = plan.config.at(f"backbones.{name}") if name in plan.config.backbones else "config/backbones.yaml"
    layers: dict[str, dict[str, Any]] = {written: dict.fromkeys(entry.model_fields_set)}
    taken = backbone.model_fields_set - entry.model_fields_set
    files = published.said_by(Path(entry.checkpoint)).files if taken and entry.checkpoint else {}
    for key in taken:
        place = f"{entry.checkpoint}/{files[key]}" if key in files else f"the backbone of {entry.lineage}"
        layers.setdefault(place, {})[key] = None
    return layers


def _told(title: str, model: BaseModel, layers: dict[str, dict[str, Any]]) -> str:
    """The values of a model, each with the last layer that sets it."""
    lines = []
    for key, value in model.model_dump(mode="json").items():
        if value not in (None, "") and key != "source":
            origin = next((where for where in reversed(layers) if key in layers[where]), "default")
            lines.append(
                (f"  {key}", f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value), origin)
            )
    source = getattr(model, "source", "")
    return "\n".join([f"{title}: {source}" if source else title, *aligned(lines)])


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells as text in columns, of which the last one may be ragged."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)][:-1]
    return ["  ".join([*map(str.ljust, line, widths), line[-1]]) for line in lines]

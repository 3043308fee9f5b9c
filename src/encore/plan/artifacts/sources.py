"""The plan of what comes from the network: named sources, and what ir_datasets downloads for a dataset.

Neither an address nor where the files are kept decides anything, so neither is in a spec.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from encore.config import checkpoints
from encore.config.entries import Backbone
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, names, required
from encore.plan.planner import Planner

FOLDERS = {"fetch_source": "sources", "fetch_ir_datasets": "ir_datasets", "fetch_checkpoint": "checkpoints"}


def source(plan: Planner, name: str) -> Artifact:
    """The unpacked files of an entry of ``sources.yaml``.

    Raises:
        EncoreError: there is no such entry.
    """
    known = plan.catalogue.sources
    if name not in known:
        raise EncoreError(f"{name!r} is not in sources.yaml{nearest(name, known)}")
    spec = {"impl": plan.impl("fetch_source"), "files": known[name].identity()}
    return plan.make("fetch_source", f"{FOLDERS['fetch_source']}/{name}", spec, {})


def ir_datasets(plan: Planner, dataset: str) -> Artifact:
    """What ir_datasets downloads of a dataset itself: the proof that it lies in ``data_root``, with counts."""
    spec = {"impl": plan.impl("fetch_ir_datasets"), "ids": plan.resolve.own(dataset).fields.made_from.ids}
    return plan.make("fetch_ir_datasets", f"{FOLDERS['fetch_ir_datasets']}/{dataset}", spec, {})


class Given(NamedTuple):
    """Where a checkpoint comes from: its fields in specs, the artifact that downloads it, or the user's folder."""

    spec: Spec
    inputs: dict[str, Artifact]
    folder: str | None = None


def checkpoint(plan: Planner, name: str, revision: str | None = None) -> Given:
    """The files of a checkpoint: an entry of ``sources.yaml``, a folder of the user's, or an id of the hub."""
    if name in plan.catalogue.sources:
        inputs = {"checkpoint": source(plan, name)}
    elif checkpoints.is_folder(name):
        return Given({"content": checkpoints.content(Path(name))}, {}, name)
    else:
        spec = {"impl": plan.impl("fetch_checkpoint"), "id": name, "revision": revision}
        folder = f"{FOLDERS['fetch_checkpoint']}/{checkpoints.called(name).lower()}"
        inputs = {"checkpoint": plan.make("fetch_checkpoint", folder, spec, {})}
    return Given(names(inputs), inputs)


def of_backbone(plan: Planner, backbone: Backbone) -> Given:
    """The files of the checkpoint that a backbone starts from."""
    name = required(backbone.checkpoint, "checkpoint", "a backbone with `start: checkpoint`")
    return checkpoint(plan, name, backbone.revision)


def fetched(plan: Planner) -> list[Artifact]:
    """Everything from the network among what has been planned so far."""
    return [artifact for artifact in plan.made.values() if artifact.stage in FOLDERS]

"""The plan of what comes from the network: named sources, and what ir_datasets downloads for a dataset.

Neither an address nor where the files are kept decides anything, so neither is in a spec.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from encore.config import checkpoints
from encore.config.run import Backbone
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, names, required

if TYPE_CHECKING:
    from encore.plan.artifacts.texts import Texts

FOLDERS = {"fetch_source": "sources", "fetch_ir_datasets": "ir_datasets", "fetch_checkpoint": "checkpoints"}
SOURCE = "source:"  # before the name of one, where a dataset has the same


def source(plan: Texts, name: str) -> Artifact:
    """The unpacked files of an entry of ``sources.yaml``.

    Raises:
        EncoreError: there is no such entry.
    """
    known = plan.catalogue.sources
    if name not in known:
        raise EncoreError(f"{name!r} is not in sources.yaml{nearest(name, known)}")
    spec = {"impl": plan.impl("fetch_source"), "files": known[name].identity()}
    return plan.make("fetch_source", f"{FOLDERS['fetch_source']}/{name}", spec, {})


def ir_datasets(plan: Texts, dataset: str) -> Artifact:
    """What ir_datasets downloads of a dataset itself: the proof that it lies in ``data_root``, with counts."""
    ids = plan.dataset_fields(dataset).ids()
    spec = {"impl": plan.impl("fetch_ir_datasets"), "ids": ids}
    return plan.make("fetch_ir_datasets", f"{FOLDERS['fetch_ir_datasets']}/{dataset}", spec, {})


class Given(NamedTuple):
    """Where a checkpoint comes from: what specs say of it, the artifact that brings it, or the user's folder."""

    spec: Spec
    inputs: dict[str, Artifact]
    folder: str | None = None


def checkpoint(plan: Texts, name: str, revision: str | None = None) -> Given:
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


def of_backbone(plan: Texts, backbone: Backbone) -> Given:
    """The files of the checkpoint that a backbone starts from."""
    name = required(backbone.checkpoint, "checkpoint", "a backbone with `start: checkpoint`")
    return checkpoint(plan, name, backbone.revision)


def of_dataset(plan: Texts, dataset: str, fields: Any) -> dict[str, Artifact]:
    """What has to be fetched before a dataset can be brought into the common form, by role, if anything."""
    found = {"fetched": ir_datasets(plan, dataset)} if hasattr(fields, "ids") else {}
    named = fields.sources() if hasattr(fields, "sources") else []
    return found | {f"source.{name}": source(plan, name) for name in named}


def explore(plan: Texts, folder: str) -> None:
    """Plan the source or the dataset that a folder names, whether or not anything declared needs it."""
    kind, name = folder.split("/")[1:3] if folder.count("/") == 2 else ("", "")
    name = name.rpartition("-")[0]
    if kind == FOLDERS["fetch_source"] and name in plan.catalogue.sources:
        source(plan, name)
    for known, revision in _checkpoints(plan) if kind == FOLDERS["fetch_checkpoint"] else ():
        if checkpoints.called(known).lower() == name:
            checkpoint(plan, known, revision)
    if name not in plan.dataset_names():
        return
    if kind == FOLDERS["fetch_ir_datasets"] and hasattr(plan.dataset_fields(name), "ids"):
        ir_datasets(plan, name)
    if kind == "collections":
        plan.named_collection(name)


def named(plan: Texts, name: str) -> list[str]:
    """What Snakemake can be asked for to have a dataset, a source or a checkpoint.

    Of one name it is the dataset; ``source:wikipedia`` is the source.
    """
    if name.startswith(SOURCE):
        return [source(plan, name.removeprefix(SOURCE)).manifest]
    if name in plan.dataset_names():
        return [plan.named_collection(name).manifest]
    if name in plan.catalogue.sources:
        return [source(plan, name).manifest]
    for known, revision in _checkpoints(plan):
        if known == name:
            return [artifact.manifest for artifact in checkpoint(plan, known, revision).inputs.values()]
    return []


def misspelt(plan: Texts, name: str) -> str | None:
    """What is wrong with a single name that is nothing at all, if a source or dataset is nearer to it than a model."""
    models = {*plan.catalogue.backbones, *plan.catalogue.systems}
    everything = {*models, *plan.catalogue.sources, *plan.dataset_names()}
    near = difflib.get_close_matches(name, sorted(everything), n=1, cutoff=0.7)
    if name in models or not near or near[0] in models:
        return None
    return f"{name!r} is no source, dataset, backbone or system{nearest(name, everything)}"


def refuse_missing(plan: Texts, needed: Iterable[Artifact]) -> None:
    """Refuse to begin where something has to be brought by hand, and is not there.

    Raises:
        EncoreError: it says what, and how to get it.
    """
    for made in (made for made in needed if made.stage.startswith("collection.")):
        fields = plan.dataset_fields(made.name.rpartition("-")[0])
        if (missing := getattr(fields, "missing", None)) and not Path(made.manifest).is_file():
            raise EncoreError(missing)


def _checkpoints(plan: Texts) -> Iterator[tuple[str, str | None]]:
    """The checkpoints that backbones and expansions name, with their commits where these are pinned."""
    for backbone in plan.catalogue.backbones.values():
        if backbone.checkpoint is not None:
            yield backbone.checkpoint, backbone.revision
    for expansion in plan.catalogue.expansions.values():
        if getattr(expansion, "checkpoint", None) is not None:
            yield expansion.checkpoint, None


def needed(plan: Texts) -> list[Artifact]:
    """Everything fetched among what has been planned so far."""
    return [artifact for artifact in plan.made.values() if artifact.stage in FOLDERS]

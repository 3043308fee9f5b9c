"""Folders of results by name: which artifact a folder's own name identifies, and what users can request by a name."""

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from encore.config import checkpoints
from encore.config.systems import SYSTEMS
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.artifacts import scores
from encore.plan.artifacts.collections import checkpoint_files, fetched_ir_datasets, fetched_source, named_collection
from encore.plan.planner import Planner
from encore.plan.resolver import Resolver

SOURCE = "source:"  # before the name of one, where a dataset has the same
_OWNER = re.compile(r"(?P<system>[a-z0-9_.=~+-]+?)(?:-s(?P<seed>\d+))?-[0-9a-f]{8}(?P<index>@[a-z0-9_.=~-]+)?")


def patterns(resolve: Resolver) -> dict[str, str]:
    """For each kind of folder whose names a configuration gives, a regular expression of them, by wildcard.

    Rules that write into one folder of results are distinguished by these alone.
    """
    return {
        "pretrained": _models_after(resolve, "pretrain"),
        "finetuned": _models_after(resolve, "finetune"),
        "model": lineages(resolve),
        **{kind: systems(resolve, kind) for kind in SYSTEMS},
        "figure": _alternatives(resolve.catalogue.figures),
    }


def _models_after(resolve: Resolver, kind: str) -> str:
    last = _alternatives(name for name, step in resolve.catalogue.steps.items() if step["kind"] == kind)
    return rf"[a-z0-9_.=~+-]*\+{last}(?:~[a-z0-9_.=~-]*)?-s\d+-[0-9a-f]{{8}}"


def lineages(resolve: Resolver) -> str:
    """A regular expression of the folders of models and of their runs: of no other system's."""
    return rf"{_alternatives(resolve.catalogue.backbones)}(?:\+[a-z0-9_.=~+-]+)?-s\d+-[0-9a-f]{{8}}"


def systems(resolve: Resolver, kind: str) -> str:
    """A regular expression of the folders of a kind of systems that are not lineages."""
    names = _alternatives(name for name, system in resolve.catalogue.systems.items() if system.kind == kind)
    return rf"{names}(?:-s\d+)?-[0-9a-f]{{8}}"


def plan_named(plan: Planner, folder: str) -> None:
    """Plan what a folder's name identifies: a source, a dataset, a model by its lineage, or a system's artifacts."""
    _, kind, name = folder.split("/")[:3] if folder.count("/") >= 2 else ("", "", "")
    _plan_texts(plan, kind, name.rpartition("-")[0])
    owner = _OWNER.fullmatch(name)
    if owner is None or (owner["system"] not in plan.catalogue.systems and owner["seed"] is None):
        return
    system, seed = owner["system"], int(owner["seed"]) if owner["seed"] else None
    if system not in plan.catalogue.systems:
        assert seed is not None
        lineage = plan.resolve.lineage(system)
        model = plan.model(lineage, seed)
        if model.name != name.partition("@")[0]:
            raise EncoreError(f"{name} was made by another configuration; under this one the lineage is {model.name}")
        if kind == "models" or plan.resolve.scorer(lineage) != "vector":
            return
    _plan_scores(plan, system + (owner["index"] or ""), seed)


def _plan_texts(plan: Planner, kind: str, name: str) -> None:
    if kind == "sources" and name in plan.catalogue.sources:
        fetched_source(plan, name)
    for known, revision in _checkpoints(plan) if kind == "checkpoints" else ():
        if checkpoints.called(known).lower() == name:
            checkpoint_files(plan, known, revision)
    if name in plan.resolve.datasets:
        if kind == "ir_datasets" and plan.resolve.own(name).fields.made_from.ids:
            fetched_ir_datasets(plan, name)
        if kind == "collections":
            named_collection(plan, name)


def _plan_scores(plan: Planner, system: str, seed: int | None) -> None:
    for dataset in plan.resolve.datasets.in_use():
        for split, fields in plan.resolve.own(dataset).fields.splits.items():
            if fields.measures and scores.tested_fairly(plan, system, dataset, split):
                with suppress(EncoreError):  # for example a fusion cannot choose its weight on every dataset
                    scores.scores(plan, system, seed, dataset, split)
                    scores.latency(plan, system, seed, dataset, fields.topics or split)


def named(plan: Planner, name: str) -> list[str]:
    """The targets of Snakemake that make a dataset, a source or a checkpoint.

    Of one name it is the dataset; ``source:wikipedia`` is the source.
    """
    if name in plan.resolve.datasets:
        return [named_collection(plan, name).manifest]
    if name.startswith(SOURCE) or name in plan.catalogue.sources:
        return [fetched_source(plan, name.removeprefix(SOURCE)).manifest]
    found = (checkpoint_files(plan, known, revision) for known, revision in _checkpoints(plan) if known == name)
    return [artifact.manifest for given in found for artifact in given.inputs.values()][:1]


def misspelt(plan: Planner, name: str) -> str | None:
    """What is wrong with a single name that is nothing at all, if a source or dataset is nearer to it than a model."""
    models = {*plan.catalogue.backbones, *plan.catalogue.systems}
    everything = {*models, *plan.catalogue.sources, *plan.resolve.datasets}
    near = difflib.get_close_matches(name, sorted(everything), n=1, cutoff=0.7)
    if name in models or not near or near[0] in models:
        return None
    return f"{name!r} is not a source, dataset, backbone or system{nearest(name, everything)}"


def refuse_missing(plan: Planner, needed: Iterable[Artifact]) -> None:
    """Refuse to begin where something has to be put in place by hand, and is not there or cannot be used."""
    for artifact in (each for each in needed if not Path(each.manifest).is_file()):
        if not artifact.stage.startswith("collection."):
            if artifact.source and not Path(artifact.source).exists():
                raise EncoreError(
                    f"{artifact.source} is missing; put it there, or correct its name in the configuration"
                )
            continue
        fields = plan.resolve.own(artifact.name.rpartition("-")[0]).fields
        if fields.missing:
            raise EncoreError(fields.missing)
        fields.check_files()


def _checkpoints(plan: Planner) -> Iterator[tuple[str, str | None]]:
    """The checkpoints that backbones and expansions name, with their commits where these are pinned."""
    for backbone in plan.catalogue.backbones.values():
        if backbone.checkpoint is not None:
            yield backbone.checkpoint, backbone.revision
    for expansion in plan.catalogue.doc2query.values():
        if getattr(expansion, "checkpoint", None) is not None:
            yield expansion.checkpoint, expansion.revision


def _alternatives(names: Iterable[str]) -> str:
    return "(?:" + "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) + ")"

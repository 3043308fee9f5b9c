"""What can be named (backbones, steps, datasets, systems, tables), read from ``config/`` and checked whole.

Every mistake is reported in one line with its file, its place and the nearest right name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from encore import objectives
from encore.config import systems
from encore.config.datasets import CollectionFields
from encore.config.entries import Backbone, Step, System
from encore.config.finetuning import FinetuneStep
from encore.config.run import RunConfig
from encore.config.sources import SourceEntry
from encore.config.validation import explained, nearest, read_yaml, refuse_odd_name
from encore.datasets import kinds
from encore.errors import EncoreError, quoted
from encore.plan import lineage as naming
from encore.plan.artifact import Artifact
from encore.plan.published_counts import PublishedCount, read_published_counts, step_name
from encore.storage.program_files import of_papers

T = TypeVar("T")
OWN = ("backbones", "sources", "systems")  # of what a run may have entries of its own
Reader = Callable[[Any], Any]
TARGET = re.compile(r"[a-z0-9_-]+")  # what papers, tables and figures may be called, as workflow/rules has it
# Fields that shape the weights; a backbone may change all others of the model that it takes, and double its encoder.
SHAPE = (
    *("architecture", "vocabulary", "collection", "layers", "hidden", "heads", "intermediate", "max_length"),
    *("projection_dim", "encoders"),
)


@dataclass(frozen=True)
class Catalogue:
    """Every entry that a run can name. Steps and indexes stay plain until scale and a name's overrides are applied.

    Entries of tables and figures are defined in ``products``, which are above the plan.
    """

    backbones: dict[str, Backbone]
    steps: dict[str, dict[str, Any]]
    datasets: dict[str, Any]
    systems: dict[str, System]
    indexes: dict[str, dict[str, Any]]
    doc2query: dict[str, Any]
    sources: dict[str, SourceEntry]
    tables: dict[str, Any]
    figures: dict[str, Any]
    published_counts: list[PublishedCount]

    def counts_of(self, made: Artifact) -> list[PublishedCount]:
        """The counts that were published of a model's last step, as it is here; none of any other artifact.

        What a file of triples holds is nothing to compare a sample of queries with.
        """
        if "step" not in made.spec or "weights" not in made.inputs:
            return []
        step = step_name(made)
        triples = None if self.steps[step].get("queries") else self.steps[step].get("triples")
        return [each for each in self.published_counts if each.steps == step or (triples and each.triples == triples)]

    def share_with_triples(self, made: Artifact) -> float:
        """The share of the judged queries that are learned from if those without triples are left out; otherwise 1.

        The triples are those that the negatives of a training, or of what teaches it, come from.
        """
        fields, negatives = made.spec.get("step", made.spec), made.inputs.get("negatives")
        if not fields.get("least_negatives") or negatives is None or negatives.spec.get("form") != "triples":
            return 1.0
        source = negatives.inputs["fetched"].name.rpartition("-")[0] if "fetched" in negatives.inputs else ""
        return next((each.share for each in self.published_counts if source and each.triples == source), 1.0)


def read_catalogue(folder: Path, read_table: Reader, read_figure: Reader) -> Catalogue:
    """Read ``config/``.

    Args:
        folder: the catalogue's folder.
        read_table: checks an entry of a paper's ``tables.yaml``.
        read_figure: the same for ``figures.yaml``.
    """
    entries = {section: _entries(folder / f"{section}.yaml", read) for section, read in READERS.items()}
    check_starts(entries["backbones"], entries["steps"], f"{folder}/backbones.yaml")
    kinds_of_steps = {name: step["kind"] for name, step in entries["steps"].items()}
    return Catalogue(
        **entries,
        tables=_of_papers(folder, "tables.yaml", read_table),
        figures=_of_papers(folder, "figures.yaml", read_figure),
        published_counts=read_published_counts(folder / "published_counts.yaml", kinds_of_steps, entries["sources"]),
    )


def with_entries_of(config: RunConfig, catalogue: Catalogue) -> Catalogue:
    """The catalogue with the backbones, sources and systems that a run adds."""
    for section in OWN:
        if taken := sorted(getattr(config, section).keys() & getattr(catalogue, section).keys()):
            raise EncoreError(config.at(f"{section}.{taken[0]}: the catalogue has one of that name; choose another"))
    if not any(getattr(config, section) for section in OWN):
        return catalogue
    merged = {}
    for section in OWN:
        own = _entries(Path(config.at(section)), READERS[section], getattr(config, section))
        merged[section] = getattr(catalogue, section) | own
    for name in config.systems:
        if getattr(merged["systems"][name], "url", None):
            if name in merged["sources"]:
                raise EncoreError(config.at(f"systems.{name}: a source has that name; choose another"))
            with explained(config.at(f"systems.{name}")):
                merged["sources"][name] = merged["systems"][name].fetched()
    check_starts(merged["backbones"], catalogue.steps, config.at("backbones"))
    return replace(catalogue, **merged)


def read_step(step: dict[str, Any]) -> Step:
    """Check a step's fields by its kind and objective."""
    match step.get("kind"):
        case "pretrain":
            return objectives.fields(step)
        case "finetune":
            return FinetuneStep.model_validate(step)
        case kind:
            raise EncoreError(f"kind {kind!r} is neither 'pretrain' nor 'finetune'")


def read_dataset(fields: dict[str, Any]) -> CollectionFields:
    """Check a dataset's fields by its kind."""
    return kinds.load_kind(str(fields.get("kind"))).fields.model_validate(fields)


def _as_written(read: Reader) -> Callable[[Any], dict[str, Any]]:
    """Check an entry and keep it as it is."""

    def checked_entry(value: Any) -> dict[str, Any]:
        read(value)
        return dict(value)

    return checked_entry


READERS: dict[str, Reader] = {  # what checks an entry of each file of the catalogue that is no paper's
    "backbones": Backbone.model_validate,
    "steps": _as_written(read_step),
    "datasets": read_dataset,
    "systems": systems.read_system,
    "indexes": _as_written(systems.read_index_type),
    "doc2query": systems.read_expansion,
    "sources": SourceEntry.model_validate,
}


def _entries(path: Path, read: Callable[[Any], T], content: dict[str, Any] | None = None) -> dict[str, T]:
    entries, found = read_yaml(path) if content is None else content, {}
    with explained(str(path)):
        for name in entries:
            refuse_odd_name(name, what="an entry")
    for name, value in entries.items():
        with explained(f"{path}: {name}"):
            if not isinstance(value, dict):
                raise EncoreError(f"{quoted(value)} is no mapping of fields; give the entry its fields")
            found[name] = read(value)
    return found


def _of_papers(folder: Path, file: str, read: Callable[[Any], T]) -> dict[str, T]:
    """The entries of a file that each paper has; our own drop the folder, ``table1``, a paper's keep it."""
    found: dict[str, T] = {}
    for paper, path in of_papers(file, folder / "papers").items():
        prefix = "" if paper == "encore" else f"{paper}/"
        entries = _entries(path, read)
        for name in (paper, *entries):
            if not TARGET.fullmatch(name):
                raise EncoreError(f"{path}: {name!r} is part of a target; name it with a-z, 0-9, _ and - alone")
        found |= {prefix + name: entry for name, entry in entries.items()}
    return found


def check_starts(backbones: dict[str, Backbone], steps: dict[str, dict[str, Any]], file: str) -> None:
    """Check the lineage of every backbone with ``start: lineage``."""
    for name, backbone in backbones.items():
        if backbone.start == "lineage":
            _check_start(name, backbones, steps, f"{file}: {name}: lineage")


def _check_start(name: str, backbones: dict[str, Backbone], steps: dict[str, dict[str, Any]], place: str) -> None:
    lineage = backbones[name].lineage
    if lineage is None:
        raise EncoreError(f"{place}: is missing; name the lineage whose model is taken, such as tiny+mlm")
    with explained(place):
        read = naming.parse(lineage)
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
    doubled = {"encoders"} if (own.encoders, taken.encoders) == ("separate", "shared") else set()
    for field in SHAPE:
        if field not in doubled and getattr(own, field) != getattr(taken, field):
            raise EncoreError(
                f"{place}: {field} is {getattr(own, field)} here and {getattr(taken, field)} in {read.backbone!r}, "
                "whose weights are taken; give both the same"
            )

"""A run's ``scale:`` with single names in place of keys for several: ``{ae,ar}``, ``costa-no-*``."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from encore.config.run import RunConfig
from encore.config.validation import explained, nearest
from encore.errors import EncoreError
from encore.plan import lineage as naming
from encore.plan.catalogue import Catalogue
from encore.plan.groups import is_group, names_of


def with_single_names(config: RunConfig, catalogue: Catalogue) -> RunConfig:
    """The run as if its scale named every step, system, index, figure and absent dataset or backbone by itself.

    All entries that name something apply to it, its own after those of groups. A star under ``absent`` leaves out what
    the run has a replacement for. Names that nothing has stay, and are refused later.
    """
    scale = config.scale
    named = ("steps", "systems", "indexes", "figures")
    fields: dict[str, Any] = {each: _fields(each, getattr(scale, each), getattr(catalogue, each)) for each in named}
    known = {*mentioned(catalogue), *catalogue.backbones} - scale.datasets.keys() - scale.backbones.keys()
    reasons = _fields("absent", {key: {"reason": why} for key, why in scale.absent.items()}, sorted(known))
    fields["absent"] = {name: each["reason"] for name, each in reasons.items()}
    return config.model_copy(update={"scale": scale.model_copy(update=fields)})


def mentioned(catalogue: Catalogue) -> set[str]:
    """Every dataset that something of the catalogue names: those that a scale can replace."""
    steps = {step["collection"] for step in catalogue.steps.values()}
    backbones = {backbone.collection for backbone in catalogue.backbones.values() if backbone.collection}
    columns = {dataset for table in catalogue.tables.values() for dataset in table.datasets()}
    return {*catalogue.datasets, *steps, *backbones, *columns}


def _fields(section: str, entries: Mapping[str, dict[str, Any]], known: Collection[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    given_by: dict[tuple[str, str], str] = {}
    for key in sorted(entries, key=lambda key: not is_group(key)):  # groups first, each in their order
        for name in names_of(key, known):
            for field, value in entries[key].items():
                other = given_by.setdefault((name, field), key)
                if is_group(key) and other != key and entries[other][field] != value:
                    raise EncoreError(
                        f"scale.{section}: {other!r} and {key!r} both give {name!r} a {field}; take it out of one of "
                        "them"
                    )
            found[name] = {**found.get(name, {}), **entries[key]}
    return found


def refuse_unknown_names(config: RunConfig, catalogue: Catalogue, datasets: Collection[str]) -> None:
    """Refuse unknown names in ``scale:``, and of tables, rows, figures and shards.

    Args:
        datasets: those of the catalogue and of the run.
    """
    scale, shards, anywhere = config.scale, config.execution.shards, mentioned(catalogue)
    named: list[tuple[str, Iterable[str], Collection[str]]] = [
        ("scale.steps: unknown name {!r}", scale.steps, catalogue.steps),
        ("scale.systems: unknown name {!r}", scale.systems, catalogue.systems),
        ("scale.backbones: unknown name {!r}", [*scale.backbones, *scale.backbones.values()], catalogue.backbones),
        ("scale.doc2query: unknown name {!r}", [*scale.doc2query, *scale.doc2query.values()], catalogue.doc2query),
        ("scale.datasets: unknown name {!r}", scale.datasets, anywhere),
        ("scale.datasets: unknown name {!r}", scale.datasets.values(), datasets),
        ("scale.indexes: unknown name {!r}", scale.indexes, catalogue.indexes),
        ("scale.figures: unknown name {!r}", scale.figures, catalogue.figures),
        ("scale.absent: unknown name {!r}", scale.absent, anywhere | catalogue.backbones.keys()),
        ("execution.shards: unknown dataset {!r}", shards if isinstance(shards, dict) else (), datasets),
        ("tables.{}: no such table in config/papers", config.tables, catalogue.tables),
        ("figures.{}: no such figure in config/papers", config.figures, catalogue.figures),
    ]
    for fault, names, known in named:
        for name in names:
            if name not in known:
                raise EncoreError(f"{fault.format(name)}{nearest(name, known)}")
    for name, rows in config.tables.items():
        known = {own for row in catalogue.tables[name].rows for own in row.names}
        for row in rows if rows != "all" else ():
            if row not in known and row.rpartition(": ")[2] not in config.systems:
                raise EncoreError(f"tables.{name}: no row {row!r}{nearest(row, known)}")
    for text in (*scale.replace_prefix, *scale.replace_prefix.values()):
        with explained("scale.replace_prefix"):
            start = naming.parse(text)
        parts: list[tuple[str, Collection[str]]] = [(start.backbone, catalogue.backbones)]
        for name, known in [*parts, *((step.name, catalogue.steps) for step in start.steps)]:
            if name not in known:
                raise EncoreError(f"scale.replace_prefix: {text!r}: unknown name {name!r}{nearest(name, known)}")

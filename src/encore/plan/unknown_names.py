"""Names in a run's file that nothing has: each is refused before anything is planned, with the nearest right one."""

from collections.abc import Collection, Iterable

from encore.config import lineage as naming
from encore.config.run import RunConfig
from encore.config.validation import explained, nearest
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.plan.scale import mentioned


def refuse_unknown_names(config: RunConfig, catalogue: Catalogue, datasets: Collection[str]) -> None:
    """Refuse unknown names in ``scale:``, and of tables, rows, figures, released runs and shards.

    Args:
        datasets: those of the catalogue and of the run.

    Raises:
        EncoreError: a name is unknown.
    """
    scale, anywhere = config.scale, mentioned(catalogue)
    named: list[tuple[str, Iterable[str], Collection[str]]] = [
        ("scale.steps: unknown name {!r}", scale.steps, catalogue.steps),
        ("scale.systems: unknown name {!r}", scale.systems, catalogue.systems),
        ("scale.backbones: unknown name {!r}", _both(scale.backbones), catalogue.backbones),
        ("scale.doc2query: unknown name {!r}", _both(scale.doc2query), catalogue.doc2query),
        ("scale.datasets: unknown name {!r}", scale.datasets, anywhere),
        ("scale.datasets: unknown name {!r}", scale.datasets.values(), datasets),
        ("scale.indexes: unknown name {!r}", scale.indexes, catalogue.indexes),
        ("scale.figures: unknown name {!r}", scale.figures, catalogue.figures),
        ("scale.absent: unknown name {!r}", scale.absent, anywhere | catalogue.backbones.keys()),
        ("execution.shards: unknown dataset {!r}", _sharded(config), datasets),
        ("tables.{}: no such table in config/papers", config.tables, catalogue.tables),
        ("references.{}: no such table in `tables:` of this run", config.references, config.tables),
        ("figures.{}: no such figure in config/papers", config.figures, catalogue.figures),
    ]
    for fault, names, known in named:
        for name in names:
            if name not in known:
                raise EncoreError(f"{fault.format(name)}{nearest(name, known)}")
    for name, rows in config.tables.items():
        known = {own for row in catalogue.tables[name].rows for own in row.names}
        for row in rows if rows != "all" else ():
            if row not in known:
                raise EncoreError(f"tables.{name}: no row {row!r}{nearest(row, known)}")
    for text in (*scale.replace_prefix, *scale.replace_prefix.values()):
        _refuse_unknown_steps(text, catalogue)


def _both(replaced: dict[str, str]) -> list[str]:
    """What is replaced, and what by."""
    return [*replaced, *replaced.values()]


def _sharded(config: RunConfig) -> Iterable[str]:
    """The datasets with a number of shards of their own."""
    return config.execution.shards if isinstance(config.execution.shards, dict) else ()


def _refuse_unknown_steps(prefix: str, catalogue: Catalogue) -> None:
    """Refuse the beginning of a lineage whose backbone or steps the catalogue lacks."""
    start = explained(naming.parse, prefix, "scale.replace_prefix")
    parts: list[tuple[str, Collection[str]]] = [(start.backbone, catalogue.backbones)]
    parts += [(step.name, catalogue.steps) for step in start.steps]
    for name, known in parts:
        if name not in known:
            raise EncoreError(f"scale.replace_prefix: {prefix!r}: unknown name {name!r}{nearest(name, known)}")

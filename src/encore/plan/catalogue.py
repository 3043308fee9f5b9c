"""What can be named (backbones, steps, datasets, systems, tables), read from ``config/`` and checked whole.

Every mistake is said in one line with its file, its place and the nearest right name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from encore.config.figures import KINDS, FigureEntry
from encore.config.run import Backbone, RunConfig, Step, System
from encore.config.sources import SourceEntry
from encore.config.tables import Table
from encore.config.validation import by_kind, checked, explained, read_yaml
from encore.errors import EncoreError

T = TypeVar("T")
TARGET = re.compile(r"[a-z0-9_-]+")  # what papers, tables and figures may be called, as workflow/rules has it


@dataclass(frozen=True)
class Catalogue:
    """Every entry that a run can name. Steps and indexes stay plain until scale and a name's overrides are applied."""

    backbones: dict[str, Backbone]
    steps: dict[str, dict[str, Any]]
    datasets: dict[str, Any]
    systems: dict[str, System]
    indexes: dict[str, dict[str, Any]]
    expansions: dict[str, Any]
    sources: dict[str, SourceEntry]
    tables: dict[str, Table]
    figures: dict[str, Any]
    read_step: Callable[[dict[str, Any]], Step]
    read_dataset: Callable[[dict[str, Any]], Any]
    read_index: Callable[[dict[str, Any]], Any]


def read_run(path: Path, given: dict[str, Any] | None = None) -> RunConfig:
    """A run's configuration, from its file or from what Snakemake has already read of it."""
    return checked(RunConfig, given if given is not None else read_yaml(path), str(path))


def read_catalogue(
    folder: Path,
    read_step: Callable[[dict[str, Any]], Step],
    read_dataset: Callable[[dict[str, Any]], Any],
    read_system: Callable[[dict[str, Any]], System],
    read_index: Callable[[dict[str, Any]], Any],
    read_expansion: Callable[[dict[str, Any]], Any],
) -> Catalogue:
    """Read ``config/``.

    Args:
        read_step: checks a step's fields; knows the objectives, which this layer does not.
        read_dataset: checks a dataset's fields; knows the kinds of collections.
        read_system: checks a system's fields; knows the kinds of systems.
        read_index: checks an index type's fields; knows the kinds of indexes.
        read_expansion: checks an expansion's fields; knows the kinds of expansions.

    Raises:
        EncoreError: a file is missing or wrong; one line with file, place and mend.
    """
    backbones = _entries(folder / "backbones.yaml", lambda value, place: checked(Backbone, value, place))
    steps = _entries(folder / "steps.yaml", lambda value, place: value)
    for name, step in steps.items():
        explained(read_step, step, f"{folder}/steps.yaml: {name}")
    datasets = _entries(folder / "datasets.yaml", lambda value, place: explained(read_dataset, value, place))
    systems = _entries(folder / "systems.yaml", lambda value, place: explained(read_system, value, place))
    indexes = _entries(folder / "indexes.yaml", lambda value, place: value)
    for name, index in indexes.items():
        explained(read_index, index, f"{folder}/indexes.yaml: {name}")
    expansions = _entries(folder / "doc2query.yaml", lambda value, place: explained(read_expansion, value, place))
    sources = _entries(folder / "sources.yaml", lambda value, place: checked(SourceEntry, value, place))
    tables = _of_papers(folder, "tables.yaml", lambda value, place: checked(Table, value, place))
    return Catalogue(
        backbones,
        steps,
        datasets,
        systems,
        indexes,
        expansions,
        sources,
        tables,
        _of_papers(folder, "figures.yaml", lambda value, place: explained(_read_figure, value, place)),
        read_step,
        read_dataset,
        read_index,
    )


def _entries(path: Path, read: Callable[[Any, str], T]) -> dict[str, T]:
    return {str(name): read(value, f"{path}: {name}") for name, value in read_yaml(path).items()}


def _of_papers(folder: Path, file: str, read: Callable[[Any, str], T]) -> dict[str, T]:
    """The entries of a file that each paper has; our own drop the folder, ``table1``, a paper's keep it.

    Raises:
        EncoreError: one is wrong, or is called what no target can be.
    """
    found: dict[str, T] = {}
    for path in sorted((folder / "papers").glob(f"*/{file}")):
        prefix = "" if path.parent.name == "encore" else f"{path.parent.name}/"
        entries = _entries(path, read)
        for name in (path.parent.name, *entries):
            if not TARGET.fullmatch(name):
                raise EncoreError(f"{path}: {name!r} is part of a target; name it with a-z, 0-9, _ and - alone")
        found |= {prefix + name: entry for name, entry in entries.items()}
    return found


def _read_figure(fields: Any) -> FigureEntry:
    return by_kind(fields, KINDS, "figure")

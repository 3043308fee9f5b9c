"""Read a plan from files: the run's configuration over the catalogue in ``config/``."""

from pathlib import Path
from typing import Any

from encore.config.run_file import read_run
from encore.plan.catalogue import Catalogue, read_catalogue, with_entries_of
from encore.plan.plan import Plan
from encore.products.figures.kinds import read_entry
from encore.products.tables.entries import Table
from encore.storage.program_files import CATALOGUE
from encore.storage.typed import DEFAULT_RUN


def load_plan(run: Path = DEFAULT_RUN, given: dict[str, Any] | None = None) -> Plan:
    """Read a run's configuration and the catalogue; nothing is planned yet.

    Args:
        run: the run's file, relative to the repository's root.
        given: its content where it was read already.
    """
    config = read_run(run, given)
    return Plan(config, with_entries_of(config, load_catalogue()))


def load_catalogue(folder: Path = CATALOGUE) -> Catalogue:
    """Everything that can be named."""
    return read_catalogue(folder, Table.model_validate, read_entry)

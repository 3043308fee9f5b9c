"""``encore show``: a finished table and the paths of its files, or the measures of a lineage."""

import argparse
import sys
from pathlib import Path

from encore.commands.plan import plan_of
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.explained import table_named
from encore.products.targets import is_of_another_plan
from encore.storage import typed
from encore.storage.files import readable_object

TABLES = Path("results/tables")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("table", nargs="?", default="table1", help="its name, one of its files, a lineage or a system")


def answer(arguments: argparse.Namespace) -> int:
    """The table as text, and the paths of its files; 1 if it is another run's."""
    from encore.products.tables import aligned_text

    plan = plan_of(arguments)
    if "+" in arguments.table or arguments.table in plan.catalogue.systems:
        print(_measures(plan, arguments.table))
        return 0
    name = table_named(plan, arguments.table)
    bold = "\033[1m{}\033[0m" if sys.stdout.isatty() else "{}"
    run = typed.called(arguments.config)
    shown = aligned_text.show_table(TABLES, name, bold=bold, run=run)
    another = of_another_plan(plan, name, run)
    print(f"{another}\n\n{shown}" if another else shown, end="")
    drawn = (Path(f"results/figures/{name}.{ending}") for ending in ("png", "svg", "csv"))
    print("".join(f"{path}\n" for path in drawn if path.is_file()), end="")
    return 1 if another else 0


def of_another_plan(plan: Plan, name: str, run: str) -> str | None:
    """That a finished table is not this run's, and of which data it is, in a sentence; None if it is this run's."""
    record = TABLES / f"{name}.manifest.json"
    if not is_of_another_plan(plan, record):
        return None
    path, labels = TABLES / f"{name}.json", readable_object(record)["spec"].get("dataset_labels", {})
    data = ", ".join(dict.fromkeys(labels.values()))
    make = typed.snakemake(f"{TABLES / name}.csv", run=run)
    return f"NOT THIS RUN'S: {path} was made of another plan, on {data}; `{make}` makes this run's."


def _measures(plan: Plan, name: str) -> str:
    """The measures of a lineage or system, next to those of the unchanged one and the control."""
    from encore.commands.lineage_table import lineage_text

    if (text := lineage_text(plan, name)) is None:
        run = typed.called(plan.config.file)
        make = typed.snakemake("TARGETS", run=run).replace("TARGETS", f"$({typed.encore('targets', name, run=run)})")
        raise EncoreError(f"{name} has no scores here; `{make}` makes them")
    return text

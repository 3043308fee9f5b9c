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
    """The table as text and the paths of its files, or a lineage's measures; never a table of another run."""
    from encore.products.tables import aligned_text

    plan = plan_of(arguments)
    if "+" in arguments.table or arguments.table in plan.catalogue.systems:
        print(_measures(plan, arguments.table))
        return 0
    name = table_named(plan, arguments.table)
    bold = "\033[1m{}\033[0m" if sys.stdout.isatty() else "{}"
    run = typed.called(arguments.config)
    if another := of_another_plan(plan, name, run):
        raise EncoreError(another)
    print(aligned_text.show_table(TABLES, name, bold=bold, run=run), end="")
    if not is_of_another_plan(plan, Path(f"results/figures/{name}.manifest.json")):
        drawn = (Path(f"results/figures/{name}.{ending}") for ending in ("png", "svg", "csv"))
        print("".join(f"{path}\n" for path in drawn if path.is_file()), end="")
    return 0


def of_another_plan(plan: Plan, name: str, run: str) -> str | None:
    """That a finished table is not this run's, and whose it is, in a sentence; None if it is this run's."""
    record = TABLES / f"{name}.manifest.json"
    if not is_of_another_plan(plan, record):
        return None
    made = readable_object(record)["spec"]
    data = ", ".join(dict.fromkeys(made.get("dataset_labels", {}).values()))
    make = typed.snakemake(f"{TABLES / name}.csv", run=run)
    found = f"{TABLES / name}.json is {made.get('title')!r} on {data}, made of another plan than {plan.config.file}'s"
    return f"{found}; `{make}` makes this run's"


def _measures(plan: Plan, name: str) -> str:
    """The measures of a lineage or system, next to those of the unchanged one and the control."""
    from encore.commands.lineage_table import lineage_text

    if (text := lineage_text(plan, name)) is None:
        run = typed.called(plan.config.file)
        make = typed.snakemake("TARGETS", run=run).replace("TARGETS", f"$({typed.encore('targets', name, run=run)})")
        raise EncoreError(f"{name} has no scores here; `{make}` makes them")
    return text

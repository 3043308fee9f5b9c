"""``encore show``: a finished table and the paths of its files."""

import argparse
import sys
from pathlib import Path

from encore.commands.plan import plan_of
from encore.plan.plan import Plan
from encore.products.explained import table_named
from encore.products.targets import is_of_another_plan
from encore.storage import typed

TABLES = Path("results/tables")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("table", nargs="?", default="table1", help="its name, or one of its files")


def answer(arguments: argparse.Namespace) -> int:
    """The table as text, and the paths of its files."""
    from encore.products.tables import aligned_text

    plan = plan_of(arguments)
    name = table_named(plan, arguments.table)
    bold = "\033[1m{}\033[0m" if sys.stdout.isatty() else "{}"
    run = typed.called(arguments.config)
    shown = aligned_text.show_table(TABLES, name, bold=bold, run=run)
    tell_of_another_plan(plan, name, run)
    print(shown, end="")
    drawn = (Path(f"results/figures/{name}.{ending}") for ending in ("png", "svg", "csv"))
    print("".join(f"{path}\n" for path in drawn if path.is_file()), end="")
    return 0


def tell_of_another_plan(plan: Plan, name: str, run: str) -> None:
    """Say on the error stream that a finished table is not this run's, if it is not."""
    if is_of_another_plan(plan, TABLES / f"{name}.manifest.json"):
        make = typed.snakemake(f"{TABLES / name}.csv", run=run)
        print(f"{TABLES / name}.json was made of another plan than this run's, which `{make}` shows\n", file=sys.stderr)

"""``encore show``: a table that was made, and where its files lie."""

import argparse
import sys
from pathlib import Path

from encore.cli.plan import plan_of
from encore.storage import typed


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("table", nargs="?", default="table1")


def answer(arguments: argparse.Namespace) -> int:
    """The Markdown of a table, and where everything of it lies."""
    from encore.reporting.tables import aligned_text

    plan_of(arguments)
    name = arguments.table
    bold = "\033[1m{}\033[0m" if sys.stdout.isatty() else "{}"
    run = typed.called(arguments.config)
    print(aligned_text.show_table(Path("results/tables"), name, bold=bold, run=run), end="")
    print("\n".join(f"results/figures/{name}.{ending}" for ending in ("png", "svg", "csv")))
    return 0

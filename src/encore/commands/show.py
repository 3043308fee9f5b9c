"""``encore show``: a finished table and the paths of its files."""

import argparse
import sys
from pathlib import Path

from encore.commands.chain import table_named
from encore.commands.plan import plan_of
from encore.storage import typed


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("table", nargs="?", default="table1", help="its name, or one of its files")


def answer(arguments: argparse.Namespace) -> int:
    """The table as text, and the paths of its files."""
    from encore.products.tables import aligned_text

    name = table_named(plan_of(arguments), arguments.table)
    bold = "\033[1m{}\033[0m" if sys.stdout.isatty() else "{}"
    run = typed.called(arguments.config)
    print(aligned_text.show_table(Path("results/tables"), name, bold=bold, run=run), end="")
    drawn = (Path(f"results/figures/{name}.{ending}") for ending in ("png", "svg", "csv"))
    print("".join(f"{path}\n" for path in drawn if path.is_file()), end="")
    return 0

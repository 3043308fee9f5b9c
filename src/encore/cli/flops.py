"""``encore flops``: the floating-point operations that each row of a table spent."""

import argparse

from encore.cli.plan import plan_of
from encore.commands import flops


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("table", nargs="?", default="table1")


def answer(arguments: argparse.Namespace) -> int:
    """Floating-point operations by row; 1 when a comparison is not fair."""
    rows = flops.flops_of_rows(plan_of(arguments), arguments.table)
    print(flops.flops_text(rows))
    wrong = flops.budget_complaints(rows)
    for complaint in wrong:
        print(f"unfair: {complaint}")
    return 1 if wrong else 0

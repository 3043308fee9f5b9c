"""``encore explain``: how a number was computed, down to the raw text."""

import argparse
import json

from encore.cli.plan import plan_of
from encore.commands import explain, explain_product
from encore.errors import EncoreError


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("table", help="results/tables/costa/table1.csv, a figure's file or results/claims.csv")
    parser.add_argument("--row", required=True, help="a row's id or label, a figure's line, or a claim: C12")
    parser.add_argument("--column", help="a column's id or label, or the place of a figure's point")
    parser.add_argument("--setting", help="only under this setting, or in this panel, if there are several")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--long", action="store_true", help="the settings, machine and command of each folder too")
    shown.add_argument("--json", action="store_true", help="all of that as JSON")


def answer(arguments: argparse.Namespace) -> int:
    """What a cell was computed from: scores, run, index, models, negatives, corpus."""
    plan = plan_of(arguments)
    if explain_product.is_product(plan, arguments.table):
        return explain_product.show_product(plan, arguments)
    if arguments.column is None:
        raise EncoreError("a cell of a table is in a column; name it with --column")
    cells = explain.find_cells(plan, arguments.table, arguments.row, arguments.column, arguments.setting)
    chains = [(cell, list(explain.chain(plan, cell))) for cell in cells]
    if arguments.json:
        found = [explain.cell_json(*each) for each in chains]
        print(json.dumps(found[0] if len(found) == 1 else found, indent=1))
    else:
        text = explain.chain_text if arguments.long else explain.chain_tree
        told = ([*explain.cell_head(cell, links, explain.shown_in(cell)), *text(links)] for cell, links in chains)
        print("\n\n".join(map("\n".join, told)))
    return 0

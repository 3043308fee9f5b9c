"""``encore explain``: how a cell, a claim or a line of a figure was computed, down to the raw text."""

import argparse
import json
import sys

from encore.commands.chain import chain_json, chain_text, chain_tree, of_reads
from encore.commands.show import of_another_plan
from encore.products.catalogue import load_plan
from encore.products.explained import explanations
from encore.storage import typed


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("table", help="results/tables/costa/table1.csv, a figure's file or results/claims.csv")
    parser.add_argument(
        "--row", help="a row's id or label, a figure's line, or a claim: C12; without it, all are listed"
    )
    parser.add_argument("--column", help="a column's id or label, or the place of a figure's point")
    parser.add_argument("--setting", help="only under this setting, or in this panel, if there are several")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--long", action="store_true", help="the settings, machine and command of each folder too")
    shown.add_argument("--json", action="store_true", help="all of that as JSON")


def answer(arguments: argparse.Namespace) -> int:
    """What a cell was computed from: scores, run, index, models, negatives, corpus."""
    plan = load_plan(arguments.config)
    told = explanations(plan, arguments.table, arguments.row, arguments.column, arguments.setting)
    for table in {each.address["table"] for each in told if each.address}:
        if another := of_another_plan(plan, table, typed.called(arguments.config)):
            print(f"{another}\n", file=sys.stderr)
    found = [(each, list(of_reads(plan, each.reads))) for each in told]
    if arguments.json:
        data = [
            (each.address or {"about": each.title, "says": each.lines}) | {"chain": chain_json(links)}
            for each, links in found
        ]
        print(json.dumps(data[0] if len(data) == 1 else data, indent=1))
    else:
        text = chain_text if arguments.long else chain_tree
        print("\n\n".join("\n".join([each.title, *each.lines, *text(links)]) for each, links in found))
    return 0

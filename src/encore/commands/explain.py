"""``encore explain``: how a cell, a claim or a line of a figure was computed, down to the raw text."""

import argparse
import json
from pathlib import Path

from encore.commands import chain
from encore.commands.chain import Explanation
from encore.commands.plan import plan_of
from encore.commands.show import tell_of_another_plan
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.claims.deciding import claim_reads, judged_line
from encore.products.claims.entries import CLAIMS, read_claims
from encore.products.figures.plan import curves_plan, figure_cells, figure_plan
from encore.products.slices import Read
from encore.products.tables.plan import CURVES
from encore.products.tables.reported import PAPERS
from encore.storage import typed

FIGURES = "results/figures/"
VERDICT = ("verdict", "why", "held", "inequalities", "estimate", "interval_low", "interval_high", "p")


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
    if _is_claims(arguments.table):
        told = [claim(plan, arguments.row)]
    elif is_product(plan, arguments.table):
        told = [line(plan, _figure(arguments.table), arguments.row, arguments.setting, arguments.column)]
    elif arguments.column is None:
        raise EncoreError("a cell of a table is in a column; name it with --column")
    else:
        told = chain.find_cells(plan, arguments.table, arguments.row, arguments.column, arguments.setting)
        tell_of_another_plan(plan, chain.table_named(plan, arguments.table), typed.called(arguments.config))
    found = [(each, list(chain.of_reads(plan, each.reads))) for each in told]
    if arguments.json:
        data = [each.data(links) for each, links in found]
        print(json.dumps(data[0] if len(data) == 1 else data, indent=1))
    else:
        text = chain.chain_text if arguments.long else chain.chain_tree
        print("\n\n".join("\n".join([each.title, *each.lines, *text(links)]) for each, links in found))
    return 0


def is_product(plan: Plan, target: str) -> bool:
    """True if a target is the claims or a figure, and not a table."""
    name = _figure(target)
    return _is_claims(target) or (target.removeprefix("./").startswith(FIGURES) and name not in plan.catalogue.tables)


def claim(plan: Plan, name: str) -> Explanation:
    """A claim: what was judged of it, and its cells with what they show."""
    claims = read_claims(PAPERS)
    if name.upper() not in claims:
        raise EncoreError(f"there is no claim {name!r}{nearest(name.upper(), claims)}")
    paper, claim_entry = claims[name.upper()]
    explained = Explanation(f"{name.upper()} ({paper}, {claim_entry.place}): {claim_entry.says}")
    judged = judged_line(Path(f"results/{CLAIMS}.csv"), name.upper())
    if told := ", ".join(f"{key} {judged[key]}" for key in VERDICT if judged.get(key)):
        explained.lines.append(f"  {CLAIMS}: {told}")
    for address, reads in claim_reads(plan, name.upper(), claim_entry)[0].items():
        shown = "" if address.table in plan.catalogue.figures else chain.shown_in(*address)
        explained.lines.append(f"  {address}" + (f": {shown}" if shown else ""))
        explained.reads += [read for read in reads if read not in explained.reads]
    return explained


def line(plan: Plan, figure: str, row: str, setting: str | None = None, place: str | None = None) -> Explanation:
    """A line of a figure, or a point of it, if a place is given and claims can name its points."""
    if place is not None:
        found = {at: parts for at, parts in figure_cells(plan, figure).items() if (at.line, at.place) == (row, place)}
        chosen = {at: parts for at, parts in found.items() if setting in (None, at.panel)}
        if not found:
            raise EncoreError(f"figure {figure!r} has no point of {row!r} at {place!r} that claims could name")
        if len(chosen) != 1:
            panels = ", ".join(repr(at.panel) for at in found)
            raise EncoreError(f"{row!r} of figure {figure!r} is in {panels}; choose one with --setting")
        ((at, parts),) = chosen.items()
        return Explanation(f"{figure}: {' / '.join(at)}", reads=[read for part in parts for read in part.reads])
    drawn = curves_plan(plan) if figure == CURVES else figure_plan(plan, figure)
    named = [each for each in drawn.rows if row.lower() in {getattr(each, "id", "").lower(), each.label.lower()}]
    if not named:
        raise EncoreError(f"figure {figure!r} has no line {row!r}{nearest(row, [each.label for each in drawn.rows])}")
    system = getattr(named[0], "system", "") or getattr(named[0], "lineage", "")
    reads = [
        Read(seed=None, folder=folder) for label, own in drawn.parts() if label == named[0].label for folder in own
    ]
    return Explanation(f"{figure}: {named[0].label}" + (f", {system}" if system else ""), reads=reads)


def _is_claims(target: str) -> bool:
    return Path(target).name in (f"{CLAIMS}.csv", f"{CLAIMS}.md")


def _figure(target: str) -> str:
    return target.removeprefix("./").removeprefix(FIGURES).rsplit(".", 1)[0]

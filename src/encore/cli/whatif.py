"""``encore whatif``: its flags, and what it prints."""

import argparse
import json
import tempfile
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from encore.cli.plan import plan_of
from encore.commands import ledger
from encore.commands.preflight.forecast import forecast
from encore.commands.preflight.forecast_text import size
from encore.commands.preflight.machine import find_machine
from encore.commands.whatif.change import changed
from encore.commands.whatif.compare import PlanChange, compare_plans
from encore.config.run_file import read_run
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import CATALOGUE, load_catalogue

SHOWN = 12  # rows of a table that are named before the rest is counted


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of ``encore whatif``."""
    parser.add_argument("changes", nargs="+", metavar="PATH=VALUE", help="for example steps.costa.temperature=0.05")
    parser.add_argument("--machine", help="an entry of config/machines.yaml")
    parser.add_argument("--json", action="store_true", help="print JSON")


def answer(arguments: argparse.Namespace) -> int:
    """Print what the changes would do; nothing is changed and nothing runs."""
    plan = plan_of(arguments)
    after, note = _after(plan, arguments.config, arguments.changes)
    known = find_machine(arguments.machine)
    found = compare_plans(plan, after, (forecast(plan, (), known), forecast(after, (), known)))
    if arguments.json:
        print(json.dumps(asdict(found), indent=1))
    else:
        print(change_text(found, known.name, note))
    return 0


def change_text(found: PlanChange, where: str, note: str = "") -> str:
    """A comparison as people read it."""
    rules = ", ".join(f"{len(folders)} {rule}" for rule, folders in found.jobs.items())
    lines = [f"{found.count} jobs" + (f": {rules}" if rules else ": nothing would run")]
    if found.anyway:
        lines.append(f"{found.anyway} more are missing without the change too")
    hours = f"{found.gpu_hours:,.2f} GPU-hours on {where} and " if found.gpu_hours else ""
    lines.append(f"{hours}{size(found.disk)} of disk for them, estimated")
    lines.append(f"{len(found.cells)} cells" + (":" if found.cells else ""))
    for table, rows in groupby(found.cells, lambda cell: cell.table):
        named = [
            f"{row}{f' [{setting}]' if setting else ''}: {', '.join(cell.column for cell in cells)}"
            for (setting, row), cells in groupby(rows, lambda cell: (cell.setting, cell.row))
        ]
        rest = [f"and {len(named) - SHOWN} rows more"] if len(named) > SHOWN else []
        lines += [f"  {table}", *(f"    {line}" for line in (*named[:SHOWN], *rest))]
    lines.append(f"{len(found.claims)} claims" + (f": {' '.join(found.claims)}" if found.claims else ""))
    if note:
        lines.append(f"note: {note}")
    return "\n".join(lines)


def _after(before: Plan, run: Path, changes: list[str]) -> tuple[Plan, str]:
    """The plan of the changed configuration, and what its ledger does not say.

    Raises:
        EncoreError: a change names nothing, or makes the configuration wrong; as if the files were changed.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            catalogue, own = changed(CATALOGUE, run, changes, Path(folder))
            plan = Plan(read_run(own), load_catalogue(catalogue))
        except EncoreError as error:
            raise EncoreError(str(error).replace(f"{folder}/{run.name}", str(run)).replace(f"{folder}/", "")) from error
        return plan, _note_of_the_ledger(before, plan, catalogue)


def _note_of_the_ledger(before: Plan, after: Plan, catalogue: Path) -> str:
    """What a real run would be refused for, or which source is still that of the old value."""
    try:
        return ledger.changed_source(before.catalogue, after.catalogue, catalogue)
    except EncoreError as error:
        return str(error)

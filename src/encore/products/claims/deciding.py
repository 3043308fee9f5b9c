"""The text of ``encore claims ID``: a claim's comparisons, the folders they read, and its verdicts so far."""

from collections.abc import Sequence
from pathlib import Path

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.claims.contrasts import Address
from encore.products.claims.entries import CLAIMS, AnyTest, Claim, PictureTest, StatedTest, products_of, read_claims
from encore.products.claims.plan import cells_of, computed_from, gap_reasons, run_shapes
from encore.products.slices import Read
from encore.products.tables.grid import CellRequest
from encore.storage.csv_rows import read_rows
from encore.storage.typed import snakemake

SHOWN = 12  # comparisons of a test, and folders, that are named before the rest is counted
RUNS = Path(f"results/{CLAIMS}.csv")


def claim_text(plan: Plan, name: str, run: str = "") -> str:
    """The description of a claim: its statement, each test as comparisons, its verdicts, and the folders still missing.

    Args:
        run: the run's file, as commands name it.
    """
    claims = read_claims()
    if name not in claims:
        raise EncoreError(f"there is no claim {name!r}{nearest(name, claims)}")
    paper, claim = claims[name]
    lines = [f"{name} ({paper}; {claim.place}): {claim.says}"]
    for title, tests in (("premise", claim.premise), ("all of", claim.tests), ("control", claim.control)):
        for test in tests:
            lines += _test(plan, title, test)
    return "\n".join([*lines, f"on runs: {_on_runs(name, run)}", *_reads(plan, name, claim)])


def claim_reads(plan: Plan, name: str, claim: Claim) -> tuple[dict[Address, list[Read]], list[str]]:
    """What each cell reads that a claim, its premise or its control is about; why cells of it have no value here."""
    cells = cells_of(name, claim, run_shapes(plan))
    parts: dict[Address, list[CellRequest]] = {}
    reasons: dict[Address, str] = {}
    lost: list[str] = []
    for product in products_of(claim):
        try:
            parts |= computed_from(plan, product)
            reasons |= gap_reasons(plan, product)
        except EncoreError as error:
            lost.append(str(error))
    found = {cell: [read for part in parts.get(cell, []) for read in part.reads] for cell in cells}
    return found, [*lost, *(f"{cell}: {reasons[cell]}" for cell in cells if cell in reasons)]


def judged_line(path: Path, name: str, *needed: str) -> dict[str, str]:
    """What a file of claims has of one, some columns of it needed; nothing if it was not made."""
    lines = read_rows(path, "id", *needed) if path.is_file() else []
    return next((line for line in lines if line["id"] == name), {})


def _test(plan: Plan, title: str, test: AnyTest) -> list[str]:
    if isinstance(test, PictureTest):
        return [f"{title}: only the picture of {test.figure} shows it, so no number decides it"]
    if isinstance(test, StatedTest):
        return [f"{title}: the paper only states it; it needs {test.needs}, which nothing here measures"]
    found = test.contrasts(run_shapes(plan))
    must_hold = test.needed(len(found)) if test.needed(len(found)) < len(found) else "all"
    head = f"{title}: {test.kind}, {len(found)} comparison{'s' * (len(found) != 1)}, {must_hold} must hold"
    return [head, *_some([f"  {one}" for one in dict.fromkeys(map(str, found))])]


def _on_runs(name: str, run: str) -> str:
    """The verdict in ``claims.csv``, if it was made."""
    if line := judged_line(RUNS, name, "verdict", "why", "weakest", "estimate"):
        weakest = f"; weakest: {line['weakest']}, {line['estimate']}" if line["weakest"] else ""
        return line["verdict"] + (f" ({line['why']})" if line["why"] else "") + weakest
    return f"not judged; make it with: {snakemake(str(RUNS), run=run)}"


def _reads(plan: Plan, name: str, claim: Claim) -> list[str]:
    """How much of what the claim rests on is made."""
    reads, reasons = claim_reads(plan, name, claim)
    found = dict.fromkeys(read.folder for own in reads.values() for read in own)
    waiting = [folder for folder in found if not Path(plan.find(folder).manifest).is_file()]
    lines = [f"rests on {len(found)} folders of this run, {len(found) - len(waiting)} of them made"]
    if not found:
        lines = ["rests on no folder of this run: on records, on printed numbers or on a picture"]
    lines += _some([f"  not made yet: {folder}" for folder in waiting])
    return lines + (["without a value here:", *_some([f"  {reason}" for reason in reasons])] if reasons else [])


def _some(lines: Sequence[str]) -> list[str]:
    rest = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"  and {rest} more"] if rest > 0 else [])]

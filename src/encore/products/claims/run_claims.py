"""The claims on runs: their slice of the plan read, every claim judged, one line a claim."""

import math
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from pathlib import Path

from encore.evaluation.families import UNTESTED
from encore.products.claims.chance import Origin, Required, chance_of, of_mean
from encore.products.claims.contrasts import Address, Contrast
from encore.products.claims.entries import AnyTest, named_by
from encore.products.claims.estimates import Cells, Shares, WeightedValues
from encore.products.claims.judging import Judgement, RunValues, judge_control_on_runs, judge_on_runs, weakness
from encore.products.claims.plan import Claimed, ClaimedPoint, ClaimsSlice
from encore.products.claims.verdict import AGREE, DISAGREE, Estimate
from encore.products.figures.inspected import read_inspection
from encore.products.tables import reported
from encore.products.tables.aligned_text import plain
from encore.products.tables.compute import cell_values
from encore.products.tables.grid import CellRequest
from encore.products.tables.layout import Layout
from encore.products.tables.sources.base import CellValues
from encore.products.tables.sources.kinds import SOURCES, TESTED, source_of
from encore.storage.csv_rows import number, write_rows
from encore.storage.files import write_text

GRADED = "graded"  # the split whose queries have many judged passages, so that recall is not yes or no
FEW_RANKS = 20  # recall to this rank and from beyond it are families of their own
COLUMNS = {
    "id": "The claim.",
    "paper": "Its paper's folder.",
    "place": "Where the paper says it.",
    "claim": "The sentence.",
    "verdict": "On runs ([claims.md](claims.md#on-runs)).",
    "why": "The reason, where it has no verdict or leaves comparisons out.",
    "inequalities": "Comparisons that there are.",
    "needed": "Comparisons that must hold.",
    "held": "Comparisons that hold of the estimates.",
    "chance": "The probability that as many hold of equally good systems; empty without a verdict, and for amounts.",
    "weakest": "The weakest comparison.",
    "estimate": "Its difference less the margin, in the measure's unit; above 0 where this comparison holds.",
    "interval_low": "Lower end of the interval of `estimate`.",
    "interval_high": "Upper end of the interval of `estimate`.",
    "p": "Its two-sided p.",
    "detectable": "The largest minimum detectable difference of its comparisons, each alone: 80 % power at 5 %.",
    "seeds": "The fewest seeds of its comparisons.",
    "proxy_data": "`yes` where the data replace the paper's.",
    "survives_control": "The verdict over more fine-tuning ([its budget](protocol.md#3-budgets-and-controls)).",
    "control_why": "Its reason.",
    "control_estimate": "The weakest difference to that control.",
    "control_p": "Its two-sided p.",
}
SHOWN = {
    "id": "id",
    "claim": "claim",
    "place": "where",
    "verdict": "verdict",
    "survives_control": "survives control",
    "held": "hold",
    "chance": "chance",
    "weakest": "weakest",
    "estimate": "estimate",
    "p": "p",
    "why": "why",
}
ABOUT = """The weakest comparison of each, with its estimate. *Survives control*: whether the gain also holds over more
fine-tuning with the same number of operations. *Chance*: the probability that as many comparisons hold in the estimates
if all systems are equally good.
"""


def write_run_claims(folder: Path, claims: ClaimsSlice, _: Path) -> str:
    """Judge every claim, write one line a claim and a page for people next to them, and count the verdicts."""
    runs, origin = run_values(claims), _origin(claims)
    lines, verdicts = {}, []
    for name, each in claims.claims.items():
        claim = each.claim
        judgement = _unavailable(claims, *claim.premise, *claim.tests) or judge_on_runs(claim, runs)
        control = _unavailable(claims, *claim.control) or judge_control_on_runs(claim, runs)
        lines[name] = _line(name, each, judgement, control, bool(claims.proxy_data), origin)
        verdicts.append(judgement.verdict)
    ordered = [lines[name] for name in sorted(lines, key=lambda name: (len(name), name))]  # C100 after C99
    write_rows(folder / f"{claims.name}.csv", COLUMNS, [[line[column] for column in COLUMNS] for line in ordered])
    write_text(folder / f"{claims.name}.md", page(claims.title, ordered))
    return counted(Counter(verdicts))


def run_values(claims: ClaimsSlice) -> RunValues:
    """The values that claims are judged by, read when they are asked for."""
    gaps = {Address(gap.table, gap.setting, gap.row, gap.column): gap.why for gap in claims.missing}
    printed = _printed(claims.tables).get
    return RunValues(claims.shapes, _cells(claims), printed, bool(claims.proxy_data), gaps, _shares(claims))


def _unavailable(claims: ClaimsSlice, *tests: AnyTest) -> Judgement | None:
    """The judgement of tests whose table or figure is unavailable here; None if all are available."""
    why = next((claims.unavailable[table] for table in named_by(*tests) if table in claims.unavailable), None)
    return None if why is None else Judgement(UNTESTED, why=why)


def _cells(claims: ClaimsSlice) -> Cells:
    """The parts of each cell; a table or figure is read once, when its first cell is asked for."""
    tables = claims.tables

    @cache
    def found(table: str) -> dict[tuple[str, str, str], CellValues]:
        return cell_values(tables[table])

    @cache
    def drawn(figure: str) -> dict[tuple[str, str, str], list[WeightedValues]]:
        return _point_values(claims.figures[figure])

    def parts(address: Address) -> list[WeightedValues] | None:
        if address.table in claims.figures:
            return drawn(address.table).get(address[1:])
        if address.table not in tables:
            return None
        columns = {column.id: column for column in tables[address.table].columns}
        column = columns.get(address.column)
        if column is None or not column.mean_of:
            values = found(address.table).get(address[1:])
            return None if values is None else [WeightedValues(1.0, values)]
        collected: list[WeightedValues] = []
        for part in column.mean_of:
            own = parts(address._replace(column=part))
            if own is None:
                return None
            collected += [WeightedValues(each.weight / len(column.mean_of), each.values) for each in own]
        return collected

    return parts


def _point_values(points: Sequence[ClaimedPoint]) -> dict[tuple[str, str, str], list[WeightedValues]]:
    """The parts of each point, by panel, line and place: samples of training queries count alike."""
    return {
        (point.panel, point.line, point.place): [
            WeightedValues(1 / len(point.parts), values)
            for request in point.parts
            if (values := SOURCES[TESTED].values(request, {}) if request.split else _shares_found(request, point.place))
        ]
        for point in points
    }


def _shares_found(request: CellRequest, k: str) -> CellValues:
    """The shares of inspections, each a mean over texts; without values per text only seeds vary."""
    found = (read_inspection(read)["values"] for read in request.reads)
    shares = [next(float(one[request.value]) for one in values if str(one["k"]) == k) for values in found]
    return CellValues([read.seed for read in request.reads], shares)


def _printed(tables: Mapping[str, Layout]) -> dict[Address, float]:
    """What the papers print in the cells of some tables, in the measures' own unit.

    A mean of fewer columns than the paper's is that of what the paper prints in the same ones, if it does in all.
    """
    values: dict[Address, float] = {}
    for name, layout in tables.items():
        lines = reported.read(layout.printed_file)
        for row in layout.rows:
            for column in layout.columns:
                found = reported.found(lines, row.cells[column.id].reported, row.id)
                if found is not None and found.number is not None and not column.partial:
                    value = source_of(column).in_our_unit(found.number * column.reported_scale, layout.unit)
                    values[Address(name, row.setting, row.id, column.id)] = value
            for column in (each for each in layout.columns if each.partial and each.mean_of):
                address = Address(name, row.setting, row.id, column.id)
                parts = [values.get(address._replace(column=part)) for part in column.mean_of]
                if (numbers := [part for part in parts if part is not None]) and len(numbers) == len(parts):
                    values[address] = math.fsum(numbers) / len(numbers)
    return values


def _shares(claims: ClaimsSlice) -> Shares:
    """The share of each copied cell, by the family of its column's measure."""

    def share(address: Address) -> float:
        rows = claims.tables[address.table].rows if address.table in claims.tables else []
        requests = [row.cells[address.column] for row in rows if address.column in row.cells]
        families = [family_of(each.value, each.split) for each in requests if each.value and each.split]
        return claims.spread.get(families[0], 1.0) if families else 1.0

    return share


def family_of(measure: str, split: str) -> str:
    """The family of a measure of a split by its printed name, as ``spread.yaml`` has it; empty for another kind."""
    found = re.fullmatch(r"(RR|nDCG|R)(?:\(rel=\d\))?@(\d+)", measure)
    if found is None:
        return ""
    if found[1] != "R":
        return found[1]
    return "R of many" if split == GRADED else "R to 20" if int(found[2]) <= FEW_RANKS else "R from 50"


def _origin(claims: ClaimsSlice) -> Origin:
    """What makes a cell's number: the pre-trained checkpoint, the model, queries, measure; of a mean, its parts'."""
    columns = {(name, column.id): column for name, table in claims.tables.items() for column in table.columns}
    cells = {
        Address(name, row.setting, row.id, column): cell
        for name, table in claims.tables.items()
        for row in table.rows
        for column, cell in row.cells.items()
    }

    def origin(address: Address) -> tuple[Hashable, ...]:
        known = claims.checkpoints.get(address.table, {})
        if address.table in claims.figures:
            return known.get(address.row, address.row), (address.row, address.column), address.setting
        column, cell = columns.get((address.table, address.column)), cells.get(address)
        if column is None or cell is None:
            return (address,)
        if column.mean_of:
            return of_mean(origin, address, column.mean_of)
        if column.source != TESTED:
            return (address,)
        if not cell.system:
            return address.row, address[:3], (cell.dataset, cell.split), cell.value
        return known.get(cell.system, cell.system), cell.system, (cell.dataset, cell.split), cell.value

    return origin


def _line(
    name: str, claimed: Claimed, judgement: Judgement, control: Judgement | None, proxy_data: bool, origin: Origin
) -> dict[str, str]:
    """A line of the CSV, by column; the control is whether more than the same operations of fine-tuning was gained."""
    tested = judgement.tested
    contrast, estimate = _weakest(judgement)
    low, high = estimate.difference.interval() if estimate else (None, None)
    required = [Required(each.kind, each.contrasts, each.needed, each.tau) for each in tested]
    judged = judgement.verdict in {*AGREE, *DISAGREE}
    seeds = [one.seeds for each in tested for one in each.estimates if one.seeds is not None]
    _, over = _weakest(control) if control else (None, None)
    return {
        "id": name,
        "paper": claimed.paper,
        "place": claimed.claim.place,
        "claim": claimed.claim.says,
        "verdict": judgement.verdict,
        "why": judgement.why,
        "inequalities": str(sum(len(each.estimates) for each in tested)) if tested else "",
        "needed": str(sum(each.needed for each in tested)) if tested else "",
        "held": str(sum(each.held for each in tested)) if tested else "",
        "chance": _finite(chance_of(required, origin) if judged else None),
        "weakest": str(contrast or ""),
        "estimate": _finite(estimate.mean if estimate else None),
        "interval_low": _finite(low),
        "interval_high": _finite(high),
        "p": _finite(estimate.difference.p if estimate else None),
        "detectable": _finite(judgement.detectable),
        "seeds": str(min(seeds)) if seeds else "",
        "proxy_data": "yes" if proxy_data else "no",
        "survives_control": control.verdict if control else "",
        "control_why": control.why if control else "",
        "control_estimate": _finite(over.mean if over else None),
        "control_p": _finite(over.difference.p if over else None),
    }


def _weakest(judgement: Judgement) -> tuple[Contrast | None, Estimate | None]:
    """The weakest of all tested inequalities, if any was tested."""
    return max((one.weakest for one in judgement.tested), key=weakness, default=(None, None))


def _finite(value: float | None) -> str:
    """A number for the CSV; empty for none and for an infinite error, which a single seed has."""
    return number(value if value is not None and math.isfinite(value) else None)


def page(title: str, lines: Sequence[Mapping[str, str]]) -> str:
    """The page of ``claims.csv``."""
    text = f"# {title}\n\n{ABOUT}{agreement(lines)}"
    for paper in dict.fromkeys(line["paper"] for line in lines):
        own = [line for line in lines if line["paper"] == paper]
        counts = Counter(entry["verdict"] for entry in own)
        rows = [list(SHOWN.values()), ["---"] * len(SHOWN)]
        rows += [[_shown(name, each) for name in SHOWN] for each in own]
        text += f"\n## {paper}\n\n{counted(counts)}\n\n"
        text += "".join("| " + " | ".join(row) + " |\n" for row in rows)
    return text


def agreement(lines: Sequence[Mapping[str, str]]) -> str:
    """How many claims agree with the estimates, and how many would by chance; nothing without a claim with a chance."""
    known = [(line["verdict"] in AGREE, float(line["chance"])) for line in lines if line["chance"]]
    agree, expected = sum(agrees for agrees, _ in known), math.fsum(rate for _, rate in known)
    text = f"\nOf {len(known)} claims with a chance {agree} agree with the estimates; {expected:.1f} would by chance.\n"
    return text if known else ""


def _shown(name: str, entry: Mapping[str, str]) -> str:
    text = entry[name]
    if name == "held" and text:
        text += f" of {entry['inequalities']}"
        text += f" ({entry['needed']} needed)" if entry["needed"] != entry["inequalities"] else ""
        left_out = re.match(r"(\d+) of \d+ comparisons left out", entry.get("why", ""))
        text += f", {left_out[1]} left out" if left_out else ""
    elif re.fullmatch(r"-?\d*\.\d+(e-?\d+)?", text):
        text = f"{float(text):.3g}"
    return plain(text)


def counted(verdicts: Mapping[str, int]) -> str:
    """How often each verdict was given, in a line."""
    return ", ".join(f"{verdict}: {count}" for verdict, count in verdicts.items())

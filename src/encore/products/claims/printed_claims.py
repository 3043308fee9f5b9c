"""The ledger of claims on the papers' own printed numbers: one line a claim, made without any run."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.products.catalogue import load_catalogue
from encore.products.claims import pages, printed
from encore.products.claims.chance import Origin, Required, chance_of, of_mean
from encore.products.claims.contrasts import Address, Tables, copied_from, entries_of
from encore.products.claims.entries import FILE, AnyTest, Claim, number_tests, on_tables, read_claims
from encore.products.claims.plan import all_shapes, checkpoint_of, printed_plan
from encore.products.claims.power import Power
from encore.products.claims.printed import PrintedJudgement, PrintedValues
from encore.products.record import Builder
from encore.products.slices import Product
from encore.products.tables.entries import Table, fill_vars, has_own_value, printed_as
from encore.products.tables.reported import PAPERS, read, reported_path
from encore.products.tables.reported import found as printed_number
from encore.products.tables.sources.kinds import SOURCES, TESTED
from encore.storage.csv_rows import number, write_rows
from encore.storage.files import write_text

COLUMNS = {
    "id": "The claim.",
    "paper": "Its paper's folder.",
    "place": "Where the paper says it.",
    "claim": "The sentence.",
    "verdict": "On print ([claims.md](claims.md#on-printed-numbers)).",
    "inequalities": "Comparisons that there are.",
    "needed": "Comparisons that must hold.",
    "held": "Comparisons that hold.",
    "exceptions": "Those that do not.",
    "slimmest": "The margin nearest to 0, in the measure's unit.",
    "chance": "Probability that the claim holds if its systems are equally good; a checkpoint counts once.",
    "cells": "Printed cells that it is about.",
    "shares_cells_with": "Claims about some of the same cells.",
    "shares_runs_with": "Claims about the same system and queries in another table.",
    "premise": "The verdict on its premise.",
    "reported_only": "Sources of copied rows.",
    "queries": "Queries of its columns.",
    "could_show": "The largest minimum detectable difference: 80 % power at 5 %, in the measure's unit.",
    "exceeding": "Printed differences that are larger.",
    "measurable": "Printed differences for which that is known.",
}


class PrintedClaimsSlice(Product):
    """The slice: only digests; what they are of is read from config/papers."""

    content: dict[str, Any]

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """No folders: printed claims are judged on the papers' own numbers."""
        return {}


def printed_values(papers: Path, tables: Mapping[str, Table]) -> dict[Address, float]:
    """Every number that the papers print in their tables, by cell, in the measures' own unit.

    Args:
        papers: the folder of the papers.
        tables: by name, ``<paper>/<table>``.
    """
    values = {}
    for name, table in tables.items():
        rows = read(reported_path(papers, name, table.reported)) if table.reported else []
        for row in table.rows:
            for column in table.columns:
                found = printed_number(rows, printed_as(row, column), row.id)
                if found is not None and found.number is not None:
                    value = SOURCES[column.source].in_our_unit(found.number * column.reported_scale, table.unit)
                    values[Address(name, row.setting, row.id, column.id)] = value
    return values


def printed_marks(papers: Path, tables: Mapping[str, Table]) -> dict[Address, frozenset[str]]:
    """The rows that each cell is significantly above, as the markers next to the printed numbers say."""
    found = {}
    for name, table in tables.items():
        if not (table.reported and table.significance and table.significance.printed):
            continue
        rows = read(reported_path(papers, name, table.reported))
        for row in table.rows:
            for column in table.columns:
                cell = printed_number(rows, printed_as(row, column), row.id)
                above = [table.significance.printed.get(mark, []) for mark in (cell.markers if cell else "")]
                ids = frozenset(one for each in above for one in ([each] if isinstance(each, str) else each))
                found[Address(name, row.setting, row.id, column.id)] = ids
    return found


def write_printed(path: Path, papers: Path, catalogue: Catalogue) -> dict[str, int]:
    """Judge every claim by the printed numbers, write a line a claim and a page, and count the verdicts."""
    lines = judged_lines(papers, catalogue)
    write_rows(path, COLUMNS, lines)
    write_text(path.with_suffix(".md"), pages.of_printed(COLUMNS, lines))
    verdict = list(COLUMNS).index("verdict")
    return dict(Counter(line[verdict] for line in lines))


def judged_lines(papers: Path, catalogue: Catalogue) -> list[list[str]]:
    """The lines of the ledger, in the order of the ids."""
    tables, shapes = catalogue.tables, all_shapes(catalogue)
    claims, values = read_claims(papers), printed_values(papers, tables)
    marks, judged = printed_marks(papers, tables), {}
    for name, (paper, claim) in claims.items():
        try:
            for test in number_tests([*claim.premise, *claim.tests, *claim.control]):
                test.contrasts(shapes)  # refuses what no table or figure has
            judged[name] = printed.judge_on_printed(claim.tests, shapes, values, marks)
        except EncoreError as error:
            raise EncoreError(f"{papers / paper / FILE}: {name}: {error}") from error
    power = Power(papers, tables, values)
    numbers = {name: {known for cell in one.cells if (known := _number(cell, tables))} for name, one in judged.items()}
    lines = []
    for name, (paper, claim) in claims.items():
        own, others = judged[name], {other: one for other, one in judged.items() if other != name}
        shared = [other for other, one in others.items() if own.cells & one.cells]
        same = [other for other in others if numbers[name] & numbers[other] and other not in shared]
        premise = printed.judge_on_printed(claim.premise, tables, values).verdict if claim.premise else ""
        copied = dict.fromkeys(filter(None, (copied_from(address, tables) for address in sorted(own.cells))))
        chance = number(chance_on_print(claim.tests, tables, catalogue))
        about = [chance, str(len(own.cells)), " ".join(shared), " ".join(same), premise, "; ".join(copied)]
        shown = _shown(claim, tables, values, power)
        lines.append([name, paper, claim.place, claim.says, *_judgement(own), *about, *shown])
    return lines


def _judgement(judged: PrintedJudgement) -> list[str]:
    """The verdict, how many inequalities hold, which do not, and by how little one holds or fails."""
    bearings = judged.bearings
    margins = [bearing.smallest for bearing in bearings if bearing.smallest is not None]
    return [
        judged.verdict,
        str(sum(bearing.count for bearing in bearings)),
        str(sum(bearing.needed for bearing in bearings)),
        str(sum(bearing.held for bearing in bearings)),
        "; ".join(each for bearing in bearings for each in bearing.exceptions),
        number(min(margins, key=abs, default=None)),
    ]


def chance_on_print(tests: Sequence[AnyTest], tables: Mapping[str, Table], catalogue: Catalogue) -> float | None:
    """How often all tests of a claim would hold if its systems were equally good; None where chance has no say."""
    if len(on_tables(tests)) < len(tests):
        return None
    found = [(test, test.contrasts(tables)) for test in on_tables(tests)]
    required = [
        Required(test.kind, contrasts, test.needed(len(contrasts)), getattr(test, "tau", 0.0))
        for test, contrasts in found
    ]
    return chance_of(required, _origin(tables, catalogue))


def _shown(claim: Claim, tables: Tables, values: PrintedValues, power: Power) -> list[str]:
    """How many queries its columns have, what these could have shown, and how many printed differences are larger."""
    tests = on_tables(claim.tests)
    counts = {power.queries(run) for test in tests for each in test.contrasts(tables) for run in power.runs(each)}
    differences = [
        (apart, least)
        for test in tests
        if test.by_comparison
        for each in test.contrasts(tables)
        if (apart := printed.printed_difference(each, values)) is not None
        and (least := power.could_show(each)) is not None
    ]
    return [
        " ".join(str(count) for count in sorted(count for count in counts if count is not None)),
        number(max((least for _, least in differences), default=None)),
        str(sum(apart > least for apart, least in differences)) if differences else "",
        str(len(differences)) if differences else "",
    ]


def _number(address: Address, tables: Mapping[str, Table]) -> tuple[str, ...] | None:
    """What makes a cell's number: the system, the queries and the measure; None where no run does."""
    row, column = entries_of(address, tables)
    if column.source != TESTED or not has_own_value(row, column):
        return None
    return tuple(fill_vars(text, row, column) for text in (row.system, column.dataset, column.split, column.measure))


def _origin(tables: Mapping[str, Table], catalogue: Catalogue) -> Origin:
    """What makes a cell's number: the pre-trained checkpoint, the model, queries, measure; of a mean, its parts'."""

    def origin(address: Address) -> tuple[Hashable, ...]:
        row, column = entries_of(address, tables)
        if column.mean_of:
            return of_mean(origin, address, column.mean_of)
        if column.source != TESTED:
            return (address,)
        *queries, measure = (fill_vars(text, row, column) for text in (column.dataset, column.split, column.measure))
        if not has_own_value(row, column):
            return address.row, address[:3], tuple(queries), measure
        system = fill_vars(row.system, row, column)
        return checkpoint_of(system, catalogue), system, tuple(queries), measure

    return origin


def _build(folder: Path, claims: PrintedClaimsSlice, products: Path) -> str:
    catalogue = load_catalogue()
    if claims.content != printed_plan(catalogue):
        raise EncoreError(f"{PAPERS} was changed by somebody since the workflow was read; run snakemake again")
    return pages.counted(write_printed(folder / f"{claims.name}.csv", PAPERS, catalogue))


BUILDER = Builder(lambda content: PrintedClaimsSlice.model_validate(content | {"content": content}), _build)

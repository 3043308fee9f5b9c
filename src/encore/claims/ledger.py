"""The ledger of claims on the papers' own printed numbers: one line a claim, made without any run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from encore.claim_entries import Above, AnyTest, Claim, Figure
from encore.claims import chance, printed
from encore.claims.contrasts import Address, Contrast, Tables
from encore.claims.expansion import contrasts
from encore.claims.files import FILE, contents_of, read_claims
from encore.claims.printed import Judged, Values
from encore.errors import EncoreError
from encore.provenance import manifest
from encore.reporting.numbers import number, write_rows
from encore.reporting.reported import Reported, found, read
from encore.reporting.sources import SOURCES
from encore.storage import write_json
from encore.table_entries import Column, Row, Table, filled, printed_as

PRINTED = "claims_printed"
HEADER = (
    "id",
    "paper",
    "place",
    "claim",
    "verdict",
    "inequalities",
    "needed",
    "held",
    "exceptions",
    "slimmest",
    "chance",
    "cells",
    "shares_cells_with",
)


def printed_values(papers: Path, tables: Mapping[str, Table]) -> dict[Address, float]:
    """Every number that the papers print in their tables, by cell, in the measures' own unit.

    Args:
        papers: the folder of the papers.
        tables: by name, ``<paper>/<table>``.
    """
    values = {}
    for name, table in tables.items():
        rows = read(str(papers / name.split("/")[0] / table.reported)) if table.reported else []
        for row in table.rows:
            for column in table.columns:
                if (value := _value(rows, table, row, column)) is not None:
                    values[Address(name, row.setting, row.id, column.id)] = value
    return values


def make_printed(folder: Path, papers: Path, tables: Mapping[str, Table], spec: str) -> dict[str, int]:
    """Write ``claims_printed.csv`` and its manifest, and count the verdicts.

    Raises:
        EncoreError: a claim names what no table has, or the files are others than ``spec`` was taken of.
    """
    if contents_of(papers) != spec:
        raise EncoreError(f"{papers} was changed by somebody since the workflow was read; run snakemake again")
    record = folder / f"{PRINTED}.{manifest.MANIFEST}"
    record.unlink(missing_ok=True)
    csv = folder / f"{PRINTED}.csv"
    verdicts = write_printed(csv, papers, tables)
    outputs = {csv.name: manifest.describe(csv)}
    write_json(record, {"stage": PRINTED, "spec": spec, "results": verdicts, "inputs": {}, "outputs": outputs})
    return verdicts


def write_printed(path: Path, papers: Path, tables: Mapping[str, Table]) -> dict[str, int]:
    """Judge every claim by the printed numbers, write one line a claim, and count the verdicts.

    Raises:
        EncoreError: a claim names what no table has, with its file and id.
    """
    claims, values = read_claims(papers), printed_values(papers, tables)
    judged = {name: _judged(papers, name, paper, claim, tables, values) for name, (paper, claim) in claims.items()}
    lines = [_line(name, paper, claim, judged, tables) for name, (paper, claim) in claims.items()]
    write_rows(path, HEADER, lines)
    verdicts = [one.verdict for one in judged.values()]
    return {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}


def chance_of(tests: Sequence[AnyTest], tables: Mapping[str, Table]) -> float | None:
    """How often all tests of a claim would hold if its systems were equally good; None where chance has no say."""
    expanded: list[Contrast] = []
    for test in tests:
        if isinstance(test, Figure):
            return None
        own = contrasts(test, tables)
        if isinstance(test, Above) and test.at_least and len(tests) > 1:
            return None
        expanded += own
    first = tests[0]
    needed = first.at_least if isinstance(first, Above) and first.at_least else len(expanded)
    return chance.rate(expanded, needed, _run(tables))


def _judged(papers: Path, name: str, paper: str, claim: Claim, tables: Tables, values: Values) -> Judged:
    try:
        return printed.judge(claim, tables, values)
    except EncoreError as error:
        raise EncoreError(f"{papers / paper / FILE}: {name}: {error}") from error


def _run(tables: Mapping[str, Table]) -> chance.Run:
    """What tells runs apart: cells of one dataset and split are of one run."""

    def run(address: Address) -> tuple[str, str]:
        table = tables[address.table]
        row = next(row for row in table.rows if (row.setting, row.id) == (address.setting, address.row))
        column = next(column for column in table.columns if column.id == address.column)
        dataset, split = (filled(text, row, column) for text in (column.dataset, column.split))
        return dataset, split

    return run


def _line(name: str, paper: str, claim: Claim, judged: Mapping[str, Judged], tables: Mapping[str, Table]) -> list[str]:
    own = judged[name]
    shared = [other for other, one in judged.items() if other != name and own.cells & one.cells]
    bearings = own.bearings
    return [
        name,
        paper,
        claim.place,
        claim.says,
        own.verdict,
        str(sum(bearing.count for bearing in bearings)),
        str(sum(bearing.needed for bearing in bearings)),
        str(sum(bearing.held for bearing in bearings)),
        "; ".join(own.exceptions),
        number(min((one.smallest for one in bearings if one.smallest is not None), key=abs, default=None)),
        number(chance_of(claim.tests, tables)),
        str(len(own.cells)),
        " ".join(shared),
    ]


def _value(rows: Reported, table: Table, row: Row, column: Column) -> float | None:
    """The number that a paper prints in a cell; None for nothing, or for a word."""
    printed_here = found(rows, printed_as(row, column), row.id)
    if printed_here is None or printed_here.number is None:
        return None
    return SOURCES[column.source].in_our_unit(printed_here.number * column.reported_times, table.unit)

"""The claims of the page: what each comes to on runs, and the cells that this rests on."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from encore.products.report.slice import RESULTS, ReportSlice, StatedClaim, slug
from encore.products.report.tables import ShownTable
from encore.products.tables.grid import Column, Row
from encore.storage.csv_rows import read_rows

ClaimLine = dict[str, str]
# Each verdict with its tone, which the style sheet gives a colour, and its meaning; in the order of the bars.
VERDICTS = {
    "reproduced": ("good", "Every test of the claim is shown on our runs."),
    "holds here": ("good", "Every test is shown, on data that are a proxy for the papers’."),
    "same direction": ("lean", "Not shown, but our estimates are on the claim’s side."),
    "not distinguishable": ("open", "Our runs show neither the claim nor its opposite."),
    "opposite direction": ("open", "There is no chance in it, and our numbers are against the claim."),
    "too few seeds": ("open", "Judging it needs more seeds than were run."),
    "premise not met": ("open", "What the claim takes for granted does not hold on our runs."),
    "fails here": ("bad", "A test is refuted, on data that are a proxy for the papers’."),
    "contradicted": ("bad", "A test is refuted on our runs."),
    "not testable here": ("none", "This configuration does not run what it is about."),
}


class Place(NamedTuple):
    """A text, and the name of the part of the page that it leads to; empty where this page does not show that."""

    text: str
    target: str = ""


class ClaimNumber(NamedTuple):
    """A number that a claim rests on: its column, and what is shown of it; no text where there is none."""

    label: str
    text: str = ""
    target: str = ""


@dataclass(frozen=True)
class ClaimRow:
    """The cells of one row of a table, or one line of a figure, that a claim rests on."""

    table: Place
    label: str
    numbers: list[ClaimNumber] = field(default_factory=list)


@dataclass(frozen=True)
class ShownClaim:
    """A claim and, where it was judged, its line of ``claims.csv``."""

    id: str
    stated: StatedClaim
    run: ClaimLine | None
    about: list[Place]
    rows: list[ClaimRow]

    @property
    def place(self) -> str:
        """The name of the claim's row on the page."""
        return f"k-{slug(self.id)}"

    @property
    def question(self) -> list[str]:
        """The arguments of `encore explain` about it."""
        return [f"{RESULTS}/claims.csv", "--row", self.id]


class VerdictCount(NamedTuple):
    """How many claims come to a verdict, in all and of each paper."""

    verdict: str
    number: int
    papers: Counter[str]


def read_claims(site: ReportSlice, tables: Sequence[ShownTable]) -> list[ShownClaim]:
    """Every claim, in the order of the ids."""
    run = {line["id"]: line for line in read_rows(RESULTS / "claims.csv")} if site.claims else {}
    by_name = {shown.name: shown for shown in tables}
    return [
        ShownClaim(
            claim,
            stated,
            run.get(claim),
            [_product(name, site, by_name) for name in site.about.get(claim, [])],
            [_row(site, by_name, *row) for row in site.cells.get(claim, [])],
        )
        for claim, stated in site.stated.items()
    ]


def count_verdicts(lines: Iterable[ClaimLine]) -> list[VerdictCount]:
    """The verdicts that occur, from those that bear claims out to those that cannot be judged."""
    found: dict[str, Counter[str]] = {}
    for line in lines:
        found.setdefault(line["verdict"], Counter())[line["paper"]] += 1
    return [VerdictCount(each, found[each].total(), found[each]) for each in sorted(found, key=rank)]


def tone(verdict: str) -> str:
    """The class of a verdict's colour."""
    return VERDICTS[verdict][0] if verdict in VERDICTS else "none"


def rank(verdict: str) -> int:
    """The place of a verdict in the order of ``VERDICTS``."""
    return list(VERDICTS).index(verdict) if verdict in VERDICTS else len(VERDICTS)


def _product(name: str, site: ReportSlice, tables: Mapping[str, ShownTable]) -> Place:
    """A table or a figure, with the way to it where it is on the page."""
    if name in tables:
        return Place(name, tables[name].place)
    return Place(f"figure {name}", f"f-{slug(name)}") if name in site.figures else Place(name)


def _row(
    site: ReportSlice, tables: Mapping[str, ShownTable], name: str, setting: str, row: str, columns: list[str]
) -> ClaimRow:
    if name not in tables:
        label = ", ".join(filter(None, [setting, row, *columns]))
        return ClaimRow(Place(name, f"d-{slug(name)}" if name in site.figures else ""), label)
    shown, found = tables[name], tables[name].row(setting, row)
    where = f" [{setting}]" if setting else ""
    if found is None:
        return ClaimRow(Place(name, shown.place), f"{row}{where}: not a row of this run")
    numbers = [_number(shown, found, column) for column in shown.table.columns if column.id in columns]
    return ClaimRow(Place(name, shown.place), f"{found.label}{where}", numbers)


def _number(shown: ShownTable, row: Row, column: Column) -> ClaimNumber:
    """A number of ours leads to its explanation, one that is only printed to its place in the table."""
    cell = row.cells[column.id]
    if column.hidden or not cell.text:
        return ClaimNumber(column.label)
    text = cell.text if shown.made or not cell.printed else cell.printed.text
    return ClaimNumber(column.label, text, f"{'w' if cell.ours else 'c'}{shown.key(row, column)}")

"""Claims on the paper's own printed numbers: whether the numbers fulfil each inequality, without a run or a test."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from encore.products.claims.chance import tau
from encore.products.claims.contrasts import DUST, Address, Contrast, Tables
from encore.products.claims.entries import AlikeTest, AnyTest, NoWinnerTest, NumberTest, StatedTest, on_tables

HOLDS, PARTLY, FAILS = "holds", "partly", "fails"
FIGURE, MISSING, RUNS_ONLY = "figure only", "not printed", "runs only"
PrintedValues = Mapping[Address, float]
Marks = Mapping[Address, frozenset[str]]  # the rows that a paper's markers say a cell is significantly above
NO_MARKS: Marks = MappingProxyType({})


@dataclass(frozen=True)
class Bearing:
    """How many of the needed inequalities hold on printed numbers, and which do not."""

    held: int
    needed: int
    count: int
    exceptions: tuple[str, ...]
    smallest: float | None = None  # the slimmest margin by which one holds or fails


@dataclass(frozen=True)
class PrintedJudgement:
    """A claim on printed numbers: its verdict, and what each of its tests gave."""

    verdict: str
    bearings: tuple[Bearing, ...]
    cells: frozenset[Address]


def judge_on_printed(
    tests: Sequence[AnyTest], tables: Tables, values: PrintedValues, marks: Marks = NO_MARKS
) -> PrintedJudgement:
    """Judge tests that must all hold, a claim's or its premise's, on printed numbers.

    Printed values compared with themselves say nothing: such tests are for runs only.

    Args:
        values: the printed numbers by cell, in the measures' own unit.
        marks: the markers of significance next to them.
    """
    judged = on_tables(tests)
    if not judged:
        verdict = MISSING if any(isinstance(test, StatedTest) for test in tests) else FIGURE
        return PrintedJudgement(verdict, (), frozenset())
    expanded = [test.contrasts(tables) for test in judged]
    cells = frozenset(address for found in expanded for one in found for address, _ in one.terms)
    if all(contrast.printed for found in expanded for contrast in found):
        return PrintedJudgement(RUNS_ONLY, (), cells)
    bearings = tuple(_bearing(test, found, tables, values, marks) for test, found in zip(judged, expanded, strict=True))
    if any(bearing.count == 0 for bearing in bearings):
        return PrintedJudgement(MISSING, bearings, cells)
    if all(bearing.held >= bearing.needed for bearing in bearings):
        return PrintedJudgement(HOLDS, bearings, cells)
    return PrintedJudgement(PARTLY if any(bearing.held for bearing in bearings) else FAILS, bearings, cells)


def printed_difference(contrast: Contrast, values: PrintedValues) -> float | None:
    """A contrast minus its bound; None where the paper does not print one of its cells."""
    terms = (*contrast.terms, *contrast.printed)
    if not all(address in values for address, _ in terms):
        return None
    return math.fsum(weight * values[address] for address, weight in terms) - contrast.least


def _bearing(
    test: NumberTest, found: Sequence[Contrast], tables: Tables, values: PrintedValues, marks: Marks
) -> Bearing:
    if isinstance(test, NoWinnerTest):
        return _no_winner(test, found, values)
    if isinstance(test, AlikeTest):
        return _alike(test, tables, values)
    known = [(contrast, apart) for contrast in found if (apart := printed_difference(contrast, values)) is not None]
    failed = [contrast for contrast, apart in known if not _holds(contrast, apart, marks)]
    exceptions = tuple(dict.fromkeys(map(str, failed)))
    smallest = min((apart for _, apart in known), key=abs, default=None)
    return Bearing(len(known) - len(failed), test.needed(len(known)), len(known), exceptions, smallest)


def _holds(contrast: Contrast, apart: float, marks: Marks) -> bool:
    if contrast.marked:
        (higher, _), (lower, _) = contrast.terms
        return apart > DUST and lower.row in marks.get(higher, ())
    return apart > DUST or (contrast.or_equal and apart > -DUST)


def _no_winner(test: NoWinnerTest, found: Sequence[Contrast], values: PrintedValues) -> Bearing:
    known = [apart for contrast in found if (apart := printed_difference(contrast, values)) is not None]
    mixed = not all(apart > DUST for apart in known) and not all(apart < -DUST for apart in known)
    exceptions = () if mixed else (f"{test.about} / {test.row} and {test.than} differ one way under every column",)
    return Bearing(int(mixed), 1, len(known) and 1, exceptions)


def _alike(test: AlikeTest, tables: Tables, values: PrintedValues) -> Bearing:
    taus = {}
    for column in test.columns_in(tables):
        lists = [
            [values.get(Address(test.about, setting, row, column)) for row in test.rows] for setting in test.settings
        ]
        known = [[number for number in numbers if number is not None] for numbers in lists]
        if all(len(numbers) == len(test.rows) for numbers in known):
            taus[column] = tau(*known)
    failed = tuple(f"{test.about} / {column}: tau {found:.2f}" for column, found in taus.items() if found <= test.tau)
    smallest = min((found - test.tau for found in taus.values()), key=abs, default=None)
    return Bearing(len(taus) - len(failed), len(taus), len(taus), failed, smallest)

"""Expansion of each kind of test into inequalities over the cells that it is about."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.products.claims.contrasts import (
    Address,
    Contrast,
    Tables,
    Terms,
    above,
    check_address,
    columns_of,
    table_of,
)
from encore.products.claims.entries import (
    AboveTest,
    AlikeTest,
    ClaimTest,
    CloseTest,
    GainsTest,
    NoWinnerTest,
    OrderTest,
)


def contrasts(test: ClaimTest, tables: Tables) -> list[Contrast]:
    """The inequalities of a test.

    Raises:
        EncoreError: it names an unknown table, setting, row or column, compares nothing, or asks for too many.
    """
    found = list(_expanded(test, tables))
    for contrast in found:
        for address, _ in (*contrast.terms, *contrast.printed):
            check_address(address, tables)
    if isinstance(test, AboveTest) and (test.at_least or 0) > len(found):
        raise EncoreError(
            f"`at_least: {test.at_least}` of only {len(found)} comparisons on {test.about}; ask for fewer"
        )
    if not found:
        raise EncoreError(f"a test of kind {getattr(test, 'kind', '')} on {test.about} compares nothing; fix its rows")
    return found


def needed(test: ClaimTest, count: int) -> int:
    """How many of a test's ``count`` inequalities must hold."""
    return (isinstance(test, AboveTest) and test.at_least) or count


def _expanded(test: ClaimTest, tables: Tables) -> Iterator[Contrast]:
    match test:
        case AboveTest():
            return _above(test, tables)
        case OrderTest():
            return _order(test, tables)
        case CloseTest():
            return _close(test, tables)
        case GainsTest():
            return _gains(test, tables)
        case NoWinnerTest():
            return _pairs(test, tables)
        case AlikeTest():
            return _alike(test, tables)
    raise TypeError(test)


def _settings(test: ClaimTest, rows: Sequence[str], tables: Tables) -> list[str]:
    """The settings named, or all that have every row."""
    if test.settings is not None:
        return test.settings
    held: dict[str, set[str]] = {}
    for row in table_of(test.about, tables).rows:
        held.setdefault(row.setting, set()).add(row.id)
    found = [setting for setting, ids in held.items() if set(rows) <= ids]
    if not found:
        known = sorted({row.id for row in table_of(test.about, tables).rows})
        odd = next((row for row in rows if row not in known), rows[0])
        raise EncoreError(f"no setting of {test.about} has the rows {', '.join(rows)}{nearest(odd, known)}")
    return found


def _above(test: AboveTest, tables: Tables) -> Iterator[Contrast]:
    ours = columns_of(test, tables)
    columns = list(zip(ours, test.than_columns or ours, strict=True))
    elsewhere = test.than_setting is not None or test.than_table
    shared = test.than if isinstance(test.than, list) and not elsewhere else []
    for setting in _settings(test, [*(test.rows or []), *shared], tables):
        other = setting if test.than_setting is None else test.than_setting
        for row in test.rows or _common_rows(test, setting, other, tables):
            for than in test.than if isinstance(test.than, list) else [row]:
                for ours_in, theirs_in in columns:
                    higher = Address(test.about, setting, row, ours_in)
                    lower = Address(test.than_table or test.about, other, than, theirs_in)
                    if isinstance(test.than, float):
                        yield Contrast(((higher, 1),), test.than, test.or_equal)
                    else:
                        terms = ((higher, 1), (lower, -test.factor))
                        yield Contrast(terms, test.by, test.or_equal, marked=test.significantly)


def _common_rows(test: AboveTest, setting: str, other: str, tables: Tables) -> list[str]:
    """The rows of a setting that the other setting, or table, has as well."""
    theirs = {row.id for row in table_of(test.than_table or test.about, tables).rows if row.setting == other}
    return [row.id for row in table_of(test.about, tables).rows if row.setting == setting and row.id in theirs]


def _order(test: OrderTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, test.rows, tables):
        for column in columns_of(test, tables):
            for higher, lower in pairwise(Address(test.about, setting, row, column) for row in test.rows):
                yield above(higher, lower, or_equal=test.or_equal)


def _close(test: CloseTest, tables: Tables) -> Iterator[Contrast]:
    """Both halves of each equivalence, or the upper one."""
    others = test.to if isinstance(test.to, list) else []
    for setting in _settings(test, [*test.rows, *others], tables):
        for row in test.rows:
            for column in columns_of(test, tables):
                ours = Address(test.about, setting, row, column)
                for theirs in (ours._replace(row=other) for other in others):
                    yield _within(((theirs, 1), (ours, -1)), (), test)
                    if not test.or_below:
                        yield _within(((ours, 1), (theirs, -1)), (), test)
                if isinstance(test.to, float):
                    yield replace(_within(((ours, -1),), (), test), least=-test.to - test.within)
                    if not test.or_below:
                        yield replace(_within(((ours, 1),), (), test), least=test.to - test.within)
                if test.to == "printed":
                    yield _within(((ours, -1),), ((ours, 1),), test)
                    if not test.or_below:
                        yield _within(((ours, 1),), ((ours, -1),), test)


def _within(terms: Terms, printed: Terms, test: CloseTest) -> Contrast:
    return Contrast(terms, -test.within, or_equal=True, equivalence=True, printed=printed)


def _gains(test: GainsTest, tables: Tables) -> Iterator[Contrast]:
    rows = [test.row, test.than, test.other_row or test.row, test.other_than or test.than]
    columns = columns_of(test, tables)
    for setting in _settings(test, rows, tables):
        for column, other in zip(columns, test.other_columns or columns, strict=True):
            cells = (
                Address(test.about, setting, row, at)
                for row, at in zip(rows, (column, column, other, other), strict=True)
            )
            yield Contrast(tuple(zip(cells, (1, -1, -1, 1), strict=True)))


def _pairs(test: NoWinnerTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, [test.row, test.than], tables):
        for column in columns_of(test, tables):
            ours, theirs = (Address(test.about, setting, row, column) for row in (test.row, test.than))
            yield above(ours, theirs)


def _alike(test: AlikeTest, tables: Tables) -> Iterator[Contrast]:
    """The order of the rows under each setting as pairs; ``chance.py`` compares the two orders."""
    for column in columns_of(test, tables):
        for setting in test.settings:
            for place, row in enumerate(test.rows):
                for other in test.rows[place + 1 :]:
                    first, second = (Address(test.about, setting, one, column) for one in (row, other))
                    yield above(first, second)

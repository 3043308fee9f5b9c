"""Expansion of each kind of test into inequalities over the cells that it is about."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from encore.claims.contrasts import Address, Contrast, Tables, above, check_address, columns_of, table_of
from encore.config.claims import (
    AboveTest,
    AcrossTest,
    AlikeTest,
    ClaimTest,
    CloseTest,
    GainsTest,
    LaterTest,
    LeastTest,
    LimitTest,
    NoWinnerTest,
    OrderTest,
    RatioTest,
    ShrinkingTest,
    ValueTest,
)
from encore.config.validation import nearest
from encore.errors import EncoreError


def contrasts(test: ClaimTest, tables: Tables) -> list[Contrast]:
    """The inequalities of a test.

    Raises:
        EncoreError: it names an unknown table, setting, row or column, compares nothing, or asks for too many.
    """
    found = list(_EXPAND[type(test)](test, tables))
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


def _settings(test: ClaimTest, rows: list[str], tables: Tables) -> list[str]:
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
    here = columns_of(test, tables)
    pairs = list(zip(here, test.than_columns or here, strict=True))
    theirs = test.than_table or test.about
    shared = [] if test.than_setting is not None or test.than_table else test.than
    for setting in _settings(test, [*test.rows, *shared], tables):
        other = setting if test.than_setting is None else test.than_setting
        for row in test.rows:
            for than in test.than:
                for ours, column in pairs:
                    higher, lower = Address(test.about, setting, row, ours), Address(theirs, other, than, column)
                    yield above(higher, lower, test.by, test.or_equal)


def _later(test: LaterTest, tables: Tables) -> Iterator[Contrast]:
    rows = {
        setting: [row.id for row in table_of(test.about, tables).rows if row.setting == setting]
        for setting in (test.setting, test.than_setting)
    }
    for row in test.rows or [row for row in rows[test.setting] if row in rows[test.than_setting]]:
        for column in columns_of(test, tables):
            yield above(
                Address(test.about, test.setting, row, column), Address(test.about, test.than_setting, row, column)
            )


def _order(test: OrderTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, test.rows, tables):
        for column in columns_of(test, tables):
            for higher, lower in pairwise(test.rows):
                first, second = (Address(test.about, setting, row, column) for row in (higher, lower))
                yield above(first, second, or_equal=test.or_equal)


def _across(test: AcrossTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, test.rows, tables):
        for row in test.rows:
            for higher, lower in pairwise(test.columns):
                first, second = (Address(test.about, setting, row, column) for column in (higher, lower))
                yield above(first, second, or_equal=test.or_equal)


def _limit(test: LimitTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, [*test.rows, test.than], tables):
        for row in test.rows:
            for column in columns_of(test, tables):
                ours, theirs = (Address(test.about, setting, one, column) for one in (row, test.than))
                yield Contrast(((theirs, 1), (ours, -1)), -test.by, or_equal=True, equivalence=True)


def _close(test: CloseTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, test.rows, tables):
        for column in columns_of(test, tables):
            first, *others = (Address(test.about, setting, row, column) for row in test.rows)
            for other in others:
                for terms in (((first, 1), (other, -1)), ((other, 1), (first, -1))):
                    yield Contrast(terms, -test.within, or_equal=True, equivalence=True)


def _ratio(test: RatioTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, [*test.rows, *test.than], tables):
        for row in test.rows:
            for than in test.than:
                here = columns_of(test, tables)
                for column, other in zip(here, test.than_columns or here, strict=True):
                    ours, theirs = Address(test.about, setting, row, column), Address(test.about, setting, than, other)
                    yield Contrast(((ours, 1), (theirs, -test.factor)), or_equal=True)


def _shrinking(test: ShrinkingTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, [test.row, test.than], tables):
        for wide, narrow in pairwise(test.columns):
            ours = {column: Address(test.about, setting, test.row, column) for column in (wide, narrow)}
            theirs = {column: Address(test.about, setting, test.than, column) for column in (wide, narrow)}
            yield Contrast(((ours[wide], 1), (theirs[wide], -1), (ours[narrow], -1), (theirs[narrow], 1)))


def _gains(test: GainsTest, tables: Tables) -> Iterator[Contrast]:
    rows = [test.row, test.than, test.other_row, test.other_than]
    for setting in _settings(test, rows, tables):
        for column in columns_of(test, tables):
            cells = (Address(test.about, setting, row, column) for row in rows)
            yield Contrast(tuple(zip(cells, (1, -1, -1, 1), strict=True)))


def _least(test: LeastTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, test.rows, tables):
        for row in test.rows:
            for column in columns_of(test, tables):
                yield Contrast(((Address(test.about, setting, row, column), 1),), test.least, or_equal=True)


def _pairs(test: NoWinnerTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, [test.row, test.than], tables):
        for column in columns_of(test, tables):
            ours, theirs = (Address(test.about, setting, row, column) for row in (test.row, test.than))
            yield above(ours, theirs)


def _alike(test: AlikeTest, tables: Tables) -> Iterator[Contrast]:
    """The order of the rows under each setting as pairs; ``alike.py`` compares the two orders."""
    for column in columns_of(test, tables):
        for setting in test.settings:
            for place, row in enumerate(test.rows):
                for other in test.rows[place + 1 :]:
                    first, second = (Address(test.about, setting, one, column) for one in (row, other))
                    yield above(first, second)


def _value(test: ValueTest, tables: Tables) -> Iterator[Contrast]:
    for setting in _settings(test, test.rows, tables):
        for row in test.rows:
            for column in columns_of(test, tables):
                cell = Address(test.about, setting, row, column)
                for sign in (1, -1):
                    yield Contrast(
                        ((cell, sign),), -test.within, or_equal=True, equivalence=True, printed=((cell, -sign),)
                    )


_EXPAND: dict[type, Callable[..., Iterator[Contrast]]] = {
    AboveTest: _above,
    LaterTest: _later,
    OrderTest: _order,
    AcrossTest: _across,
    LimitTest: _limit,
    CloseTest: _close,
    RatioTest: _ratio,
    ShrinkingTest: _shrinking,
    GainsTest: _gains,
    LeastTest: _least,
    NoWinnerTest: _pairs,
    AlikeTest: _alike,
    ValueTest: _value,
}

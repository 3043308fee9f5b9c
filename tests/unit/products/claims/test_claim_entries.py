"""The tests that claims consist of: what each compares, by the numbers of a small table, and what is refused."""

import pytest
from pydantic import ValidationError

from encore.errors import EncoreError
from encore.products.claims.contrasts import DUST, Address
from encore.products.claims.entries import read_claims
from encore.products.claims.plan import all_shapes, cells_of
from encore.products.tables.reported import PAPERS
from tests.support.small_claims import GAINS, TABLES, claim

ONE = {"kind": "above", "columns": ["x"], "settings": ["one"]}
VALUES = {
    Address("p/t", setting, row, column): value + bonus
    for setting, bonus in (("one", 0.0), ("two", 0.1))
    for row, values in {"a": (0.5, 0.4, 0.3), "b": (0.4, 0.4, 0.35), "c": (0.1, 0.2, 0.3)}.items()
    for column, value in zip("xyz", values, strict=True)
}


def judged(test):
    """Whether as many inequalities of a test hold of the values as must."""
    (made,) = claim(test).tests
    found = made.contrasts(TABLES)
    apart = [sum(weight * VALUES[address] for address, weight in each.terms) - each.least for each in found]
    held = sum(one > (-DUST if each.or_equal else DUST) for each, one in zip(found, apart, strict=True))
    return "holds" if held >= made.needed(len(found)) else "partly" if held else "fails"


@pytest.mark.parametrize(
    ("test", "verdict"),
    [
        ({"kind": "above", "rows": ["a"], "than": ["c"], "columns": ["x", "y"]}, "holds"),
        ({"kind": "above", "rows": ["a"], "than": ["c"]}, "partly"),
        ({"kind": "above", "rows": ["a"], "than": ["c"], "or_equal": True}, "holds"),
        ({"kind": "above", "rows": ["a"], "than": ["c"], "at_least": 4}, "holds"),
        ({"kind": "above", "rows": ["a"], "than": ["c"], "at_least": 5}, "partly"),
        ({"kind": "above", "rows": ["a"], "than": ["b"], "columns": ["x"], "by": 0.1}, "fails"),
        ({"kind": "above", "rows": ["a"], "than": ["b"], "columns": ["x"], "by": 0.09}, "holds"),
        ({"kind": "above", "rows": ["c"], "than": ["a"], "columns": ["x", "y"]}, "fails"),
        ({"kind": "above", "settings": ["two"], "than_setting": "one"}, "holds"),
        ({"kind": "above", "settings": ["one"], "than_setting": "two"}, "fails"),
        ({"kind": "above", "rows": ["a"], "columns": ["x", "y"], "than_columns": ["y", "z"]}, "holds"),
        ({"kind": "above", "rows": ["a"], "columns": ["y"], "than_columns": ["x"]}, "fails"),
        ({"kind": "order", "rows": ["a", "b", "c"], "columns": ["x"]}, "holds"),
        ({"kind": "order", "rows": ["a", "b", "c"], "columns": ["y"]}, "partly"),
        ({"kind": "order", "rows": ["a", "b", "c"], "columns": ["y"], "or_equal": True}, "holds"),
        ({"kind": "close", "rows": ["a"], "to": ["b"], "within": 0.1, "or_below": True}, "holds"),
        ({"kind": "close", "rows": ["a"], "to": ["b"], "within": 0.05, "or_below": True, "columns": ["x"]}, "fails"),
        ({"kind": "close", "rows": ["c"], "to": ["a"], "within": 0.01, "or_below": True}, "holds"),
        ({"kind": "close", "rows": ["b"], "to": ["a"], "within": 0.05, "columns": ["y", "z"]}, "holds"),
        ({"kind": "close", "rows": ["b"], "to": ["a"], "within": 0.04, "columns": ["z"]}, "partly"),
        ({**ONE, "rows": ["b"], "than": ["a"], "factor": 0.8, "or_equal": True}, "holds"),
        ({**ONE, "rows": ["b"], "than": ["a"], "factor": 0.8}, "fails"),
        ({**ONE, "rows": ["b"], "than": ["a"], "factor": 0.9, "or_equal": True}, "fails"),
        ({**GAINS, "columns": ["x", "y"], "other_columns": ["y", "z"]}, "holds"),
        ({**GAINS, "columns": ["z"], "other_columns": ["y"]}, "fails"),
        ({**GAINS, "other_row": "c", "other_than": "a", "columns": ["x"]}, "holds"),
        ({**GAINS, "row": "c", "than": "a", "other_row": "a", "other_than": "b", "columns": ["x"]}, "fails"),
        ({"kind": "above", "rows": ["a", "b"], "than": 0.4, "or_equal": True, "columns": ["x", "y"]}, "holds"),
        ({"kind": "above", "rows": ["a", "b"], "than": 0.4, "columns": ["x"], "settings": ["one"]}, "partly"),
        ({"kind": "close", "rows": ["a"], "to": 0.45, "within": 0.06, "columns": ["x"], "settings": ["one"]}, "holds"),
        ({"kind": "close", "rows": ["a"], "to": 0.4, "within": 0.06, "columns": ["x"], "settings": ["one"]}, "partly"),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else value,
)
def test_each_kind_of_test(test, verdict):
    assert judged(test) == verdict


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"kind": "above", "rows": ["aa"], "than": ["b"]}, "did you mean"),
        ({"kind": "above", "rows": ["a"], "than": ["b"], "columns": ["xx"]}, "no column 'xx'"),
        ({"kind": "above", "table": "p/u", "rows": ["a"], "than": ["b"]}, "no table 'p/u'"),
        ({"kind": "above", "rows": ["a"], "than": ["b"], "settings": ["ones"]}, "under 'ones'"),
        ({"kind": "above", "settings": ["three"], "than_setting": "one"}, "compares nothing"),
        ({"kind": "above", "rows": ["a"], "than": ["b"], "at_least": 7}, "of only 6 comparisons on p/t"),
    ],
    ids=["row", "column", "table", "setting", "nothing", "too many"],
)
def test_a_claim_about_nothing_is_refused(test, message):
    with pytest.raises(EncoreError, match=message):
        judged(test)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"kind": "above", "rows": ["a"], "than": ["b"], "columns": ["x"], "than_columns": ["x", "y"]}, "their order"),
        ({"kind": "above", "rows": ["a"]}, "say what the rows are above"),
        ({**GAINS, "columns": ["x"], "other_columns": ["x", "y"]}, "their order"),
        (GAINS, "name another gain"),
    ],
    ids=["columns", "above nothing", "columns of gains", "one gain"],
)
def test_a_test_compares_two_things(test, message):
    with pytest.raises(ValidationError, match=message):
        claim(test)


@pytest.mark.parametrize(
    "test",
    [
        {"kind": "close", "rows": ["a"], "to": ["b"], "within": 0.1},
        {"kind": "close", "rows": ["a"], "to": ["b"], "within": 0.1, "or_below": True},
        {"kind": "close", "rows": ["a"], "to": "printed", "within": 0.1},
    ],
    ids=["either way", "or below", "printed"],
)
def test_what_says_that_little_parts_two_is_tested_as_an_equivalence(test):
    """Docs: shown when the 90 % interval lies inside the margin, not the 95 % one."""
    assert {one.equivalence for one in claim(test).tests[0].contrasts(TABLES)} == {True}


@pytest.mark.usefixtures("at_the_root")
def test_every_claim_of_the_papers_is_about_cells_that_there_are(catalogue):
    """But those that only a picture shows, or that are only stated."""
    shapes, claims = all_shapes(catalogue), read_claims(PAPERS)
    assert {name for name, (_, each) in claims.items() if not cells_of(name, each, shapes)} == {
        *("C71", "C120", "C127", "C128")
    }

"""Claims on the papers' own printed numbers: what each says of them, what chance would give, what is refused."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from pydantic import ValidationError

from encore.errors import EncoreError
from encore.products.claims import chance, printed, printed_claims
from encore.products.claims.contrasts import Address
from encore.products.claims.entries import read_claims
from encore.products.tables.entries import Table
from tests.support.small_claims import claim

PAPERS = Path("config/papers")
# What was found by reading the tables, before any of this was written: all others hold.
PARTLY = {"C01", "C02", "C04", "C07", "C15", "C19", "C27", "C31", "C38", "C39", "C40", "C41"}
FIGURES = {"C18", "C37", "C48"}

TABLE = Table.model_validate(
    {
        "title": "Small",
        "rows": [
            {"id": name, "label": name, "setting": setting, "system": name}
            for setting in ("one", "two")
            for name in ("a", "b", "c")
        ],
        "columns": [
            {"id": name, "label": name, "dataset": "d", "split": split, "measure": name}
            for name, split in (("x", "test"), ("y", "test"), ("z", "graded"))
        ],
    }
)
TABLES = {"p/t": TABLE}
MARKS = {Address("p/t", "one", "a", "x"): frozenset({"b"})}  # under one of two settings
ONE = {"kind": "above", "columns": ["x"], "settings": ["one"]}
GAINS = {"kind": "gains", "row": "a", "than": "b"}
VALUES = {
    Address("p/t", setting, row, column): value + bonus
    for setting, bonus in (("one", 0.0), ("two", 0.1))
    for row, values in {"a": (0.5, 0.4, 0.3), "b": (0.4, 0.4, 0.35), "c": (0.1, 0.2, 0.3)}.items()
    for column, value in zip("xyz", values, strict=True)
}


def judged(*tests):
    return printed.judge_on_printed(claim(*tests).tests, TABLES, VALUES, MARKS)


def test_the_printed_numbers_bear_out_what_a_reader_found(lines):
    assert len(lines) >= 49
    found = {name: line["verdict"] for name, line in lines.items() if int(name[1:]) < 50}
    assert len(found) == 48  # C32 was cut from the sentence of C31
    assert {name for name, verdict in found.items() if verdict == "partly"} == PARTLY
    assert {name for name, verdict in found.items() if verdict == "figure only"} == FIGURES
    assert set(found.values()) == {"holds", "partly", "figure only"}


def test_exceptions_are_named(lines):
    assert lines["C02"]["exceptions"] == "cpdae/table1 / Dense / cpdae / r100, cpdae-r"
    assert lines["C19"]["exceptions"].startswith("two_tower/table3 / 1 % / 99 % / all / r1")
    assert [name in lines["C35"]["exceptions"] for name in ("arguana", "quora", "climate", "fiqa")] == [True] * 3 + [
        False
    ]


# By hand: the gains that the papers call significant and whose cells have no marker.
UNMARKED = {
    "C01": ["cpdae / r1000, seed", "cpdae / r100, seed", "cpdae / doc-dl-r100, seed"],
    "C09": [],
    "C15": ["tct-doc / ndcg10, tct"],
    "C38": ["BM25 negatives / costa / r1000, seed", "Static hard negatives / costa / r1000, seed"],
    "C39": ["First iteration / costa / dl-r100, ict", "First iteration / costa / dl-r100, seed"],
}


@pytest.mark.parametrize("name", UNMARKED)
def test_gains_that_a_paper_calls_significant_have_its_marker(lines, name):
    found = [text for text in lines[name]["exceptions"].split("; ") if text]
    assert len(found) == len(UNMARKED[name])
    assert all(part in text for part, text in zip(UNMARKED[name], found, strict=True))


def test_orders_in_recall_and_ndcg_are_alike_in_two_pairs_of_three_only(lines):
    assert lines["C41"]["exceptions"] == "costa/table1 / r1000: tau 0.33; costa/table1 / ndcg10: tau 0.33"


def test_claims_on_the_same_cells_name_each_other(lines):
    assert "C49" in lines["C38"]["shares_cells_with"].split()
    assert "C38" in lines["C49"]["shares_cells_with"].split()
    assert lines["C06"]["shares_cells_with"] == ""


def test_markers_of_significance_are_read_with_what_they_are_about(catalogue):
    """COSTA's table 1: SEED's MRR@10 after BM25's negatives is marked as above BERT's only."""
    marks = printed_claims.printed_marks(PAPERS, catalogue.tables)
    assert marks[Address("costa/table1", "BM25 negatives", "seed", "mrr10")] == {"bert"}
    assert marks[Address("costa/table1", "BM25 negatives", "seed", "dl-r1000")] == {"bert", "ict"}


def test_two_ledgers_are_the_same_bytes(catalogue, ledger, tmp_path):
    printed_claims.write_printed(tmp_path / "again", PAPERS, catalogue)
    assert (tmp_path / "again").read_bytes() == ledger.read_bytes()


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
        ({"kind": "no-winner", "row": "a", "than": "b"}, "holds"),
        ({"kind": "no-winner", "row": "a", "than": "c", "columns": ["x", "y"]}, "fails"),
        ({"kind": "alike", "rows": ["a", "b", "c"], "settings": ["one", "two"], "columns": ["x"]}, "holds"),
        ({"kind": "alike", "rows": ["a", "b", "c"], "settings": ["one", "two"], "tau": 0.9}, "partly"),
        ({"kind": "close", "rows": ["a"], "to": "printed", "within": 0.001}, "runs only"),
        ({"kind": "close", "rows": ["a"], "to": 0.45, "within": 0.06, "columns": ["x"], "settings": ["one"]}, "holds"),
        ({"kind": "close", "rows": ["a"], "to": 0.4, "within": 0.06, "columns": ["x"], "settings": ["one"]}, "partly"),
        ({"kind": "above", "rows": ["a"], "than": ["b"], "columns": ["x"], "significantly": True}, "partly"),
        ({"kind": "above", "rows": ["a"], "than": ["c"], "columns": ["x"], "significantly": True}, "fails"),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else value,
)
def test_each_kind_of_test(test, verdict):
    assert judged(test).verdict == verdict


def test_orders_that_disagree_are_not_alike():
    alike = claim({"kind": "alike", "rows": ["a", "b", "c"], "settings": ["one", "two"], "columns": ["x"]})
    turned = VALUES | {Address("p/t", "two", row, "x"): value for row, value in {"a": 0.1, "b": 0.2, "c": 0.3}.items()}
    assert printed.judge_on_printed(alike.tests, TABLES, turned).verdict == "fails"


def test_what_a_paper_only_states_is_not_judged(catalogue):
    tests = claim({"kind": "stated", "needs": "a scale"}).tests
    assert printed.judge_on_printed(tests, TABLES, VALUES).verdict == "not printed"
    assert printed_claims.chance_on_print(tests, TABLES, catalogue) is None


def test_what_is_not_printed_is_not_judged():
    tests = claim({"kind": "above", "rows": ["a"], "than": ["c"]}).tests
    assert printed.judge_on_printed(tests, TABLES, {}).verdict == "not printed"


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


def rate(test, needed=None):
    (made,) = claim(test).tests
    found = made.contrasts(TABLES)
    splits = {column.id: column.split for column in TABLE.columns}
    required = chance.Required(made.kind, found, needed or len(found))
    return chance.chance_of([required], lambda address: (address.row, address[:3], splits[address.column]))


def test_chance_counts_a_checkpoint_once():
    above = {"kind": "above", "rows": ["a"], "than": ["b", "c"], "settings": ["one"]}
    assert rate({**above, "columns": ["x"]}) == pytest.approx(1 / 3)
    assert rate({**above, "columns": ["x", "y"]}) == pytest.approx(1 / 3)
    assert rate({**above, "columns": ["x", "z"]}) == pytest.approx(1 / 3)
    assert rate({**above, "settings": ["one", "two"]}) == pytest.approx(1 / 3)
    assert rate({"kind": "order", "rows": ["a", "b", "c"], "settings": ["one"], "columns": ["x"]}) == pytest.approx(
        1 / 6
    )
    assert rate({"kind": "above", "settings": ["two"], "than_setting": "one"}) == pytest.approx(1 / 2**3)


def test_chance_of_some_of_many_counts_what_comparisons_share_once():
    """One checkpoint above another is one coin under any number of columns; over two others it is 1/3 and 2/3."""
    above = {"kind": "above", "rows": ["a"], "than": ["b"], "settings": ["one"], "at_least": 2}
    assert rate(above, needed=2) == pytest.approx(1 / 2, abs=0.015)
    above |= {"than": ["b", "c"], "columns": ["x"], "at_least": 1}
    assert rate(above, needed=1) == pytest.approx(2 / 3, abs=0.015)
    assert rate(above, needed=1) == rate(above, needed=1)
    elsewhere = {"kind": "above", "settings": ["two"], "than_setting": "one", "at_least": 2}  # three models apart
    assert rate(elsewhere, needed=6) == pytest.approx(1 / 2, abs=0.015)


def test_simulated_chance_is_the_counted_one(monkeypatch):
    above = {"kind": "above", "rows": ["a"], "than": ["b", "c"], "columns": ["x"]}
    monkeypatch.setattr(chance, "LARGEST", 1)
    assert rate(above) == pytest.approx(1 / 3, abs=0.015)


@pytest.mark.parametrize("systems", [2, 3, 5, 6])
@pytest.mark.parametrize("bound", [-0.5, 0.0, 1 / 3, 0.5, 0.999])
def test_orders_by_their_disagreeing_pairs_are_as_many_as_when_each_is_looked_at(systems, bound):
    straight = range(systems)
    taus = [chance.tau(straight, order) for order in permutations(straight)]
    assert chance._chance_of_tau(systems, bound) == sum(value > bound + 1e-9 for value in taus) / len(taus)


def test_orders_of_many_systems_are_counted():
    """At a tau above 0 half of the orders, but for those at 0: 30 systems have 1e32 orders."""
    assert chance._chance_of_tau(30, 0.0) == pytest.approx(0.5, abs=0.01)


def test_chance_of_gains():
    assert rate({**GAINS, "other_row": "c", "settings": ["one"], "columns": ["x"]}) == pytest.approx(1 / 2, abs=0.015)
    gains = {**GAINS, "settings": ["one"], "columns": ["x"], "other_columns": ["z"]}  # of one pair on other queries
    assert rate(gains) == pytest.approx(1 / 2, abs=0.015)


def test_chance_has_no_say_in_amounts():
    assert rate({"kind": "close", "rows": ["a"], "to": ["b"], "within": 0.1}) is None
    assert rate({"kind": "above", "rows": ["a"], "than": ["b"], "by": 0.1}) is None


def test_chance_of_many_systems_is_counted(catalogue):
    rows = [{"id": str(number), "label": "l", "system": str(number)} for number in range(10)]
    column = {"id": "x", "label": "x", "dataset": "d", "split": "test", "measure": "x"}
    tables = {"p/t": Table.model_validate({"title": "Large", "rows": rows, "columns": [column]})}
    above = claim({"kind": "above", "rows": ["0"], "than": [str(number) for number in range(1, 10)]})
    own = replace(catalogue, tables=tables, systems={})
    assert printed_claims.chance_on_print(above.tests, tables, own) == pytest.approx(1 / 10)


@pytest.fixture(scope="module")
def of_paper(catalogue):
    """The chance of a claim of the papers."""
    claims = read_claims(PAPERS)
    return lambda name: printed_claims.chance_on_print(claims[name][1].tests, catalogue.tables, catalogue)


def test_chance_of_the_papers_claims(of_paper):
    """C06: one of three checkpoints is best, C20: three are in order, whatever they are tested on. C42: six rounds."""
    assert of_paper("C06") == pytest.approx(1 / 3)
    assert of_paper("C20") == pytest.approx(1 / 6)
    assert of_paper("C42") == pytest.approx(1 / 2**6)
    assert of_paper("C41") == pytest.approx(49 / 720)  # a tau above 0.5: at most three of fifteen pairs disagree
    assert of_paper("C10") is None


def test_bm25_is_one_system_whatever_its_parameters(of_paper):
    """C50: seven dense models, all above BM25, which three tables tune."""
    assert of_paper("C50") == pytest.approx(1 / 8)


@pytest.mark.parametrize("name", ["C30", "C35", "C60", "C92", "C100", "C103", "C135"])
def test_claims_of_some_comparisons_have_a_chance(of_paper, name):
    assert 0 < of_paper(name) < 1

"""How often a claim holds if its systems are equally good: counted, drawn, and of the papers' claims."""

from itertools import permutations
from pathlib import Path

import pytest
from scipy.stats import kendalltau

from encore.products.catalogue import load_plan
from encore.products.claims import chance, run_claims
from encore.products.claims.entries import number_tests
from encore.products.claims.plan import claims_plan
from tests.support.small_claims import GAINS, TABLE, TABLES, claim


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
    taus = [kendalltau(straight, order).statistic for order in permutations(straight)]
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


def test_chance_of_many_systems_is_counted():
    others = [str(number) for number in range(1, 10)]
    test = claim({"kind": "above", "rows": ["0"], "than": others, "columns": ["x"]}).tests[0]
    rows = [TABLE.rows[0].model_copy(update={"id": name}) for name in ("0", *others)]
    found = test.contrasts({"p/t": TABLE.model_copy(update={"rows": rows})})
    required = chance.Required("above", found, len(others))
    assert chance.chance_of([required], lambda address: (address.row,)) == pytest.approx(1 / 10)


@pytest.fixture(scope="module")
def of_paper():
    """The chance of a claim of the papers, on a run of all of their tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(__file__).parents[4])
        slice_ = run_claims.ClaimsSlice.model_validate(claims_plan(load_plan(Path("config/paper.yaml"))).dumped())
    origin = run_claims._origin(slice_)

    def rate(name):
        tests = [(test, test.contrasts(slice_.shapes)) for test in number_tests(slice_.claims[name].claim.tests)]
        required = [
            chance.Required(test.kind, found, test.needed(len(found)), getattr(test, "tau", 0.0))
            for test, found in tests
        ]
        return chance.chance_of(required, origin)

    return rate


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


@pytest.mark.parametrize("name", ["C30", "C35", "C60", "C92", "C100", "C103"])
def test_claims_of_some_comparisons_have_a_chance(of_paper, name):
    assert 0 < of_paper(name) < 1

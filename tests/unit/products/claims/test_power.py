"""What difference so many queries could have shown: its formula, against simulation, and where queries are counted."""

import re
from pathlib import Path

import numpy as np
import pytest

from encore.evaluation.significance import paired_t
from encore.products.claims.contrasts import Address, Contrast, above
from encore.products.claims.power import family_of

COSTA = "costa/table1"


def costa_over(row, column, setting="Static hard negatives"):
    return above(Address(COSTA, setting, "costa", column), Address(COSTA, setting, row, column))


def test_families():
    assert family_of("RR@10", "test") == family_of("RR(rel=3)@10", "test") == "RR"
    assert family_of("nDCG@10", "graded") == "nDCG"
    assert (family_of("R@20", "test"), family_of("R(rel=3)@100", "test")) == ("R to 20", "R from 50")
    assert family_of("R(rel=1)@1000", "graded") == "R of many"
    assert family_of("Success@5", "test") is None


@pytest.mark.parametrize(
    ("run", "count"),
    [
        (("msmarco-passage", "test"), 6980),
        (("msmarco-passage-titles", "graded"), 43),
        (("squad-reqa", "test-1"), 96909),
        (("nq-reqa-open", "test-80"), 14819),
        (("beir-robust04", "test"), 249),
        (("wikipedia", "test"), None),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)
def test_queries_are_counted(power, run, count):
    assert power.queries(run) == count


def test_fewer_queries_show_less(power):
    dev, graded = (power.could_show(costa_over("bert", column)) for column in ("mrr10", "ndcg10"))
    levels = 0.366, 0.335
    wanted = (1.959964 + 0.841621) * (0.26 * sum(m * (1 - m) for m in levels) / 6980) ** 0.5
    assert dev == pytest.approx(wanted, rel=1e-6)
    assert graded > 5 * dev


def test_what_queries_of_two_collections_share_does_not_cancel(power):
    table4 = Address("two_tower/table4", "1 % / 99 %", "bm25", "r1")
    apart = power.could_show(above(table4._replace(table="two_tower/table3"), table4))
    paired = power.could_show(above(table4, table4._replace(row="mlp")))
    assert apart > paired
    assert power.could_show(Contrast(((table4, 1),), printed=((table4, -1),))) is None


def test_passages_with_and_without_titles_are_asked_the_same_queries(power):
    """BM25's row is of the plain passages, and its difference to a model is paired as that of two models is."""
    bm25 = Address(COSTA, "Traditional", "bm25", "mrr10")
    found = power.could_show(above(Address(COSTA, "BM25 negatives", "costa", "mrr10"), bm25))
    levels = 0.342, 0.187
    wanted = (1.959964 + 0.841621) * (0.26 * sum(m * (1 - m) for m in levels) / 6980) ** 0.5
    assert found == pytest.approx(wanted, rel=1e-6)


def test_the_stated_power_is_had():
    """Two yes-or-no systems without regard to each other: a share of 1, whose formula is exact."""
    generator = np.random.default_rng(5)
    queries, level = 400, 0.5
    apart = (1.959964 + 0.841621) * (2 * level * (1 - level) / queries) ** 0.5
    shown = 0
    for _ in range(1000):
        higher = generator.random(queries) < level + apart / 2
        lower = generator.random(queries) < level - apart / 2
        shown += paired_t(higher.astype(float) - lower) < 0.05
    assert 0.76 < shown / 1000 < 0.84


def test_the_ledger_says_what_could_have_been_shown(lines):
    assert lines["C39"]["queries"] == "43 5193"
    assert lines["C43"]["queries"] == "6980"
    assert lines["C17"]["queries"] == lines["C17"]["could_show"] == lines["C17"]["exceeding"] == ""  # costs
    assert float(lines["C49"]["could_show"]) > 0.05  # 43 queries
    assert int(lines["C20"]["exceeding"]) == int(lines["C20"]["measurable"]) == 60
    assert 0 < int(lines["C38"]["exceeding"]) < int(lines["C38"]["measurable"])
    assert lines["C10"]["measurable"] == ""  # that nobody wins is no difference


def test_premises_and_copied_rows_are_told(lines):
    assert {name for name, line in lines.items() if line["premise"]} == {
        "C09", "C10", "C11", "C12", "C13", "C14", "C16", "C30", "C33", "C42", "C74"
    }  # fmt: skip
    assert {line["premise"] for line in lines.values()} == {"", "holds"}
    assert "Qu et al. 2020" in lines["C88"]["reported_only"]
    assert lines["C38"]["reported_only"] == lines["C43"]["reported_only"] == ""  # whose rivals run
    page = (Path(__file__).parents[4] / "docs/claims.md").read_text()
    told = re.search(r"Comparisons with such rows, .*? are in (.*?)\.\n", page, re.DOTALL)
    assert re.findall(r"C\d+", told[1]) == [name for name, line in lines.items() if line["reported_only"]]


def test_claims_on_one_run_under_two_names_know_each_other(lines):
    assert "C38" in lines["C01"]["shares_runs_with"].split()  # SEED's MRR@10 stands in both papers' first tables
    assert "C38" not in lines["C01"]["shares_cells_with"].split()
    assert lines["C06"]["shares_runs_with"] == ""

"""docs/columns.md has one line for each column of every CSV file that is written, in the file's order."""

import re
from pathlib import Path

import pytest

from encore.plan import tuning
from encore.products import loss_curves
from encore.products.claims import printed_claims, run_claims
from encore.products.figures import base, forest
from encore.products.figures.kinds import KINDS
from encore.products.tables import reproduction
from encore.products.tables.plan import table_plan
from encore.products.tables.tidy import tidy_frame
from tests.support import small_table

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/columns.md").read_text()
HEADERS = {
    "results/tables/….reproduction.csv": reproduction.HEADER,
    "results/claims_printed.csv": printed_claims.HEADER,
    "results/claims.csv": run_claims.HEADER,
    "config/tuning/….csv": tuning.COLUMNS,
    "results/figures/….csv of a table (forest plot)": forest.HEADER,
    "results/figures/….csv of losses": loss_curves.HEADER,
}
# What each kind of figure shows; all have a section.
SHOWN = {"growth": "curves", "labels": "curves", "coverage": "coverage", "words": "words", "heat": "coloured words"}
SHOWN |= {"map": "a map"}


def described():
    """The columns that each section of the page lists."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.M)[1:]
    return {
        title: re.findall(r"^\| `([^`]+)` \| .+\. \|$", body, re.M)
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_columns_of_each_kind_of_figure_are_described(kind):
    assert described()[f"results/figures/….csv of {SHOWN[kind]}"] == KINDS[kind].header


@pytest.mark.parametrize("section", HEADERS)
def test_the_columns_that_are_written_are_described(section):
    assert described()[section] == list(HEADERS[section])


def test_the_columns_of_a_table_are_described(tmp_path):
    table = small_table.table_of(small_table.plan(tmp_path))
    assert table.comparators
    written = list(tidy_frame(table).columns)
    expected = [
        name.replace("<row>", row)
        for name in described()["results/tables/….csv"]
        for row in (table.comparators if "<row>" in name else [""])
    ]
    assert written == expected


def test_a_line_says_what_was_really_measured_on_what(tmp_path):
    plan = small_table.plan(tmp_path, proxy_data=True, dataset_labels={"pydocs": "docstrings"})
    for row in plan["rows"]:
        for cell in row["cells"].values():
            cell["expression"] = "RR(rel=3)@10"
    lines = tidy_frame(small_table.table_of(plan))
    assert set(lines["expression"]) == {"RR(rel=3)@10"}
    assert set(lines["real_dataset"]) == {"docstrings"}
    assert set(lines["stand_in"]) == {"yes"}


@pytest.mark.usefixtures("at_the_root")
def test_the_plan_gives_each_measure_in_full(make):
    rows = table_plan(make(), "table1")["rows"]
    (bm25,) = (row for row in rows if row["id"] == "bm25")
    assert bm25["cells"]["rr10"]["expression"] == "RR(rel=3)@10"
    assert bm25["cells"]["rr10"]["value"] == "RR@10"


def test_every_module_that_writes_a_csv_file_is_on_the_page():
    writing = re.compile(r"csv_rows import .*write_rows|\.to_csv\(|csv\.DictWriter\(")
    found = {path.stem for path in (ROOT / "src").rglob("*.py") if writing.search(path.read_text())} - {"csv_rows"}
    known = {reproduction, printed_claims, run_claims, tuning, forest, base, loss_curves}
    assert found == {module.__name__.rpartition(".")[2] for module in known} | {"tidy"}

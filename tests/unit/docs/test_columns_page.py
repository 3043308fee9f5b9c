"""docs/columns.md has each column of every CSV file that is written, in the file's order."""

import re
from pathlib import Path

import pytest

from encore.products.figures.kinds import KINDS
from encore.products.tables.plan import table_plan
from encore.products.tables.tidy import COLUMNS, tidy_frame
from tests.support import small_table
from tests.support.results_pages import PROGRAM

ROOT = Path(__file__).parents[3]


def test_the_columns_of_a_table_are_described(tmp_path):
    plan = small_table.plan(tmp_path)
    plan["significance"]["margin"] = 0.05
    table = small_table.table_of(plan)
    assert table.comparators
    written = list(tidy_frame(table).columns)
    expected = [
        name.replace("<row>", row) for name in COLUMNS for row in (table.comparators if "<row>" in name else [""])
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
    rows = table_plan(make(), "table1").dumped()["rows"]
    (bm25,) = (row for row in rows if row["id"] == "bm25")
    assert bm25["cells"]["rr10"]["expression"] == "RR(rel=3)@10"
    assert bm25["cells"]["rr10"]["value"] == "RR@10"


def test_every_module_that_writes_a_csv_file_is_on_the_page():
    writing = re.compile(r"csv_rows import .*write_rows|\.to_csv\(|csv\.DictWriter\(")
    found = {path.stem for path in (ROOT / "src").rglob("*.py") if writing.search(path.read_text())}
    named = {module.__name__.rpartition(".")[2] for module in PROGRAM.WRITTEN}
    drawn = {path.stem for path in (ROOT / "src/encore/products/figures").glob("*.py")} - {"forest", "learning"}
    assert named - drawn == found - {"csv_rows", "base"} | {"tuning"}  # which tools/tune.py writes
    shown = [module.COLUMNS for module in PROGRAM.WRITTEN]
    assert [name for name, kind in KINDS.items() if kind.columns not in shown] == []
    assert [row for row in PROGRAM.described(COLUMNS) if not re.fullmatch(r".+\.", row["what it is"])] == []

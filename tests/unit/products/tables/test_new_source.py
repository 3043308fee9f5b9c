"""A source of values that is registered is in the schema, planned, read and rendered, with nothing else edited."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]

# A separate process, since the entries of tables are made from the sources that are registered when they are imported.
PROGRAM = """
import json, sys
from pathlib import Path

import pytest
from pydantic import Field
from encore.products.tables.sources.base import CountSource
from encore.products.tables.sources.kinds import SOURCES

class Letters(CountSource):
    field = (str | None, Field(None, description="Or: how often a letter is in a collection."))
    needs = ("dataset",)
    files = ("letters.json",)
    name = "letter {value}"

    def reads(self, plan, request):
        return request.reading([(None, plan.collection(request.dataset))])

    def counted(self, folder, name):
        return json.loads((folder / "letters.json").read_text())[name]

    def notes(self, own, grid):
        return [f"{column.label}: as written." for column in own]

SOURCES["letters"] = Letters()

from encore.config.run import RunConfig
from encore.config.validation import checked
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.tables.compute import compute_table
from encore.products.tables.entries import Table
from encore.products.tables.formats import render
from encore.products.tables.layout import Layout
from encore.products.tables.plan import table_plan
import yaml

assert Table.model_json_schema()["$defs"]["ColumnEntry"]["properties"]["letters"]["description"].startswith("Or: how")
column = {"id": "e", "label": "E", "dataset": "msmarco-passage", "letters": "{which}", "vars": {"which": "e"}}
table = {"title": "T", "rows": [{"id": "all", "label": "All"}], "columns": [column]}
catalogue = load_catalogue()
catalogue.tables["t"] = checked(Table, table, "tables.yaml: t")
nano = yaml.safe_load(Path("config/nano.yaml").read_text()) | {"tables": {"t": "all"}}
content = table_plan(Plan(RunConfig.model_validate(nano), catalogue), "t").dumped()
[read] = content["rows"][0]["cells"]["e"]["reads"]
assert read["folder"].startswith("results/collections/")
read["folder"] = sys.argv[1]
layout = Layout.model_validate(content)
assert layout.reads() == {Path(sys.argv[1]): ("letters.json",)}
print(render(compute_table(layout), "md"))
try:
    checked(Table, table | {"columns": [column | {"dataset": ""}]}, "tables.yaml: t")
except Exception as error:
    print(error)
"""


@pytest.mark.slow
def test_a_registered_source_is_known_everywhere(tmp_path: Path) -> None:
    (tmp_path / "letters.json").write_text('{"e": 1234}')
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert "1,234" in found.stdout
    assert "E: as written." in found.stdout
    assert "column 'e' shows `letters`: needs `dataset`" in found.stdout

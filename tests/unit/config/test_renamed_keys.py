"""Keys of older versions: a configuration that still has one is refused in one line, which says the new name."""

from typing import Any

import pytest

from encore.config.run import RunConfig
from encore.config.sources import Remote, SourceEntry
from encore.config.validation import checked
from encore.datasets.beir import BeirFields
from encore.datasets.books import BooksFields
from encore.errors import EncoreError
from encore.products.tables.entries import Table

RUN = {"schema_version": 1, "title": "A run", "seeds": [0], "tables": {}}
ROW = {"id": "ict", "label": "ICT", "system": "tiny+ict"}
COLUMN = {"id": "rr", "label": "RR", "dataset": "d", "split": "test", "measure": "RR"}


def table(row: dict[str, Any], column: dict[str, Any]) -> dict[str, Any]:
    return {"title": "A table", "rows": [ROW | row], "columns": [COLUMN | column]}


@pytest.mark.parametrize(
    ("model", "content", "message"),
    [
        (
            RunConfig,
            RUN | {"proxy_data": True, "growing": {}},
            "x.yaml: growing: is now called `corpus_size`; rename it",
        ),
        (
            RunConfig,
            RUN | {"proxy_data": True, "scale": {"expansions": {}}},
            "x.yaml: scale.expansions: is now called `doc2query`; rename it",
        ),
        (
            BeirFields,
            {"kind": "beir", "path": "d", "splits": {}, "how": "ask"},
            "x.yaml: how: is now called `access`; rename it",
        ),
        (
            BeirFields,
            {"kind": "beir", "path": "d", "splits": {}, "substitute": "a note"},
            "x.yaml: substitute: is now called `note`; rename it",
        ),
        (
            BeirFields,
            {"kind": "beir", "path": "d", "splits": {}, "drop_own": True},
            "x.yaml: drop_own: is now called `ignore_identical_ids`; rename it",
        ),
        (
            BooksFields,
            {"kind": "books", "path": "d", "how": "ask"},
            "x.yaml: how: is now called `access`; rename it",
        ),
        (
            SourceEntry,
            {"licence": "L", "terms": "T", "files": [], "how": "ask"},
            "x.yaml: how: is now called `access`; rename it",
        ),
        (
            Remote,
            {"licence": "L", "terms": "T", "url": "https://a.b/c", "how": "ask"},
            "x.yaml: how: is now called `access`; rename it",
        ),
        (RunConfig, RUN | {"stand_in": True}, "x.yaml: stand_in: is now called `proxy_data`; rename it"),
        (
            RunConfig,
            RUN | {"proxy_data": True, "scale": {"starts": {}}},
            "x.yaml: scale.starts: is now called `replace_prefix`; rename it",
        ),
        (Table, table({"copied": "X"}, {}), "x.yaml: rows.0.copied: is now called `reported_only`; rename it"),
        (Table, table({"empty": {}}, {}), "x.yaml: rows.0.empty: is now called `not_applicable`; rename it"),
        (Table, table({"fill": {}}, {}), "x.yaml: rows.0.fill: is now called `vars`; rename it"),
        (Table, table({}, {"fill": {}}), "x.yaml: columns.0.fill: is now called `vars`; rename it"),
        (
            Table,
            table({}, {"reported_times": 2}),
            "x.yaml: columns.0.reported_times: is now called `reported_scale`; rename it",
        ),
    ],
)
def test_a_key_of_an_older_version_is_refused_with_its_new_name(model, content, message):
    with pytest.raises(EncoreError) as refused:
        checked(model, content, "x.yaml")
    assert str(refused.value) == message


def test_a_misspelt_key_within_a_list_is_answered_with_the_nearest_one():
    with pytest.raises(EncoreError, match=r"x\.yaml: rows\.0\.lable: unknown key; did you mean label"):
        checked(Table, table({"lable": "x"}, {}), "x.yaml")

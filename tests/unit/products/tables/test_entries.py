"""What an entry of tables.yaml may say: sources of columns, names that are filled, copied rows, empty cells."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from encore.config.validation import checked
from encore.errors import EncoreError
from encore.products.tables.entries import ColumnEntry, Table, fill_vars
from encore.products.tables.sources.kinds import SOURCES

RR = {"id": "rr", "label": "RR@10", "dataset": "d", "split": "test", "measure": "RR@10"}
ICT = {"id": "ict", "label": "ICT", "system": "tiny+ict"}


def table(rows: list[dict[str, Any]], columns: list[dict[str, Any]], **fields: Any) -> Table:
    return checked(Table, {"title": "T", "rows": rows, "columns": columns, **fields}, "tables.yaml: t")


def refused(rows: list[dict[str, Any]], columns: list[dict[str, Any]], **fields: Any) -> str:
    with pytest.raises(EncoreError) as refusal:
        table(rows, columns, **fields)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_a_name_is_filled_from_the_row_before_the_column() -> None:
    column = RR | {"split": "test-{share}", "vars": {"share": 80, "rate": 0.1}}
    rows = [
        {"id": "a", "label": "A", "system": "tiny+reqa-{share}~learning_rate={rate}"},
        {"id": "b", "label": "B", "system": "tiny~rate={rate}", "vars": {"share": "1-s2", "rate": 5e-06}},
        {"id": "c", "label": "C", "system": "tiny~rate={rate_{share}}", "vars": {"rate_80": 0.3}},
    ]
    made = table(rows, [column])
    found = [
        (fill_vars(row.system, row, made.columns[0]), fill_vars("test-{share}", row, made.columns[0]))
        for row in made.rows
    ]
    assert found == [
        ("tiny+reqa-80~learning_rate=0.1", "test-80"),
        ("tiny~rate=5e-6", "test-1-s2"),
        ("tiny~rate=0.3", "test-80"),
    ]


def test_the_datasets_of_a_table_are_those_of_its_filled_cells() -> None:
    rows = [
        ICT | {"vars": {"set": "nq"}},
        ICT | {"id": "b", "vars": {"set": "squad"}, "not_applicable": {"rr": "too few"}},
    ]
    made = table(
        rows, [RR | {"dataset": "{set}-reqa"}, {"id": "n", "label": "n", "dataset": "all", "statistic": "passages"}]
    )
    assert made.datasets() == {"nq-reqa", "all"}


@pytest.mark.parametrize(
    ("row", "column", "says"),
    [
        ({"system": "tiny+{recipe}"}, {}, "row 'ict', column 'rr': nothing fills {recipe}; add it to `vars` of one"),
        ({"setting": "S", "system": "{recipe}"}, {}, "row 'ict' of 'S', column 'rr': nothing fills {recipe}"),
        ({}, {"split": "test-{share}"}, "nothing fills {share}"),
        ({}, {"vars": {"share": 80}}, "column 'rr', vars: no cell takes {share} from it; leave it out"),
        ({"vars": {"share": 80}}, {}, "row 'ict', vars: no cell has {share}; leave it out"),
        (
            {"vars": {"share": 1}},
            {"split": "test-{share}", "vars": {"share": 80}},
            "column 'rr', vars: no cell takes {share} from it",
        ),
        ({"reported_setting": "ft={recipe}"}, {}, "nothing fills {recipe}"),
        ({"system": "tiny~rate={rate_{share}}"}, {"vars": {"share": 80}}, "nothing fills {rate_80}"),
        (
            {"system": "{a}", "vars": {"a": "{b}", "b": "{a}"}},
            {},
            "is filled with itself; let its `vars` be another text",
        ),
    ],
)
def test_a_name_that_nothing_fills_or_that_fills_nothing_is_one_line(
    row: dict[str, Any], column: dict[str, Any], says: str
) -> None:
    assert says in refused([ICT | row], [RR | column])


def test_the_papers_names_for_a_cell_are_filled_too() -> None:
    row = ICT | {"reported_setting": "varied={stage}"}
    assert table([row], [RR | {"vars": {"stage": "pretraining"}}]).rows[0].reported_setting == "varied={stage}"


def test_a_copied_row_needs_no_filling_of_what_is_never_run() -> None:
    copied = {"id": "ance", "label": "ANCE", "reported_only": "Xiong et al. 2021"}
    column = RR | {"dataset": "{set}", "reported_dataset": "dev"}
    made = table([copied, ICT | {"vars": {"set": "d"}}], [column], reported="t.csv")
    assert made.datasets() == {"d"}


@pytest.mark.parametrize(
    ("row", "fields", "says"),
    [
        ({"id": "a", "label": "A"}, {}, "row 'a' has no `system`, which column 'rr' needs; add it, or `reported_only`"),
        ({"id": "a", "label": "A", "reported_only": "X"}, {}, "is copied, and the table names no printed numbers"),
        (ICT | {"reported_only": "X"}, {"reported": "t.csv"}, "is never run: leave out `system`"),
        (ICT | {"not_applicable": {"rr10": "no"}}, {}, "row 'ict', not_applicable: the table has no column 'rr10'"),
    ],
)
def test_a_row_is_run_or_copied(row: dict[str, Any], fields: dict[str, Any], says: str) -> None:
    assert says in refused([row], [RR], **fields)


def test_a_row_of_statistics_needs_no_system() -> None:
    column = {"id": "n", "label": "Passages", "dataset": "{set}", "statistic": "passages"}
    assert table([{"id": "a", "label": "A", "vars": {"set": "nq"}}], [column]).datasets() == {"nq"}


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"measure": "RR@10", "dataset": "d", "split": "test"}, "measure"),
        ({"efficiency": "size", "dataset": "d", "split": "test"}, "efficiency"),
        ({"held_out": "mlm"}, "held_out"),
        ({"statistic": "passages", "dataset": "d"}, "statistic"),
        ({"mean_of": ["a", "b"]}, "mean_of"),
    ],
)
def test_a_column_has_one_source_and_says_what_that_needs_and_no_more(fields: dict[str, Any], source: str) -> None:
    assert ColumnEntry.model_validate({"id": "x", "label": "x", **fields}).source == source
    for field in ("dataset", "split"):
        changed = fields | {field: ""} if fields.get(field) else fields | {field: "y"}
        with pytest.raises(ValidationError, match=f"`{source}`: .*`{field}`"):
            ColumnEntry.model_validate({"id": "x", "label": "x", **changed})


def mean(name: str, *parts: str) -> dict[str, Any]:
    return {"id": name, "label": name, "mean_of": list(parts)}


def gain(of: str, over: str) -> dict[str, Any]:
    return {"id": "g", "label": "g", "gain": {"of": of, "over": over}}


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ([RR, mean("m", "rr", "ndcg")], "'ndcg' is not a column of measures"),
        ([RR, {"id": "l", "label": "l", "held_out": "mlm"}, mean("m", "l")], "'l' is not a column of measures"),
        ([RR, mean("m", "n"), mean("n", "m")], "column 'm' is a mean of itself"),
        ([RR, mean("a", "b"), mean("b", "rr", "c"), mean("c", "b")], "column 'b' is a mean of itself"),
        ([RR, gain("n", "ict")], "column 'g', gain: 'n' is not a column of measures or of their mean"),
        ([RR, gain("rr", "itc")], "column 'g', gain: the table has no row 'itc'"),
        ([RR, RR], "column 'rr' occurs twice"),
        ([RR | {"hidden": True, "primary": True}], "cannot be primary"),
        ([RR, mean("m", "rr") | {"primary": True}], "cannot be primary"),
    ],
)
def test_wrong_columns_are_one_line(columns: list[dict[str, Any]], says: str) -> None:
    assert says in refused([ICT], columns)


def test_a_mean_may_be_of_means() -> None:
    assert len(table([ICT], [RR, mean("beir", "forums", "rr"), mean("forums", "rr")]).columns) == 3


def test_the_example_of_the_documentation_is_one() -> None:
    page = (Path(__file__).parents[4] / "config/README.md").read_text()
    block = re.search(r"```yaml\n(example:.*?)```", page, re.DOTALL)
    assert block
    example = checked(Table, yaml.safe_load(block[1])["example"], "config/README.md")
    assert {column.source for column in example.columns} == set(SOURCES)
    for source in SOURCES:
        assert f"| `{source}` |" in page


def test_a_comparator_is_a_row_of_the_table() -> None:
    says = refused([ICT], [RR], significance={"comparators": ["itc"]})
    assert says.endswith("significance, comparators: the table has no row 'itc'; did you mean ict?")

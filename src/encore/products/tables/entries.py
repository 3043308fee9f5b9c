"""The entries of ``papers/<paper>/tables.yaml``: rows, columns, and the variables of their placeholders.

A column has one source of values, one of ``sources/kinds.py``, by its field. A row has a system, or is copied from what
another paper printed. ``{name}`` in a system, a dataset, a split or a reported name is filled for each cell, from
``vars:`` of its row and, where that does not say it, of its column.
"""

import re
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictFloat, StrictInt, StrictStr, create_model, model_validator

from encore.config.validation import Strict, nearest
from encore.plan.lineage import spelled
from encore.products.tables.grid import ColumnFields, RowFields, Significance
from encore.products.tables.sources.kinds import SOURCES, TESTED

Variables = dict[str, Annotated[StrictInt | StrictFloat | StrictStr, AfterValidator(spelled)]]
_NAME = re.compile(r"{(\w*)}")


class RowEntry(RowFields, Strict):
    """A row of a table: a system under a setting. Its id is unique in its setting."""

    vars: Variables = Field(
        {}, description="Values of the placeholders in the row's cells; they override the column's."
    )
    not_applicable: dict[str, str] = Field(
        {}, description="Columns that do not apply to the row, by id, with the reason."
    )
    reported_label: str | None = Field(
        None, description="The row's label in the file of printed numbers, if it differs."
    )
    reported_setting: str | None = Field(
        None, description="The row's setting in the file of printed numbers, if it differs."
    )

    @property
    def names(self) -> set[str]:
        """The names that a run may use for it: its id, alone or after its setting."""
        return {self.id, f"{self.setting}: {self.id}"}

    @model_validator(mode="after")
    def _run_or_copy(self) -> "RowEntry":
        if self.reported_only and (self.system or self.not_applicable or self.role != "baseline"):
            raise ValueError(
                f"row {self.id!r} is copied, so it is never run: leave out `system`, `not_applicable` and `role`"
            )
        return self


class _Shown(ColumnFields, Strict):
    dataset: str = ""
    split: str = ""


if TYPE_CHECKING:  # whose fields differ with what is registered

    class _Sourced(_Shown):
        measure: str
        printed: bool

else:
    _fields: dict[str, Any] = {name: source.field for name, source in SOURCES.items()}
    _Sourced = create_model("_Sourced", __base__=_Shown, **_fields)


class ColumnEntry(_Sourced):
    """A column of a table: its printed name and the source of its values."""

    vars: Variables = Field({}, description="Values of the placeholders in the column's cells, where the row has none.")
    reported_dataset: str | None = Field(
        None, description="The dataset's name in the file of printed numbers, if it differs."
    )
    reported_metric: str | None = Field(
        None, description="The measure's name in the file of printed numbers, if it differs."
    )
    reported_scale: float = Field(
        1, description="The factor from the printed number to our unit, such as 1024 from GiB to MiB."
    )

    @property
    def source(self) -> str:
        """Where its values come from: a key of ``SOURCES``."""
        return next(source for source in SOURCES if getattr(self, source))

    @model_validator(mode="after")
    def _show_one_thing(self) -> "ColumnEntry":
        named = [source for source in SOURCES if getattr(self, source)]
        if len(named) != 1:
            known = ", ".join(f"`{source}`" for source in SOURCES)
            raise ValueError(f"column {self.id!r} needs one source of its values, and only one: {known}")
        for field in ("dataset", "split"):
            if bool(getattr(self, field)) != (field in SOURCES[self.source].needs):
                fix = "leave out" if getattr(self, field) else "needs"
                raise ValueError(f"column {self.id!r} shows `{self.source}`: {fix} `{field}`")
        if self.primary and (self.source != TESTED or self.hidden):
            raise ValueError(f"column {self.id!r} is not both tested and shown; it cannot be primary")
        return self


class Table(Strict):
    """A grid of systems by measures. An entry of ``papers/<paper>/tables.yaml``."""

    title: str
    reported: str | None = Field(
        None, description="The file of the paper's printed numbers, relative to the paper's folder in config/papers."
    )
    unit: Literal["share", "percent"] = Field(
        "share", description="The unit in which the paper prints measures and the table shows them."
    )
    rows: list[RowEntry]
    columns: list[ColumnEntry]
    significance: Significance | None = None
    notes: list[str] = []

    def datasets(self) -> set[str]:
        """Every dataset that a cell names."""
        cells = ((row, column) for row in self.rows for column in self.columns if has_own_value(row, column))
        return {fill_vars(column.dataset, row, column) for row, column in cells if column.dataset}

    @model_validator(mode="after")
    def _name_each_row_and_column_once(self) -> "Table":
        seen: set[tuple[str, str]] = set()
        for row in self.rows:
            if (row.setting, row.id) in seen:
                raise ValueError(f"row {row.id!r} occurs twice under {row.setting!r}")
            seen.add((row.setting, row.id))
        ids = [column.id for column in self.columns]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"column {name!r} occurs twice")
        return self

    @model_validator(mode="after")
    def _test_one_measure_of_a_split(self) -> "Table":
        """A split has one primary measure; several would be more tests than are corrected for."""
        primary: dict[tuple[str, str], str] = {}
        for column in (column for column in self.columns if column.primary):
            first = primary.setdefault((column.dataset, column.split), column.id)
            if first != column.id:
                raise ValueError(
                    f"columns {first!r} and {column.id!r} are both primary for {column.dataset}, {column.split}; let "
                    "one of them be"
                )
        return self

    @model_validator(mode="after")
    def _compare_with_rows(self) -> "Table":
        known = {row.id for row in self.rows}
        for name in self.significance.comparators if self.significance else ():
            if name not in known:
                raise ValueError(f"significance, comparators: the table has no row {name!r}{nearest(name, known)}")
        return self

    @model_validator(mode="after")
    def _compute_from_columns_of_measures(self) -> "Table":
        averaged = {column.id for column in self.columns if SOURCES[column.source].averaged}
        for column in self.columns:
            for part in [column.gain.of] if column.gain else column.mean_of:
                if part not in averaged:
                    raise ValueError(
                        f"column {column.id!r}, {column.source}: {part!r} is not a column of measures or of their mean"
                    )
            if column.gain and column.gain.over not in {row.id for row in self.rows}:
                raise ValueError(f"column {column.id!r}, gain: the table has no row {column.gain.over!r}")
        try:
            TopologicalSorter({column.id: column.mean_of for column in self.columns}).prepare()
        except CycleError as error:
            raise ValueError(f"column {error.args[1][0]!r} is a mean of itself") from error
        return self

    @model_validator(mode="after")
    def _give_each_cell_what_it_needs(self) -> "Table":
        ids = {column.id for column in self.columns}
        for row in self.rows:
            if row.reported_only and self.reported is None:
                raise ValueError(f"row {row.id!r} is copied, and the table names no printed numbers: add `reported`")
            if unknown := row.not_applicable.keys() - ids:
                raise ValueError(f"row {row.id!r}, not_applicable: the table has no column {min(unknown)!r}")
            for column in self.columns:
                if has_own_value(row, column) and "system" in SOURCES[column.source].needs and not row.system:
                    raise ValueError(
                        f"row {row.id!r} has no `system`, which column {column.id!r} needs; add it, or "
                        "`reported_only`, or the reason under `not_applicable`"
                    )
        return self

    @model_validator(mode="after")
    def _fill_each_name(self) -> "Table":
        taken = {(row.setting, row.id, column.id): _names(row, column) for row in self.rows for column in self.columns}
        for row in self.rows:
            for column in self.columns:
                place = f"row {row.id!r}{f' of {row.setting!r}' if row.setting else ''}, column {column.id!r}"
                if missing := taken[row.setting, row.id, column.id] - row.vars.keys() - column.vars.keys():
                    raise ValueError(f"{place}: nothing fills {{{min(missing)}}}; add it to `vars` of one of them")
            used = set().union(*(taken[row.setting, row.id, column.id] for column in self.columns))
            if idle := row.vars.keys() - used:
                raise ValueError(f"row {row.id!r}, vars: no cell has {{{min(idle)}}}; leave it out")
        for column in self.columns:
            used = set().union(*(taken[row.setting, row.id, column.id] - row.vars.keys() for row in self.rows))
            if idle := column.vars.keys() - used:
                raise ValueError(f"column {column.id!r}, vars: no cell takes {{{min(idle)}}} from it; leave it out")
        return self


def has_own_value(row: RowEntry, column: ColumnEntry) -> bool:
    """True if a cell has a value of ours."""
    return not row.reported_only and column.id not in row.not_applicable


def fill_vars(text: str, row: RowEntry, column: ColumnEntry) -> str:
    """A text of a cell with its placeholders filled, and those within their values.

    A placeholder without a value stays; no cell that is run has one.
    """
    values = {**column.vars, **row.vars}
    while (after := _NAME.sub(lambda name: str(values.get(name[1], name[0])), text)) != text:
        text = after
    return text


def printed_as(row: RowEntry, column: ColumnEntry) -> dict[str, str]:
    """The entries that identify a cell's number in the file of printed ones, by column of that file."""
    wanted = {
        "row_label": row.reported_label or row.label,
        "dataset": column.reported_dataset or column.dataset,
        "metric": column.reported_metric or column.label,
    }
    wanted |= {} if row.reported_setting is None else {"setting": row.reported_setting}
    return {key: fill_vars(text, row, column) for key, text in wanted.items()}


def _names(row: RowEntry, column: ColumnEntry) -> set[str]:
    """The placeholders in a cell's texts: in what it runs, and in what the paper calls it."""
    texts: list[str | None] = [row.reported_label, row.reported_setting, column.reported_metric]
    texts.append(column.reported_dataset or column.dataset)
    if has_own_value(row, column):
        needs = SOURCES[column.source].needs
        texts += [row.system if "system" in needs else None, column.dataset, column.split]
        source = getattr(column, column.source)
        texts += [source] if isinstance(source, str) else []
    return _within(texts, {**column.vars, **row.vars})


def _within(texts: Iterable[str | None], values: Variables) -> set[str]:
    """The placeholders in some texts, those within their values, and those that these name: ``{rate_{share}}``."""
    found: set[str] = set()
    for text in filter(None, texts):
        for _ in range(len(values) + 1):
            found |= {*(names := _NAME.findall(text))}
            text = _NAME.sub(lambda name: str(values.get(name[1], name[0])), text)
        if known := [name for name in names if name in values]:
            raise ValueError(f"{{{known[0]}}} is filled with itself; let its `vars` be another text")
    return found

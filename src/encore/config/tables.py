"""What an entry of ``papers/<paper>/tables.yaml`` may say: rows, columns, and what fills the names between them.

A column has one source of values: a measure, or one of the fields of ``SOURCES``. A row has a system, or is copied from
what another paper printed. ``{name}`` in a system, a dataset, a split or a reported name is filled for each cell, from
``vars:`` of its row and, where that does not say it, of its column.
"""

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator

from encore.config.lineage import spelled
from encore.config.run import Strict

Variables = dict[str, StrictInt | StrictFloat | StrictStr]
Need = Literal["system", "dataset", "split"]

# Where a column's values come from, and what of a cell that needs.
SOURCES: dict[str, tuple[Need, ...]] = {
    "measure": ("system", "dataset", "split"),
    "efficiency": ("system", "dataset", "split"),
    "held_out": ("system",),
    "masked_loss": ("system", "dataset"),
    "pairs": ("system",),
    "recorded": (),
    "statistic": ("dataset",),
    "tokens": ("system", "dataset"),
    "mean_of": (),
    "gain": (),
    "printed": (),
}
TESTED = "measure"  # the source whose values are queries', so that differences can be tested
_NAME = re.compile(r"{(\w*)}")


class RowEntry(Strict):
    """A row of a table: a system under a setting. Its id is unique in its setting."""

    renamed: ClassVar[dict[str, str]] = {"copied": "reported_only", "empty": "not_applicable", "fill": "vars"}

    id: str
    label: str
    setting: str = ""
    system: str = Field("", description="an entry of systems.yaml, or a lineage")
    reported_only: str = Field("", description="instead of a system: whose printed numbers are shown; nothing is run")
    vars: Variables = Field({}, description="what names in its cells stand for; before the column's")
    not_applicable: dict[str, str] = Field({}, description="columns that the row cannot have, by id, with the reason")
    reported_label: str | None = Field(None, description="its label among the printed numbers, if another")
    reported_setting: str | None = Field(None, description="its setting there, if another")
    role: Literal["baseline", "none", "control", "objective"] = "baseline"

    @model_validator(mode="after")
    def _run_or_copy(self) -> "RowEntry":
        if self.reported_only and (self.system or self.not_applicable or self.role != "baseline"):
            raise ValueError(
                f"row {self.id!r} is copied, so it is never run: leave out `system`, `not_applicable` and `role`"
            )
        return self


class GainEntry(Strict):
    """What a row has more than another one of its setting, under a column."""

    of: str = Field(description="the column, by id")
    over: str = Field(description="the other row, by id")


class ColumnEntry(Strict):
    """A column of a table: what stands in it, by its printed name, and where that comes from."""

    renamed: ClassVar[dict[str, str]] = {"fill": "vars", "reported_times": "reported_scale"}

    id: str
    label: str
    dataset: str = ""
    split: str = ""
    measure: str = Field("", description="a measure of the split, by its printed name")
    efficiency: str | None = Field(
        None,
        pattern=r"^(latency(\.(encoder|search|fusion|rerank|\{\w+\}))?|size)$",
        description="instead of a measure: milliseconds a query of the split takes, in all or in one stage "
        "(`latency.search`), or MiB of the index",
    )
    held_out: str | None = Field(
        None, description="instead: this term of the last pre-training step's loss on held-out texts, at its end"
    )
    masked_loss: str | None = Field(
        None,
        description="instead: the loss of MLM on the dataset's passages, masked for all models as this step masks",
    )
    pairs: Literal["pairs", "tokens", "query_tokens", "document_tokens"] | None = Field(
        None, description="instead: of an epoch of the last pre-training step, which learns from pairs of texts"
    )
    recorded: str | None = Field(
        None,
        pattern=r"^[^/]+(/[^/]+)+$",
        description="instead: a number of a record of the run, `<record>/<key>/...`; an entry of a list by its name",
    )
    statistic: str | None = Field(
        None, description="instead: a number of the dataset's statistics.json, with a full stop between keys"
    )
    tokens: Literal["passages", "queries"] | None = Field(
        None, description="instead: the mean length of the dataset's texts in word pieces of the system's vocabulary"
    )
    mean_of: list[str] = Field([], description="instead: the mean of other columns, by id, for each seed")
    gain: GainEntry | None = Field(None, description="instead: how much more a row has under a column than another row")
    printed: bool = Field(False, description="instead: only what the paper prints, since nothing here measures it")
    vars: Variables = Field({}, description="what names in its cells stand for, where the row does not say it")
    hidden: bool = Field(False, description="only in the CSV: it is there for a mean")
    reported_dataset: str | None = Field(None, description="the dataset's name among the printed numbers, if another")
    reported_metric: str | None = Field(None, description="the measure's name there, if another")
    reported_scale: float = Field(1, description="what brings a printed number to our unit: 1024 from GiB to MiB")
    primary: bool = False

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
            if bool(getattr(self, field)) != (field in SOURCES[self.source]):
                fix = "leave out" if getattr(self, field) else "needs"
                raise ValueError(f"column {self.id!r} shows `{self.source}`: {fix} `{field}`")
        if self.primary and (self.source != TESTED or self.hidden):
            raise ValueError(f"column {self.id!r} is nothing that is tested and shown; it cannot be primary")
        return self


class Significance(Strict):
    """Which rows of the same setting a row is compared with."""

    comparators: list[str]
    family: Literal["holm"] = "holm"
    printed: dict[str, str | list[str]] = Field(
        {}, description="the paper's own markers, and which comparator each is about, or the best of which"
    )

    @model_validator(mode="after")
    def _mark_comparators(self) -> "Significance":
        for symbol, rows in self.printed.items():
            for row in [rows] if isinstance(rows, str) else rows:
                if row not in self.comparators or len(symbol) != 1:
                    raise ValueError(f"printed: {symbol!r} is not one character for one of the comparators, {row!r}")
        return self


class Table(Strict):
    """A grid of systems by measures. An entry of ``papers/<paper>/tables.yaml``."""

    title: str
    reported: str | None = Field(None, description="the paper's printed numbers, a file of its folder in config/papers")
    unit: Literal["share", "percent"] = Field("share", description="how the paper prints measures, and we show them")
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
                raise ValueError(f"row {row.id!r} stands twice under {row.setting!r}")
            seen.add((row.setting, row.id))
        ids = [column.id for column in self.columns]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"column {name!r} stands twice")
        return self

    @model_validator(mode="after")
    def _compare_with_rows(self) -> "Table":
        known = {row.id for row in self.rows}
        for name in self.significance.comparators if self.significance else ():
            if name not in known:
                raise ValueError(f"significance, comparators: the table has no row {name!r}")
        return self

    @model_validator(mode="after")
    def _take_means_of_what_has_one(self) -> "Table":
        known = {column.id: column for column in self.columns}
        for column in self.columns:
            for part in column.mean_of:
                if part not in known or known[part].source not in (TESTED, "mean_of"):
                    raise ValueError(f"column {column.id!r}, mean_of: {part!r} is no column of measures or their mean")
            if column.id in _behind(column, known):
                raise ValueError(f"column {column.id!r} is a mean of itself")
        return self

    @model_validator(mode="after")
    def _know_what_gains_are_over(self) -> "Table":
        for column in (column for column in self.columns if column.gain):
            assert column.gain is not None
            own = next((other for other in self.columns if other.id == column.gain.of), None)
            if own is None or own.source not in (TESTED, "mean_of"):
                raise ValueError(
                    f"column {column.id!r}, gain: {column.gain.of!r} is no column of measures or their mean"
                )
            if column.gain.over not in {row.id for row in self.rows}:
                raise ValueError(f"column {column.id!r}, gain: the table has no row {column.gain.over!r}")
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
                if has_own_value(row, column) and "system" in SOURCES[column.source] and not row.system:
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
    """Whether a cell has a value of our own."""
    return not row.reported_only and column.id not in row.not_applicable


def fill_vars(text: str, row: RowEntry, column: ColumnEntry) -> str:
    """A text of a cell with its names filled, and the names in what fills them.

    One that nothing fills stays, which no cell has that is run.
    """
    values = {**column.vars, **row.vars}
    while (after := _NAME.sub(lambda name: spelled(values[name[1]]) if name[1] in values else name[0], text)) != text:
        text = after
    return text


def printed_as(row: RowEntry, column: ColumnEntry) -> dict[str, str]:
    """What tells a cell's number from others in the file of printed ones, by column of that file."""
    wanted = {
        "row_label": row.reported_label or row.label,
        "dataset": column.reported_dataset or column.dataset,
        "metric": column.reported_metric or column.label,
    }
    wanted |= {} if row.reported_setting is None else {"setting": row.reported_setting}
    return {key: fill_vars(text, row, column) for key, text in wanted.items()}


def _names(row: RowEntry, column: ColumnEntry) -> set[str]:
    """The names that a cell's texts hold: of what it runs, and of what the paper calls it."""
    texts: list[str | None] = [row.reported_label, row.reported_setting, column.reported_metric]
    texts.append(column.reported_dataset or column.dataset)
    if has_own_value(row, column):
        needs = SOURCES[column.source]
        texts += [row.system if "system" in needs else None, column.dataset, column.split]
        source = getattr(column, column.source)
        texts += [source] if isinstance(source, str) else []
    return _within(texts, {**column.vars, **row.vars})


def _within(texts: Iterable[str | None], values: Variables) -> set[str]:
    """The names in some texts, and those in what fills them.

    Raises:
        ValueError: a name is filled with itself.
    """
    found: set[str] = set()
    waiting: dict[str, tuple[str, ...]] = {name: (name,) for text in texts if text for name in _NAME.findall(text)}
    while waiting:
        name, path = waiting.popitem()
        found.add(name)
        for inner in _NAME.findall(str(values.get(name, ""))):
            if inner in path:
                raise ValueError(f"{{{inner}}} is filled with itself; let its `vars` be another text")
            waiting[inner] = (*path, inner)
    return found


def _behind(column: ColumnEntry, known: dict[str, ColumnEntry]) -> set[str]:
    """Every column that a column is a mean of, itself if there is a circle."""
    found: set[str] = set()
    waiting: Iterable[str] = column.mean_of
    while waiting := [part for part in waiting if part not in found]:
        found.update(waiting)
        waiting = [part for name in waiting if name in known for part in known[name].mean_of]
    return found

"""What is tried: for each row of a table, values of one field of one of its steps. An entry of ``config/tuning/``.

A row tunes its own step. For a step that rows share, the recipe, one value is chosen for all of them
together. A grid may instead name lineages, each of which is tuned separately, also in several fields
together.
"""

from itertools import product
from pathlib import Path

from pydantic import Field, model_validator

from encore.config import lineage as naming
from encore.config.strict import Strict
from encore.config.validation import checked, nearest, read_yaml
from encore.errors import EncoreError
from encore.plan.plan import Plan

Settings = dict[str, float]  # values of a step's fields


class Tuned(Strict):
    """The values that a step's field is tried with, in ascending order; of equally good ones the first is chosen."""

    step: str
    field: str = "learning_rate"
    values: list[float] = Field(min_length=2)
    crossed: dict[str, list[float]] = Field({}, description="further fields: every combination of values is tried")

    @model_validator(mode="after")
    def _name_each_value_once(self) -> "Tuned":
        if self.field in self.crossed:
            raise ValueError(f"{self.field!r} is crossed with itself; leave it out there")
        if any(not values or values != sorted(set(values)) for values in self.fields.values()):
            raise ValueError("values must be different and in ascending order")
        return self

    @property
    def fields(self) -> dict[str, list[float]]:
        """The values of every field, in the order of the fields' names."""
        return dict(sorted({self.field: self.values, **self.crossed}.items()))

    def settings(self) -> list[Settings]:
        """Everything that is tried, in the order of the values."""
        return [dict(zip(self.fields, values, strict=True)) for values in product(*self.fields.values())]


class TuningGrid(Strict):
    """The trials of every row of one setting of a table, and what they are compared by."""

    table: str | None = Field(None, description="whose rows are tuned")
    setting: str = Field("", description="rows of other settings start from these and inherit what is chosen for them")
    lineages: dict[str, str] = Field({}, description="what is tuned instead of a table's rows, by name")
    dataset: str
    split: str = Field(description="of role `valid`; any other is refused")
    measure: str
    seed: int = Field(0, ge=0)
    rows: dict[str, Tuned] = Field(min_length=1, description="by the row's id")
    recipe: str | None = Field(
        None,
        description="the row whose step other rows share: its values are tried with each row's best one, and the one "
        "that is best in the mean over all these rows is taken for all",
    )
    most: int | None = Field(
        None, description="the most values of a row: while a best one is at an edge, every row gets two more"
    )
    after: Path | None = Field(None, description="a grid whose rows were chosen before and are not tried again")

    @model_validator(mode="after")
    def _treat_rows_alike(self) -> "TuningGrid":
        if len({len(tuned.settings()) for tuned in self.rows.values()}) > 1:
            raise ValueError("every row must have equally many values")
        keys = [(tuned.step, field) for tuned in self.rows.values() for field in tuned.fields]
        if self.table and len(set(keys)) < len(keys):
            raise ValueError("two rows choose the same field of the same step; give one of them its own step")
        return self

    @model_validator(mode="after")
    def _know_what_is_tuned(self) -> "TuningGrid":
        if bool(self.table) == bool(self.lineages):
            raise ValueError("a grid is of a `table` and its `setting`, or of `lineages`; give one of them")
        if self.recipe is not None and self.recipe not in self.rows:
            raise ValueError(f"recipe: {self.recipe!r} is none of the rows")
        if any(tuned.crossed for tuned in self.rows.values()) and (self.most or self.recipe):
            raise ValueError("a row with `crossed` fields has no edge to go beyond; leave out `most` and `recipe`")
        return self


def read_grid(path: Path) -> TuningGrid:
    """A grid from its file."""
    return checked(TuningGrid, read_yaml(path), str(path))


def systems(grid: TuningGrid, plan: Plan) -> dict[str, str]:
    """The lineage of every row that has trials, in the table's order."""
    rows, place = dict(grid.lineages), "lineages"
    if grid.table:
        rows, place = _rows_of(grid.table, grid, plan), f"table {grid.table!r}, setting {grid.setting!r}"
    for name in grid.rows.keys() ^ rows.keys():
        reason = "has no trials; give it some" if name in rows else f"is not a trained row of it{nearest(name, rows)}"
        raise EncoreError(f"{place}: row {name!r} {reason}")
    for name, lineage in rows.items():
        if grid.rows[name].step not in (steps := steps_of(lineage)):
            raise EncoreError(f"row {name!r} takes no step {grid.rows[name].step!r}; its steps are {', '.join(steps)}")
    _refuse_sharing(grid, rows)
    return rows


def steps_of(lineage: str) -> list[str]:
    """The names of a lineage's steps."""
    return [step.name for step in naming.parse(lineage).steps]


def _refuse_sharing(grid: TuningGrid, rows: dict[str, str]) -> None:
    """Refuse a row that takes a step which another row chooses for, unless that is the recipe."""
    owners = {tuned.step: name for name, tuned in grid.rows.items() if name != grid.recipe} if grid.table else {}
    for name, lineage in rows.items():
        for step in steps_of(lineage):
            if owners.get(step, name) != name:
                raise EncoreError(
                    f"row {name!r} takes step {step!r}, which row {owners[step]!r} chooses for; "
                    "make that row the grid's `recipe`"
                )


def _rows_of(table: str, grid: TuningGrid, plan: Plan) -> dict[str, str]:
    """The lineages of a table's trained rows that no earlier grid chose for.

    Rows without trials that start from another row's model inherit what that one chooses, or wait for a later grid.
    """
    if table not in plan.catalogue.tables:
        raise EncoreError(f"table {table!r} is unknown{nearest(table, plan.catalogue.tables)}")
    before = read_grid(grid.after).rows.keys() if grid.after else set()
    trained = [row for row in plan.catalogue.tables[table].rows if row.system not in {"", *plan.catalogue.systems}]
    found = {row.id: row.system for row in trained if row.setting == grid.setting and row.id not in before}
    tuned = tuple(f"{system}+" for name, system in found.items() if name in grid.rows)
    return {name: system for name, system in found.items() if name in grid.rows or not system.startswith(tuned)}

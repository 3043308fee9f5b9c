"""A table as data, ``results/tables/<table>.json``: each cell is computed once, and every format renders what is here.

Numbers have 12 significant digits, so that machines cannot differ; every text is of such a number. What is shown of a
cell is there in parts (``Ours``, ``Printed``, ``Comparison``), so that a renderer never takes a text apart.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from encore.config.run import ProxyData
from encore.errors import EncoreError
from encore.products.slices import OURS, Unit
from encore.products.tables.grid import CellRequest, Column, Row
from encore.storage.csv_rows import rounded
from encore.storage.files import write_text
from encore.storage.typed import REMAKE

Number = Annotated[float, AfterValidator(rounded)]
Interval = tuple[Number, Number]
FORMATS = ("csv", "json", "md", "tex", "html")  # the endings of a table's files
State = Literal["measured", "reported", "not applicable", "missing", "empty"]


class TablePart(BaseModel):
    """A part of a table."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Ours(TablePart):
    """The number of a cell that was measured here."""

    value: Number = Field(description="The mean over seeds, in the column's unit; shares are between 0 and 1.")
    text: str = Field(description="The value as people read it: of a table in percent, in percent.")
    sd: Number | None = Field(None, description="The standard deviation over seeds; null for one.")
    sd_text: str = Field("", description="The standard deviation as people read it.")
    seeds: int | None = Field(
        None, description="How many seeds it is the mean of; null if it does not depend on a seed."
    )
    interval: Interval | None = Field(None, description="The 95 % interval of the value over queries and seeds.")
    ties: Interval | None = Field(None, description="The lowest and highest value over all orders of tied scores.")
    judged: int | None = Field(None, description="Queries that have judgements; null where it is not about queries.")
    answered: int | None = Field(None, description="Queries that the run of every seed has an answer to.")
    best: bool = Field(False, description="Whether it is the best of its column within its setting.")
    second: bool = Field(False, description="Whether it is the second best of its column within its setting.")
    markers: str = Field(
        "", description="The symbols of the comparators that it is significantly above; after −, below."
    )


class Printed(TablePart):
    """The paper's number of a cell."""

    printed: str = Field(description="The number, or a word such as OOM, as the paper prints it.")
    value: Number | None = Field(None, description="The number in the column's unit; null for a word.")
    text: str = Field(description="What the table shows: the number in its unit, then the paper's markers, then ≠.")
    markers: str = Field("", description="The paper's own markers.")
    unconfirmed: str = Field("", description="Those of them that our test does not find.")
    unprinted: str = Field("", description="Markers of the paper's that our test finds and the paper does not print.")
    difference: Number | None = Field(None, description="Ours minus the paper's, if there are both.")
    difference_text: str = Field("", description="The difference as people read it, with its sign.")

    @property
    def disagrees(self) -> bool:
        """Whether our test says otherwise than a marker of the paper's, or than its lack."""
        return bool(self.unconfirmed or self.unprinted)


class Comparison(TablePart):
    """A cell minus that of a comparator of its setting."""

    difference: Number = Field(description="The mean difference, over queries and paired seeds.")
    low: Number = Field(description="The lower end of the difference's 95 % interval.")
    high: Number = Field(description="The upper end of the difference's 95 % interval.")
    text: str = Field(description="The difference and its interval as people read them.")
    p: Number = Field(description="Of the two-sided cluster-robust test.")
    p_holm: Number | None = Field(None, description="Corrected by Holm over its family; null outside of one.")
    p_ttest_one_seed: Number = Field(description="Of the papers' paired t-test, on the first seed.")
    p_randomisation: Number = Field(description="Of the randomisation test.")
    p_equivalent: Number | None = Field(
        None,
        description="Of two one-sided tests that the difference is within the table's margin, corrected likewise; left "
        "out in a table without one.",
        exclude_if=lambda p: p is None,
    )
    sign: int = Field(description="1 for a significant gain, -1 for a significant loss, 0 for neither.")


class Cell(TablePart):
    """A row under a column.

    ``state`` is the kind of its content: a number ``measured`` here, one only ``reported`` by a paper, or no number,
    since the row has none (``not applicable``), since this run cannot have it (``missing``), or since nothing is
    requested (``empty``). ``reason`` is why there is none of ours, if the plan knows.
    """

    request: CellRequest = Field(description="What the plan says of the cell: what it shows, and the folders it reads.")
    measure: str = Field(description="What the number is: a measure, or another quantity with its unit.")
    state: State = Field(description="measured, reported, not applicable, missing or empty.")
    reason: str = Field("", description="Why there is no number of ours.")
    ours: Ours | None = Field(None, description="Our number; null where there is none.")
    printed: Printed | None = Field(None, description="The paper's number; null where it prints none.")
    comparisons: dict[str, Comparison] = Field({}, description="By the comparator's row id.")
    verdict: str = Field("", description="Of objectives under primary columns, and of missing cells.")
    verdict_text: str = Field("", description="The verdict, with the smallest gain that could have been shown.")
    detectable: Number | None = Field(
        None, description="The smallest gain over all comparators alike that the verdict finds, at 80 % power."
    )

    @property
    def parts(self) -> list[str]:
        """What is shown, in order: our value, ± its deviation, and in parentheses the paper's and how far ours is."""
        ours = [self.ours.text, *([f"±{self.ours.sd_text}"] if self.ours.sd_text else [])] if self.ours else []
        theirs = [self.printed.text, self.printed.difference_text] if self.printed else []
        return [*ours, *([f"({'; '.join(filter(None, theirs))})"] if theirs else [])]

    @property
    def text(self) -> str:
        """What is shown, in one line of text without markers."""
        return " ".join(self.parts)


class Entry(NamedTuple):
    """What is shown in a cell; ``markers`` are set above the line where a format can."""

    text: str
    best: bool = False
    markers: str = ""


class Table(TablePart):
    """A table: rows by columns, with the texts of every part that is shown."""

    version: Literal[1] = Field(1, description="Of this form; another one is refused.")
    name: str = Field(description="The table's name in its paper.")
    paper: str = Field(description="The paper's folder in config/papers; encore for our own.")
    title: str = Field(description="The caption.")
    unit: Unit = Field(description="The unit in which shares are shown: share or percent.")
    proxy_data: ProxyData = Field(description="Whether the data stand in for the papers'; `own`: they are the user's.")
    seeds: list[int] = Field(description="Every seed of the table's runs.")
    datasets: dict[str, str] = Field(description="What the run calls each dataset that a cell names.")
    comparators: dict[str, str] = Field(description="The rows that others are compared with, each with its symbol.")
    judged: str | None = Field(
        None, description="The column whose difference to the control, and verdict, end each row; null where none is."
    )
    columns: list[Column] = Field(description="In the table's order, hidden ones among them.")
    rows: list[Row[Cell]] = Field(description="In the table's order; those of a setting are together.")
    footnotes: list[str] = Field([], description="What marks mean, data, seeds and ties: computed from the cells.")
    notes: list[str] = Field([], description="What the plan says, and how close runs are to released ones.")

    @property
    def label(self) -> str:
        """A name that no other table has: papers number theirs alike."""
        return self.name if self.paper == OURS else f"{self.paper}:{self.name}"

    @property
    def has_margin(self) -> bool:
        """Whether it has tests of equivalence."""
        compared = (one for row in self.rows for cell in row.cells.values() for one in cell.comparisons.values())
        return any(one.p_equivalent is not None for one in compared)

    def groups(self) -> Iterator[tuple[str, list[Row[Cell]]]]:
        """The rows of each setting, in the table's order."""
        for setting in dict.fromkeys(row.setting for row in self.rows):
            yield setting, [row for row in self.rows if row.setting == setting]

    def shown(self) -> list[Column]:
        """The columns that people are shown."""
        return [column for column in self.columns if not column.hidden]

    def header(self) -> list[str]:
        """The titles of all columns that are shown, the first of which is the rows' labels and has none."""
        more = [f"{self.column(self.judged).label} − control [95 %]", "Verdict"] if self.judged else []
        apart = [f"{column.label} − {label} [95 %]" for column, _, label in self.apart()]
        return ["", *(column.label for column in self.shown()), *apart, *more]

    def apart(self) -> list[tuple[Column, str, str]]:
        """On the user's own data, each baseline that rows are compared with: the column, its id and its label."""
        primary = [column for column in self.columns if column.primary and self.proxy_data == "own"]
        baselines = {row.id: row.label for row in self.rows if row.role == "baseline" and row.id in self.comparators}
        return [(column, name, label) for column in primary for name, label in baselines.items()]

    def entries(self, row: Row[Cell]) -> list[Entry]:
        """What is shown of a row behind its label: its cells, then its difference to the control and its verdict."""
        cells = [row.cells[column.id] for column in self.shown()]
        entries = [
            Entry(cell.text, cell.ours.best, cell.ours.markers) if cell.ours else Entry(cell.text) for cell in cells
        ]
        for column, name, _ in self.apart():
            against = row.cells[column.id].comparisons.get(name)
            entries.append(Entry(against.text if against else ""))
        if self.judged:
            compared = self.to_control(row, self.judged)
            entries += [Entry(compared.text if compared else ""), Entry(row.cells[self.judged].verdict_text)]
        return entries

    def column(self, name: str) -> Column:
        """The column of an id; there must be one."""
        return next(column for column in self.columns if column.id == name)

    def control(self, setting: str) -> str | None:
        """The id of the row that differences of a setting are shown to, if it has one."""
        return next((row.id for row in self.rows if row.setting == setting and row.role == "control"), None)

    def to_control(self, row: Row[Cell], column: str) -> Comparison | None:
        """A cell's comparison with the control of its setting."""
        return row.cells[column].comparisons.get(self.control(row.setting) or "")


def write_table(path: Path, table: Table) -> None:
    """Write ``table.json``; equal tables give equal bytes."""
    write_text(path, table.model_dump_json(indent=1) + "\n")


def read_table(path: Path) -> Table:
    """Read ``table.json``."""
    try:
        return Table.model_validate_json(path.read_bytes())
    except OSError as error:
        raise EncoreError(f"cannot read {path}: {error.strerror}; run snakemake for its table again") from error
    except ValidationError as error:
        found = error.errors()[0]
        reason = ": ".join([*filter(None, [".".join(map(str, found["loc"]))]), found["msg"]])
        raise EncoreError(f"{path} is not a table ({reason}); {REMAKE}") from error

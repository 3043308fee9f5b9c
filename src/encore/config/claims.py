"""The entries of ``papers/<paper>/claims.yaml``: claims and their kinds of tests.

Every test is about cells of a table, named by row and column ids, or about points of a figure, whose lines are its
rows, whose panels are its settings and whose places are its columns. ``settings`` and ``columns`` default to all that
have the test's rows and to all columns that show a measure.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from encore.config.run import Positive, Strict

Names = Annotated[list[str], Field(min_length=1)]


class ClaimTest(Strict):
    """Fields that every test about numbers has."""

    table: str = Field(
        "", description="The table that the test is about, by its target's name, such as `costa/table1`."
    )
    figure: str = Field(
        "",
        description="Or the figure, such as `costa/figure4`; its lines are rows, its panels settings, its "
        "places columns.",
    )
    settings: Names | None = Field(
        None, description="The settings that are compared; without it, all that have the rows."
    )
    columns: Names | None = Field(
        None, description="The columns that are compared; without it, all that show a measure."
    )

    @property
    def about(self) -> str:
        """The table or the figure."""
        return self.table or self.figure

    @model_validator(mode="after")
    def _name_one_thing(self) -> "ClaimTest":
        if bool(self.table) == bool(self.figure):
            raise ValueError("name a `table` or a `figure`, and not both")
        return self


class AboveTest(ClaimTest):
    """Each of ``rows`` is above each of ``than``, under every setting and column."""

    kind: Literal["above"]
    rows: Names
    than: Names
    than_setting: str | None = Field(None, description="The setting of the rows in `than`; without it, that of `rows`.")
    than_table: str | None = Field(None, description="The table of the rows in `than`; without it, `table`.")
    than_columns: Names | None = Field(
        None, description="The columns of the rows in `than`, in the order of `columns`."
    )
    by: float = Field(0.0, description="The least difference, in the measure's own unit (0 to 1).")
    or_equal: bool = Field(False, description="Whether equality fulfils the test.")
    at_least: Positive | None = Field(None, description="How many of the comparisons must hold; without it, all.")

    @model_validator(mode="after")
    def _pair_columns(self) -> "AboveTest":
        if self.than_columns and (not self.columns or len(self.columns) != len(self.than_columns)):
            raise ValueError("`than_columns` go with as many `columns`, in their order")
        return self


class LaterTest(ClaimTest):
    """Each of ``rows`` is higher under ``setting`` than under ``than_setting``."""

    kind: Literal["later"]
    rows: Names | None = Field(None, description="The rows that are compared; without it, all that both settings have.")
    setting: str
    than_setting: str


class OrderTest(ClaimTest):
    """``rows`` are in order from the highest to the lowest."""

    kind: Literal["order"]
    rows: Annotated[list[str], Field(min_length=2)]
    or_equal: bool = Field(False, description="Whether neighbours may be equal.")


class AcrossTest(ClaimTest):
    """One row's values are in order from the highest to the lowest over ``columns``."""

    kind: Literal["across"]
    rows: Names
    columns: Annotated[list[str], Field(min_length=2)]
    or_equal: bool = False


class LimitTest(ClaimTest):
    """``rows`` are above ``than`` by no more than a margin."""

    kind: Literal["limit"]
    rows: Names
    than: str
    by: float = Field(gt=0)


class CloseTest(ClaimTest):
    """``rows`` differ from the first of them by no more than a margin, either way (equivalence: TOST)."""

    kind: Literal["close"]
    rows: Annotated[list[str], Field(min_length=2)]
    within: float = Field(gt=0)


class RatioTest(ClaimTest):
    """Each of ``rows`` is at least ``factor`` times each of ``than``."""

    kind: Literal["ratio"]
    rows: Names
    than: Names
    than_columns: Names | None = Field(
        None, description="The columns of the rows in `than`, in the order of `columns`."
    )
    factor: float = Field(gt=0)


class ShrinkingTest(ClaimTest):
    """The gain of a row over another shrinks from column to column."""

    kind: Literal["shrinking"]
    row: str
    than: str
    columns: Annotated[list[str], Field(min_length=2)]


class GainsTest(ClaimTest):
    """One row's gain over another is larger than another pair's, under every setting and column."""

    kind: Literal["gains"]
    row: str
    than: str
    other_row: str
    other_than: str


class LeastTest(ClaimTest):
    """``rows`` have at least a given value."""

    kind: Literal["least"]
    rows: Names
    least: float = Field(description="The least value, in the measure's own unit (0 to 1).")


class NoWinnerTest(ClaimTest):
    """A row is neither above the other under every column nor below it."""

    kind: Literal["no-winner"]
    row: str
    than: str


class AlikeTest(ClaimTest):
    """Two settings order ``rows`` alike: Kendall's tau is above 0 under every column."""

    kind: Literal["alike"]
    rows: Annotated[list[str], Field(min_length=3)]
    settings: Annotated[list[str], Field(min_length=2, max_length=2)]


class ValueTest(ClaimTest):
    """A cell has the printed value, within a margin either way: too good fails as well."""

    kind: Literal["value"]
    rows: Names
    within: float = Field(gt=0)


class PictureTest(Strict):
    """A statement about the picture of a figure without points, which no number decides."""

    kind: Literal["figure"]
    figure: str = Field(
        description="The figure that the claim is about, by its target's name, such as `costa/figure3`."
    )


KINDS: dict[str, type[Strict]] = {
    "above": AboveTest,
    "later": LaterTest,
    "order": OrderTest,
    "across": AcrossTest,
    "limit": LimitTest,
    "close": CloseTest,
    "ratio": RatioTest,
    "shrinking": ShrinkingTest,
    "gains": GainsTest,
    "least": LeastTest,
    "no-winner": NoWinnerTest,
    "alike": AlikeTest,
    "value": ValueTest,
    "figure": PictureTest,
}
AnyTest = Annotated[
    AboveTest
    | LaterTest
    | OrderTest
    | AcrossTest
    | LimitTest
    | CloseTest
    | RatioTest
    | ShrinkingTest
    | GainsTest
    | LeastTest
    | NoWinnerTest
    | AlikeTest
    | ValueTest
    | PictureTest,
    Field(discriminator="kind"),
]


class Claim(Strict):
    """A statement that can be checked. An entry of ``papers/<paper>/claims.yaml``."""

    says: str = Field(description="The statement in our own words.")
    place: str = Field(description="The place in the paper where it is made.")
    tests: Annotated[list[AnyTest], Field(min_length=1)] = Field(
        description="The tests of the claim; all of them must hold."
    )
    premise: list[AnyTest] = Field([], description="Tests that must hold before the claim is judged at all.")
    control: list[AnyTest] = Field(
        [],
        description="Tests on our own tables against more fine-tuning for the same operations, with a "
        "verdict of their own.",
    )


def on_tables(tests: Iterable[AnyTest]) -> list[Any]:
    """The tests about tables; papers print no numbers of their figures."""
    return [test for test in tests if not isinstance(test, PictureTest) and test.table]

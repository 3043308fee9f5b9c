"""What a claim says, as data: the kinds of tests in ``papers/<paper>/claims.yaml``.

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

    table: str = Field("", description="the table, as its target names it: `costa/table1`")
    figure: str = Field("", description="or the figure: `costa/figure4`; its lines are rows, its panels settings")
    settings: Names | None = Field(None, description="settings that are looked at; all that have the rows without")
    columns: Names | None = Field(None, description="columns that are looked at; all that show a measure without")

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
    than_setting: str | None = Field(None, description="the setting of `than`; the row's own without")
    than_table: str | None = Field(None, description="the table of `than`; `table` without")
    than_columns: Names | None = Field(None, description="the columns there, in the order of `columns`")
    by: float = Field(0.0, description="by more than this, in the measure's own unit (0 to 1)")
    or_equal: bool = Field(False, description="equal is enough")
    at_least: Positive | None = Field(None, description="so many of the comparisons; all without")

    @model_validator(mode="after")
    def _pair_columns(self) -> "AboveTest":
        if self.than_columns and (not self.columns or len(self.columns) != len(self.than_columns)):
            raise ValueError("`than_columns` go with as many `columns`, in their order")
        return self


class LaterTest(ClaimTest):
    """Each of ``rows`` is higher under ``setting`` than under ``than_setting``."""

    kind: Literal["later"]
    rows: Names | None = Field(None, description="all that both settings have without")
    setting: str
    than_setting: str


class OrderTest(ClaimTest):
    """``rows`` stand from the highest to the lowest."""

    kind: Literal["order"]
    rows: Annotated[list[str], Field(min_length=2)]
    or_equal: bool = Field(False, description="neighbours may be equal")


class AcrossTest(ClaimTest):
    """One row's values stand from the highest to the lowest in the order of ``columns``."""

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
    than_columns: Names | None = Field(None, description="the columns of `than`, in the order of `columns`")
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
    least: float = Field(description="in the measure's own unit (0 to 1)")


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
    """What only the picture of a figure without points shows, so that no number decides it."""

    kind: Literal["figure"]
    figure: str = Field(description="the figure, as its target names it: `costa/figure3`")


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

    says: str = Field(description="the statement in our own words")
    place: str = Field(description="where the paper makes it")
    tests: Annotated[list[AnyTest], Field(min_length=1)] = Field(description="all of them must hold")
    premise: list[AnyTest] = Field([], description="what must hold for the claim to be about anything")
    control: list[AnyTest] = Field(
        [], description="tests on our own tables against more fine-tuning for the same operations; judged apart"
    )


def on_tables(tests: Iterable[AnyTest]) -> list[Any]:
    """Those about tables: papers print the numbers of no figure."""
    return [test for test in tests if not isinstance(test, PictureTest) and test.table]

"""The entries of ``papers/<paper>/claims.yaml``: claims and their kinds of tests. Nothing here plans a job.

Every test is about cells of a table, named by row and column ids, or about points of a figure, whose lines are its
rows, whose panels are its settings and whose places are its columns. ``settings`` and ``columns`` default to all that
have the test's rows and to all columns that show a measure.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from encore.config.strict import Positive, Strict
from encore.config.validation import checked, read_yaml
from encore.errors import EncoreError

CLAIMS, PRINTED = "claims", "claims_printed"  # the products: claims on runs, and on the papers' printed numbers
FILE = "claims.yaml"
SPREAD = "encore/spread.yaml"
DATASETS = "datasets.yaml"
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
    rows: Names | None = Field(
        None, description="The rows that must be higher; without it, all of the settings compared."
    )
    than: Names | float | None = Field(
        None,
        description="The rows that must be lower, or a number in the measure's own unit (0 to 1). Without it, each "
        "row is compared with itself: under `than_setting`, in `than_table` or in `than_columns`.",
    )
    than_setting: str | None = Field(None, description="The setting of the rows in `than`; without it, that of `rows`.")
    than_table: str | None = Field(None, description="The table of the rows in `than`; without it, `table`.")
    than_columns: Names | None = Field(
        None, description="The columns of the rows in `than`, in the order of `columns`."
    )
    by: float = Field(0.0, description="The least difference, in the measure's own unit (0 to 1).")
    factor: float = Field(1.0, gt=0, description="The least ratio: `rows` are above this many times `than`.")
    or_equal: bool = Field(False, description="Whether equality fulfils the test.")
    at_least: Positive | None = Field(None, description="How many of the comparisons must hold; without it, all.")
    significantly: bool = Field(
        False, description="Whether the paper says so with a test: on printed numbers its marker must stand there."
    )

    @model_validator(mode="after")
    def _compare_two_things(self) -> "AboveTest":
        if self.than_columns and (not self.columns or len(self.columns) != len(self.than_columns)):
            raise ValueError("`than_columns` go with as many `columns`, in their order")
        if self.than is None and not (self.than_setting is not None or self.than_table or self.than_columns):
            raise ValueError("say what the rows are above: `than`, `than_setting`, `than_table` or `than_columns`")
        return self


class OrderTest(ClaimTest):
    """``rows`` are in order from the highest to the lowest."""

    kind: Literal["order"]
    rows: Annotated[list[str], Field(min_length=2)]
    or_equal: bool = Field(False, description="Whether neighbours may be equal.")


class CloseTest(ClaimTest):
    """``rows`` differ from ``to`` by no more than a margin (an equivalence, tested by two one-sided tests)."""

    kind: Literal["close"]
    rows: Names
    to: Names | float | Literal["printed"] = Field(
        description="The rows that they are compared with, a number, or `printed`: their own printed values."
    )
    within: float = Field(gt=0, description="The margin, in the measure's own unit (0 to 1).")
    or_below: bool = Field(False, description="Whether `rows` may be any amount below: only the upper margin counts.")


class GainsTest(ClaimTest):
    """The gain of ``row`` over ``than`` is larger than another gain: of other rows, or under other columns."""

    kind: Literal["gains"]
    row: str
    than: str
    other_row: str | None = Field(None, description="The row of the smaller gain; without it, `row`.")
    other_than: str | None = Field(None, description="What the smaller gain is over; without it, `than`.")
    other_columns: Names | None = Field(
        None, description="The columns of the smaller gain, in the order of `columns`; without it, `columns`."
    )

    @model_validator(mode="after")
    def _compare_two_gains(self) -> "GainsTest":
        if self.other_columns and (not self.columns or len(self.columns) != len(self.other_columns)):
            raise ValueError("`other_columns` go with as many `columns`, in their order")
        if not (self.other_row or self.other_than or self.other_columns):
            raise ValueError("name another gain: `other_row`, `other_than` or `other_columns`")
        return self


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


class PictureTest(Strict):
    """A statement about the picture of a figure without points, which no number decides."""

    kind: Literal["figure"]
    figure: str = Field(
        description="The figure that the claim is about, by its target's name, such as `costa/figure3`."
    )


NumberTest = AboveTest | OrderTest | CloseTest | GainsTest | NoWinnerTest | AlikeTest
AnyTest = Annotated[NumberTest | PictureTest, Field(discriminator="kind")]
KINDS = ("above", "order", "close", "gains", "no-winner", "alike", "figure")


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


def read_claims(papers: Path) -> dict[str, tuple[str, Claim]]:
    """Every claim with its paper, by id, in the order of the ids.

    Raises:
        EncoreError: a file is wrong, or two papers use one id.
    """
    claims: dict[str, tuple[str, Claim]] = {}
    for path in sorted(papers.glob(f"*/{FILE}")):
        for name, value in read_yaml(path).items():
            if name in claims:
                raise EncoreError(f"{path}: {name}: {claims[name][0]} has a claim of that id; give it another")
            claims[name] = path.parent.name, checked(Claim, value, f"{path}: {name}")
    return dict(sorted(claims.items(), key=lambda item: (len(item[0]), item[0])))  # C100 after C99


def number_tests(tests: Iterable[AnyTest]) -> list[NumberTest]:
    """The tests about numbers, of tables or of a figure's points."""
    return [test for test in tests if not isinstance(test, PictureTest)]


def on_tables(tests: Iterable[AnyTest]) -> list[NumberTest]:
    """The tests about tables; papers print no numbers of their figures."""
    return [test for test in number_tests(tests) if test.table]


def named_by(*tests: AnyTest) -> list[str]:
    """The tables and figures whose numbers tests are about, each once."""
    named = [name for test in number_tests(tests) for name in (test.about, getattr(test, "than_table", None))]
    return list(dict.fromkeys(name for name in named if name))


def products_of(claim: Claim) -> list[str]:
    """The tables and figures that a claim, its premise and its control are about, each once."""
    return named_by(*claim.premise, *claim.tests, *claim.control)

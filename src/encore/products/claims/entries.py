"""The entries of ``papers/<paper>/claims.yaml``: claims and their kinds of tests. Nothing here plans a job.

Every test is about cells of a table, named by row and column ids, or about points of a figure, whose lines are its
rows, whose panels are its settings and whose places are its columns. ``settings`` and ``columns`` default to all that
have the test's rows and to all columns that show a measure.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from encore.config.validation import Positive, Strict, checked, nearest, read_yaml
from encore.errors import EncoreError
from encore.products.claims.contrasts import Address, Contrast, Tables, Terms, above, check_address, table_of
from encore.products.tables.entries import TESTED
from encore.storage.program_files import PAPERS, of_papers

CLAIMS = "claims"  # the product
FILE = "claims.yaml"
SPREAD = "encore/spread.yaml"
Names = Annotated[list[str], Field(min_length=1)]


class Paper(Strict):
    """A paper's name on the page, and whether runs with all claims judge its own, or only those that name them."""

    name: str
    claims: Literal["all", "named"] = "all"


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

    by_comparison: ClassVar[bool] = True  # each inequality is a comparison by itself, of which so many must hold

    @property
    def about(self) -> str:
        """The table or the figure."""
        return self.table or self.figure

    @property
    def is_amount(self) -> bool:
        """Whether it is about how much, which proxy data cannot show."""
        return False

    def needed(self, count: int) -> int:
        """How many of its ``count`` inequalities must hold."""
        return count

    def contrasts(self, tables: Tables) -> list[Contrast]:
        """Its inequalities."""
        found = list(self._expanded(tables))
        for contrast in found:
            for address, _ in (*contrast.terms, *contrast.printed):
                check_address(address, tables)
        if self.needed(len(found)) > len(found):
            asked = self.needed(len(found))
            raise EncoreError(f"`at_least: {asked}` of only {len(found)} comparisons on {self.about}; ask for fewer")
        if not found:
            kind = getattr(self, "kind", "")
            raise EncoreError(f"a test of kind {kind} on {self.about} compares nothing; fix its rows")
        return found

    def columns_in(self, tables: Tables) -> list[str]:
        """The columns that it compares: those named, or all that show a measure."""
        if self.columns is not None:
            return self.columns
        columns = table_of(self.about, tables).columns
        return [column.id for column in columns if column.source == TESTED and not column.hidden]

    def settings_in(self, tables: Tables, rows: Sequence[str]) -> list[str]:
        """The settings named, or all that have every row."""
        if self.settings is not None:
            return self.settings
        held: dict[str, set[str]] = {}
        for row in table_of(self.about, tables).rows:
            held.setdefault(row.setting, set()).add(row.id)
        found = [setting for setting, ids in held.items() if set(rows) <= ids]
        if not found:
            known = sorted({row for ids in held.values() for row in ids})
            odd = next((row for row in rows if row not in known), rows[0])
            raise EncoreError(f"no setting of {self.about} has the rows {', '.join(rows)}{nearest(odd, known)}")
        return found

    def _expanded(self, tables: Tables) -> Iterator[Contrast]:
        raise NotImplementedError

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
        False, description="Whether the paper says so with a test; every difference of runs is tested."
    )

    @model_validator(mode="after")
    def _compare_two_things(self) -> "AboveTest":
        if self.than_columns and (not self.columns or len(self.columns) != len(self.than_columns)):
            raise ValueError("`than_columns` go with as many `columns`, in their order")
        if self.than is None and not (self.than_setting is not None or self.than_table or self.than_columns):
            raise ValueError("say what the rows are above: `than`, `than_setting`, `than_table` or `than_columns`")
        return self

    @property
    def is_amount(self) -> bool:
        """Whether it is about how much; a margin below 0 only says what is no worse."""
        return self.by > 0 or self.factor != 1

    def needed(self, count: int) -> int:
        """How many of its ``count`` inequalities must hold."""
        return self.at_least or count

    def _expanded(self, tables: Tables) -> Iterator[Contrast]:
        ours = self.columns_in(tables)
        columns = list(zip(ours, self.than_columns or ours, strict=True))
        elsewhere = self.than_setting is not None or self.than_table
        shared = self.than if isinstance(self.than, list) and not elsewhere else []
        for setting in self.settings_in(tables, [*(self.rows or []), *shared]):
            other = setting if self.than_setting is None else self.than_setting
            for row in self.rows or self._common_rows(setting, other, tables):
                for than in self.than if isinstance(self.than, list) else [row]:
                    for ours_in, theirs_in in columns:
                        higher = Address(self.about, setting, row, ours_in)
                        lower = Address(self.than_table or self.about, other, than, theirs_in)
                        if isinstance(self.than, float):
                            yield Contrast(((higher, 1),), self.than, self.or_equal)
                        else:
                            terms = ((higher, 1), (lower, -self.factor))
                            yield Contrast(terms, self.by, self.or_equal)

    def _common_rows(self, setting: str, other: str, tables: Tables) -> list[str]:
        """The rows of a setting that the other setting, or table, has as well."""
        theirs = {row.id for row in table_of(self.than_table or self.about, tables).rows if row.setting == other}
        return [row.id for row in table_of(self.about, tables).rows if row.setting == setting and row.id in theirs]


class OrderTest(ClaimTest):
    """``rows`` are in order from the highest to the lowest."""

    kind: Literal["order"]
    rows: Annotated[list[str], Field(min_length=2)]
    or_equal: bool = Field(False, description="Whether neighbours may be equal.")

    def _expanded(self, tables: Tables) -> Iterator[Contrast]:
        for setting in self.settings_in(tables, self.rows):
            for column in self.columns_in(tables):
                for higher, lower in pairwise(Address(self.about, setting, row, column) for row in self.rows):
                    yield above(higher, lower, or_equal=self.or_equal)


class CloseTest(ClaimTest):
    """``rows`` differ from ``to`` by no more than a margin (an equivalence, tested by two one-sided tests)."""

    kind: Literal["close"]
    rows: Names
    to: Names | float | Literal["printed"] = Field(
        description="The rows that they are compared with, a number, or `printed`: their own printed values."
    )
    within: float = Field(gt=0, description="The margin, in the measure's own unit (0 to 1).")
    or_below: bool = Field(False, description="Whether `rows` may be any amount below: only the upper margin counts.")

    @property
    def is_amount(self) -> bool:
        """A margin is an amount."""
        return True

    def _expanded(self, tables: Tables) -> Iterator[Contrast]:
        """Both halves of each equivalence, or the upper one."""
        others = self.to if isinstance(self.to, list) else []
        for setting in self.settings_in(tables, [*self.rows, *others]):
            for row in self.rows:
                for column in self.columns_in(tables):
                    ours = Address(self.about, setting, row, column)
                    for theirs in [ours._replace(row=other) for other in others] or [ours]:
                        for sign in (-1,) if self.or_below else (-1, 1):  # at most and at least the other, by a margin
                            yield self._half(ours, theirs, sign)

    def _half(self, ours: Address, theirs: Address, sign: int) -> Contrast:
        pair: Terms = ((ours, sign), (theirs, -sign))[::sign]  # the one that must be higher comes first
        if isinstance(self.to, list):
            return Contrast(pair, -self.within, or_equal=True, equivalence=True)
        printed: Terms = ((ours, -sign),) if self.to == "printed" else ()
        least = -self.within if printed else sign * float(self.to) - self.within
        return Contrast(((ours, sign),), least, or_equal=True, equivalence=True, printed=printed)


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

    def _expanded(self, tables: Tables) -> Iterator[Contrast]:
        rows = [self.row, self.than, self.other_row or self.row, self.other_than or self.than]
        columns = self.columns_in(tables)
        for setting in self.settings_in(tables, rows):
            for column, other in zip(columns, self.other_columns or columns, strict=True):
                places = zip(rows, (column, column, other, other), strict=True)
                cells = (Address(self.about, setting, row, at) for row, at in places)
                yield Contrast(tuple(zip(cells, (1, -1, -1, 1), strict=True)))


class NoWinnerTest(ClaimTest):
    """A row is neither above the other under every column nor below it."""

    kind: Literal["no-winner"]
    row: str
    than: str

    by_comparison: ClassVar[bool] = False

    def _expanded(self, tables: Tables) -> Iterator[Contrast]:
        for setting in self.settings_in(tables, [self.row, self.than]):
            for column in self.columns_in(tables):
                ours, theirs = (Address(self.about, setting, row, column) for row in (self.row, self.than))
                yield above(ours, theirs)


class AlikeTest(ClaimTest):
    """Two settings order ``rows`` alike: Kendall's tau is above ``tau`` under every column."""

    kind: Literal["alike"]
    rows: Annotated[list[str], Field(min_length=3)]
    settings: Annotated[list[str], Field(min_length=2, max_length=2)]
    tau: float = Field(0.0, ge=0, lt=1, description="What Kendall's tau must be above; 0.5 is three pairs of four.")

    by_comparison: ClassVar[bool] = False

    def _expanded(self, tables: Tables) -> Iterator[Contrast]:
        """The order of the rows under each setting as pairs; ``chance.py`` compares the two orders."""
        for column in self.columns_in(tables):
            for setting in self.settings:
                for rows in combinations(self.rows, 2):
                    first, second = (Address(self.about, setting, row, column) for row in rows)
                    yield above(first, second)


class PictureTest(Strict):
    """A statement about the picture of a figure without points, which no number decides."""

    kind: Literal["figure"]
    figure: str = Field(
        description="The figure that the claim is about, by its target's name, such as `costa/figure3`."
    )


class StatedTest(Strict):
    """A statement that the paper prints no number of, and that nothing here measures."""

    kind: Literal["stated"]
    needs: str = Field(description="What would have to be measured.")


NumberTest = AboveTest | OrderTest | CloseTest | GainsTest | NoWinnerTest | AlikeTest
AnyTest = Annotated[NumberTest | PictureTest | StatedTest, Field(discriminator="kind")]
KINDS = ("above", "order", "close", "gains", "no-winner", "alike", "figure", "stated")


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
    of_these_data: bool = Field(
        False, description="Whether it is about the run's own data, so that an amount is tested on proxy data too."
    )


def read_papers() -> dict[str, Paper]:
    """Every ``papers/<paper>/paper.yaml`` by its folder; a paper without one is called as its folder."""
    return {key: checked(Paper, read_yaml(path), str(path)) for key, path in of_papers("paper.yaml").items()}


def read_claims(papers: Path = PAPERS) -> dict[str, tuple[str, Claim]]:
    """Every claim with its paper, by id, in the order of the ids."""
    claims: dict[str, tuple[str, Claim]] = {}
    for paper, path in of_papers(FILE, papers).items():
        for name, value in read_yaml(path).items():
            if name in claims:
                raise EncoreError(f"{path}: {name}: {claims[name][0]} has a claim of that id; give it another")
            claims[name] = paper, checked(Claim, value, f"{path}: {name}")
    return dict(sorted(claims.items(), key=lambda item: (len(item[0]), item[0])))  # C100 after C99


def number_tests(tests: Iterable[AnyTest]) -> list[NumberTest]:
    """The tests about numbers, of tables or of a figure's points."""
    return [test for test in tests if not isinstance(test, PictureTest | StatedTest)]


def named_by(*tests: AnyTest) -> list[str]:
    """The tables and figures whose numbers tests are about, each once."""
    named = [name for test in number_tests(tests) for name in (test.about, getattr(test, "than_table", None))]
    return list(dict.fromkeys(name for name in named if name))


def products_of(claim: Claim) -> list[str]:
    """The tables and figures that a claim, its premise and its control are about, each once."""
    return named_by(*claim.premise, *claim.tests, *claim.control)

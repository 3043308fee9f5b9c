"""What a table or figure is made of: its slice of the plan, read from ``results/plan/<name>.json``.

The plan is written by a program and was checked there, so this only gives it types; unknown keys are other readers'.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from encore.errors import EncoreError

Role = Literal["baseline", "none", "control", "objective"]


class Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Product(Part):
    """What every slice of the plan says."""

    reads: ClassVar[Sequence[str] | None] = None  # the files of each folder that are read; None: any

    name: str
    stand_in: bool = True

    def folders(self) -> list[Path]:
        """Every folder of results that it reads, once."""
        raise NotImplementedError


P = TypeVar("P", bound=Product)


class SeedScores(Part):
    """One run's scores; a system without chance in it (BM25) has one, whose seed is null."""

    seed: int | None = None
    scores: str  # the folder


class Row(Part):
    """A system under a setting; ids are unique in their setting. Without ``seeds`` it only shows reported numbers."""

    id: str
    label: str
    setting: str
    system: str = ""
    role: Role = "baseline"
    seeds: list[SeedScores] = []
    efficiency: str | None = None  # the folder of what a query takes and how large the index is
    reported_label: str | None = None  # ``row_label`` in the file of reported numbers, when it is not the label
    reported_setting: str | None = None


class Column(Part):
    """A measure, by its short name in the scores, on a split of a collection (named with its digest)."""

    id: str
    label: str
    dataset: str
    split: str
    measure: str = ""
    efficiency: Literal["latency", "size"] | None = None  # instead of a measure
    primary: bool = False
    collection: str = ""
    reported_dataset: str | None = None
    reported_metric: str | None = None


class Design(Part):
    """Which rows of the same setting each row is compared with, and how a family of tests is corrected."""

    comparators: list[str] = Field(max_length=5)  # there are as many markers
    family: Literal["holm"] = "holm"


class Layout(Product):
    """A table: rows by columns."""

    paper: str
    title: str
    rows: list[Row]
    columns: list[Column]
    dataset_labels: dict[str, str] = {}
    significance: Design | None = None
    reported: str | None = None
    notes: list[str] = []

    def settings(self) -> list[str]:
        """Settings in the order of their first rows."""
        return list(dict.fromkeys(row.setting for row in self.rows))

    def comparators(self) -> list[str]:
        return self.significance.comparators if self.significance else []

    def folders(self) -> list[Path]:
        read = [seed.scores for row in self.rows for seed in row.seeds]
        read += [row.efficiency for row in self.rows if row.efficiency]
        return [Path(folder) for folder in dict.fromkeys(read)]


def read(path: Path, kind: type[P]) -> P:
    """Read a slice of the plan: ``Layout`` for a table.

    Raises:
        EncoreError: the file is missing or is no such slice.
    """
    try:
        return kind.model_validate(json.loads(path.read_text()))
    except FileNotFoundError as error:
        raise EncoreError(f"{path} is missing; name a table that the configuration declares") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise EncoreError(f"{path}: {place}: {first['msg']}; let the workflow write the plan again") from error
    except ValueError as error:
        raise EncoreError(f"{path} is not JSON ({error}); delete it, the workflow writes it again") from error

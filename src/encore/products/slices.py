"""The slice of the plan that a product is built from, read from ``results/plan/<name>.json``: what all kinds share.

The plan is written by a program and was checked there, so this only gives it types; unknown keys are other readers'.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from encore.config.run import ProxyData, RunConfig
from encore.errors import EncoreError
from encore.storage.files import canonical, readable_object

PROXY_DATA = "Not the papers’ data: this shows machinery and statistics, it does not confirm a paper."
OURS = "encore"  # the paper of our own tables and figures, whose names have no folder
NOT_BUILT = "the run's configuration does not build the row"
NOT_DRAWN = "the run's configuration does not draw it"
LEFT_OUT = (NOT_BUILT, NOT_DRAWN)  # why a cell has no value, by the run's own choice: it could have one
Unit = Literal["share", "percent"]


def about_data(proxy_data: ProxyData) -> str:
    """What a reader is told of data that replace a paper's; nothing of others."""
    return PROXY_DATA if proxy_data is True else ""


def titled(title: str, config: RunConfig) -> str:
    """The title of a product, with the run's file unless it is the default one: all runs write to the same folders."""
    return f"{title} [{config.called}]" if config.called else title


class SlicePart(BaseModel):
    """A part of a slice of the plan, of which a reader takes the fields that it needs."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Product(SlicePart):
    """The fields that every slice of the plan has."""

    name: str
    proxy_data: ProxyData = True

    def dumped(self) -> dict[str, Any]:
        """The slice as its file has it: only what the planner set, so that a new field changes no digest."""
        return self.model_dump(mode="json", exclude_unset=True)

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """Its parts, by label, with the folders of results that each reads, as an audit names what they affect."""
        return iter(())

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Every folder of results that it reads, with the files that are read: None for all, none for the manifest."""
        raise NotImplementedError

    def others(self, folder: Path) -> list[Path]:
        """Files of other products that it reads.

        Args:
            folder: where its files are stored.
        """
        return []


P = TypeVar("P", bound=Product)


class Read(SlicePart):
    """A folder that a cell reads, and the seed it was made under; null for what no seed changes (BM25)."""

    seed: int | None = None
    folder: str


class Axis(SlicePart):
    """A row or a column, in the form that tables, figures and slices of the plan share.

    Of a figure a line under a panel is a row (its panel is the setting), and a place of points a column.
    """

    id: str
    setting: str = ""
    reported_only: str = ""
    source: str = ""
    hidden: bool = False


class Shape(SlicePart):
    """All rows and columns of a table, or of a figure with points."""

    rows: list[Axis]
    columns: list[Axis]


def paper_of(name: str) -> str:
    """The paper of a table or figure, by its name."""
    return name.split("/")[0] if "/" in name else OURS


def built_from(record: Path, content: dict[str, Any]) -> bool | None:
    """True if a product was built from this slice of the plan; None if its manifest does not say from which one."""
    made = readable_object(record)
    return canonical(made["spec"]) == canonical(content) if "spec" in made else None


def read(path: Path, typed: Callable[[Any], P]) -> tuple[P, Any]:
    """Read a slice of the plan, with types and as it is in the file.

    Args:
        path: of the file.
        typed: gives its content types: ``Layout.model_validate`` for a table.
    """
    try:
        content = json.loads(path.read_text())
        return typed(content), content
    except FileNotFoundError as error:
        raise EncoreError(f"{path} is missing; name a table that the configuration declares") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise EncoreError(f"{path}: {place}: {first['msg']}; let the workflow write the plan again") from error
    except (ValueError, RecursionError) as error:
        raise EncoreError(f"{path} cannot be used ({error}); delete it, the workflow writes it again") from error

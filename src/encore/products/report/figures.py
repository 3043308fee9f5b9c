"""The figures of the page, with the data of each and what every line of it was computed from."""

import base64
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from encore.products.figures.crossover import of_lines, sentences
from encore.products.report.slice import RESULTS, ReportSlice, slug
from encore.storage.csv_rows import read_rows

KINDS = {"svg": "image/svg+xml", "png": "image/png"}
NAMES = ("label", "lineage", "system")  # columns of data that tell whose a line is, by what a slice's row calls it


@dataclass(frozen=True)
class FigureRow:
    """A row of a figure's slice of the plan."""

    label: str
    setting: str
    system: str
    names: tuple[str, ...]  # what lines of data call it
    reads: list[str]


@dataclass(frozen=True)
class ShownFigure:
    """A figure: the rows of its slice of the plan, and the lines of its data."""

    name: str
    rows: list[FigureRow]
    lines: list[dict[str, str]]

    @property
    def stem(self) -> Path:
        """The path of the figure's files without their endings."""
        return RESULTS / f"figures/{self.name}"

    @property
    def place(self) -> str:
        """The name of the figure on the page."""
        return f"f-{slug(self.name)}"

    @property
    def data(self) -> str:
        """The name of the figure's data on the page."""
        return f"d-{slug(self.name)}"

    @property
    def sentences(self) -> list[str]:
        """Where the lead of one line over another ends, in words."""
        return list(sentences(of_lines(self.lines)))

    @cached_property
    def picture(self) -> str:
        """The smaller of the figure's two pictures as an address that holds it."""
        found = {kind: self.stem.with_name(f"{self.stem.name}.{kind}").read_bytes() for kind in KINDS}
        kind = min(KINDS, key=lambda kind: len(found[kind]))
        return f"data:{KINDS[kind]};base64,{base64.b64encode(found[kind]).decode()}"

    def key(self, row: FigureRow) -> str:
        """The name on the page of the explanation of a row's numbers."""
        return f"v-{slug(self.name)}-{self.rows.index(row)}"

    def row_of(self, line: dict[str, str]) -> FigureRow | None:
        """The row that a line of data is about."""
        name = next((line[key] for key in NAMES if key in line), None)
        return next((row for row in self.rows if name in row.names and row.setting == line.get("setting", "")), None)

    def question(self, row: FigureRow) -> list[str]:
        """The arguments of `encore explain` about a row."""
        setting = ["--setting", row.setting] if row.setting else []
        return [f"{self.stem}.csv", "--row", row.label, *setting]


def read_figures(site: ReportSlice) -> list[ShownFigure]:
    """The figures that were made."""
    shown = []
    for name in site.figures:
        stem = RESULTS / f"figures/{name}"
        spec = json.loads(stem.with_name(f"{stem.name}.manifest.json").read_text())["spec"]
        lines = read_rows(stem.with_name(f"{stem.name}.csv"))
        rows = [
            FigureRow(
                row["label"],
                row.get("setting", ""),
                row.get("system", ""),
                tuple(row[key] for key in NAMES if key in row),
                list(dict.fromkeys(_folders(row))),
            )
            for row in spec.get("rows", [])
        ]
        shown.append(ShownFigure(name, rows, lines))
    return shown


def _folders(row: dict[str, Any]) -> list[str]:
    """The folders that a row reads: of a table, of a figure, or of the figure of pre-training steps."""
    if "cells" in row:
        return [read["folder"] for cell in row["cells"].values() for read in cell["reads"]]
    return list(row["reads"]) if "reads" in row else [seed["model"] for seed in row["seeds"]]

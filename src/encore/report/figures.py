"""The figures of the report, inside the page, with the data of each and what every line of it was read from."""

import base64
import csv
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from encore.report.markup import Html, code, facts, joined, link, scrolling, significant, slug
from encore.report.published_tables import paper_of
from encore.report.records import ArtifactRecords
from encore.report.slice import RESULTS, ReportSlice
from encore.reporting.figures.crossover_text import of_lines, sentences

KINDS = {"svg": "image/svg+xml", "png": "image/png"}
MOST = 400  # lines of data that stand in the page
NAMES = ("label", "lineage", "system")  # columns of data that tell whose a line is, by what a slice's row calls it


@dataclass(frozen=True)
class DrawnFigure:
    """A figure that was made: the rows of its slice of the plan, and the lines of its data."""

    name: str
    rows: list[dict[str, Any]]
    lines: list[dict[str, str]]

    @property
    def stem(self) -> Path:
        """The path of the figure's files without their endings."""
        return RESULTS / f"figures/{self.name}"

    def row_of(self, line: dict[str, str]) -> int | None:
        """Which row a line is about."""
        key = next((key for key in NAMES if key in line), None)
        same = (
            number
            for number, row in enumerate(self.rows)
            if key
            and line[key] in (row.get(key), row.get("label"))
            and row.get("setting", "") == line.get("setting", "")
        )
        return next(same, None)


def read_figures(site: ReportSlice) -> list[DrawnFigure]:
    """The figures that were made."""
    return [_read(name) for name in site.figures]


def figure_folders(drawn: Iterable[DrawnFigure]) -> Iterator[str]:
    """Every folder that figures read."""
    return (folder for figure in drawn for row in figure.rows for folder in _reads(row))


def figure_sections(drawn: Sequence[DrawnFigure], records: ArtifactRecords) -> str:
    """Each figure with its data, and what each line of that was read from."""
    if not drawn:
        return "<p>This configuration declares no figure.</p>"
    return "".join(_figure(figure) + "".join(_explained(figure, records)) for figure in drawn)


def _read(name: str) -> DrawnFigure:
    stem = RESULTS / f"figures/{name}"
    spec = json.loads(stem.with_name(f"{stem.name}.manifest.json").read_text())["spec"]
    with stem.with_name(f"{stem.name}.csv").open(newline="", encoding="utf-8") as file:
        return DrawnFigure(name, spec.get("rows", []), list(csv.DictReader(file)))


def _reads(row: dict[str, Any]) -> list[str]:
    """The folders of a row: of its cells, or named at once, or those of each seed."""
    if "cells" in row:
        found = [read["folder"] for cell in row["cells"].values() for read in cell["reads"]]
    else:
        found = row.get("reads") or [
            seed[kind] for seed in row["seeds"] for kind in ("model", "scores") if kind in seed
        ]
    return list(dict.fromkeys(found))


def _figure(figure: DrawnFigure) -> str:
    title, key = f"Figure {escape(figure.name)}", slug(figure.name)
    data = f"{figure.stem}.csv"
    ended = "".join(f" {escape(sentence)}" for sentence in sentences(of_lines(figure.lines)))
    picture = f'<img src="{_inside(figure.stem)}" alt="{title}, whose data are in {data}">'
    return (
        f'<figure class="item" id="f-{key}" data-paper="{paper_of(figure.name)}" data-state="made">'
        f"{scrolling(f'Picture of {figure.name}', picture)}"
        f"<figcaption>{title}; its data: {code(data).markup}.{ended}</figcaption>"
        f'<details id="d-{key}"><summary>Its numbers, each with what is behind it</summary>{_data(figure)}</details>'
        "</figure>"
    )


def _data(figure: DrawnFigure) -> str:
    """The lines of the data, whose numbers lead to what they were read from."""
    header = list(figure.lines[0]) if figure.lines else []
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(_line(figure, line) for line in figure.lines[:MOST])
    more = len(figure.lines) - MOST
    rest = f"<p>{more:,} lines more are in the file.</p>" if more > 0 else ""
    return (
        scrolling(f"Data of {figure.name}", f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        + rest
    )


def _line(figure: DrawnFigure, line: dict[str, str]) -> str:
    row = figure.row_of(line)
    first, *others = (_value(text, None if row is None else f"v-{slug(figure.name)}-{row}") for text in line.values())
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{value}</td>" for value in others)}</tr>'


def _value(text: str, place: str | None) -> str:
    try:
        number = significant(text, 4)
    except ValueError:
        return escape(text)
    return link(place, number, class_="n").markup if place and number else escape(number)


def _explained(figure: DrawnFigure, records: ArtifactRecords) -> Iterator[str]:
    """A section for each row, which is shown when one of its numbers is followed."""
    for place, row in enumerate(figure.rows):
        setting = row.get("setting", "")
        title = f"Figure {figure.name}: {row['label']}{f' [{setting}]' if setting else ''}"
        reads = (link(records[each].key, each.removeprefix("results/"), class_="read") for each in _reads(row))
        chosen = ["--row", row["label"], *(["--setting", setting] if setting else [])]
        command = shlex.join(["encore", "explain", f"{figure.stem}.csv", *chosen])
        listed: dict[str, Html | str] = {"System": code(row["system"]) if row.get("system") else ""}
        listed |= {"Reads": joined(reads), "In a terminal": code(command)}
        yield (
            f'<section class="why" id="v-{slug(figure.name)}-{place}" tabindex="-1" aria-label="{escape(title)}">'
            f'<h3>{escape(title)}</h3>{facts(listed)}<a class="close" href="#d-{slug(figure.name)}">Close</a></section>'
        )


def _inside(stem: Path) -> str:
    """The smaller of a figure's two pictures as an address that holds it."""
    found = {kind: stem.with_name(f"{stem.name}.{kind}").read_bytes() for kind in KINDS}
    kind = min(KINDS, key=lambda kind: len(found[kind]))
    return f"data:{KINDS[kind]};base64,{base64.b64encode(found[kind]).decode()}"

"""The claims of the report: what each comes to on printed numbers and on runs, and how many come to what."""

import csv
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from encore.report import explanations
from encore.report.markup import Content, Html, badge, code, facts, html_table, joined, link, markup, significant, slug
from encore.report.published_tables import PAPERS, PublishedTable
from encore.report.slice import RESULTS, ReportSlice

ClaimLine = dict[str, str]


def read_claim_lines(name: str) -> list[ClaimLine]:
    """The lines of ``results/<name>.csv``."""
    with (RESULTS / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def verdict_counts(lines: Sequence[ClaimLine], caption: str) -> str:
    """How many claims of each paper come to which verdict."""
    verdicts = list(dict.fromkeys(line["verdict"] for line in lines))
    found = Counter((line["paper"], line["verdict"]) for line in lines)
    papers = list(dict.fromkeys(line["paper"] for line in lines))
    rows: list[list[Content]] = [
        [PAPERS.get(paper, paper), *(_count(found[paper, verdict]) for verdict in verdicts)] for paper in papers
    ]
    totals = Counter(line["verdict"] for line in lines)
    rows.append(["All", *(_count(totals[verdict]) for verdict in verdicts)])
    return html_table(caption, ["", *verdicts], rows)


def claim_sections(
    site: ReportSlice, printed: Sequence[ClaimLine], run: Sequence[ClaimLine], found: Sequence[PublishedTable]
) -> str:
    """Each claim with its verdicts, and the cells that they rest on."""
    judged, tables = {line["id"]: line for line in run}, {table.name: table for table in found}
    return "".join(_claim(line, judged.get(line["id"]), site) + _why(line, site, tables) for line in printed)


def _count(number: int) -> str:
    return str(number) if number else ""


def _claim(printed: ClaimLine, run: ClaimLine | None, site: ReportSlice) -> str:
    others = printed["shares_cells_with"].split()
    about = site.about.get(printed["id"], [])
    listed = facts(
        {
            "On printed numbers": _leading(printed, _printed(printed)),
            "Exceptions": printed["exceptions"],
            "On runs": _leading(printed, _run(run)) if run else _run(run),
            "About": joined(_product(name, site) for name in about),
            "Shares cells with": joined(link(f"k-{slug(other)}", other) for other in others),
        }
    )
    verdicts = " ".join([slug(printed["verdict"]), *([slug(run["verdict"])] if run else [])])
    return (
        f'<article class="item claim" id="k-{slug(printed["id"])}" data-paper="{printed["paper"]}" '
        f'data-verdict="{verdicts}"><h3>{escape(printed["id"])}'
        f" <small>{escape(PAPERS.get(printed['paper'], printed['paper']))}, {escape(printed['place'])}</small></h3>"
        f"<p>{escape(printed['claim'])}</p>{listed}</article>"
    )


def _leading(line: ClaimLine, content: Content) -> Html:
    """A verdict and its numbers, as a link to the cells that they were computed from."""
    return Html(f'<a class="n" href="#x-{slug(line["id"])}">{markup(content)}</a>')


def _why(line: ClaimLine, site: ReportSlice, tables: Mapping[str, PublishedTable]) -> str:
    """The cells and points that a claim is about, each a link to what is behind it."""
    key = slug(line["id"])
    rows = [_row(site, tables, *row) for row in site.cells.get(line["id"], [])]
    items = "".join(f"<li>{markup(row)}</li>" for row in rows)
    listed = f"<ul class=cells>{items}</ul>" if rows else "<p>No number of a table or of a figure’s points.</p>"
    command = code(f"encore explain {claims_path('claims')} --row {shlex.quote(line['id'])}").markup
    return (
        f'<section class="why" id="x-{key}" tabindex="-1" aria-label="What {escape(line["id"])} rests on">'
        f"<h4>{escape(line['id'])} rests on</h4>{listed}<p>In a terminal: {command}</p>"
        f'<a class="close" href="#k-{key}">Close</a></section>'
    )


def _row(
    site: ReportSlice, tables: Mapping[str, PublishedTable], name: str, setting: str, row: str, columns: list[str]
) -> Html:
    """The cells of one row; the numbers of a figure stand below it, line by line."""
    if name not in tables:
        where: Content = link(f"d-{slug(name)}", name) if name in site.figures else name
        return joined([where, joined(filter(None, [setting, row, ", ".join(columns)]))], ": ")
    return joined([name, explanations.linked_numbers(tables[name], setting, row, columns)], ": ")


def _product(name: str, site: ReportSlice) -> Content:
    """A table or a figure, with a link to it where it is on the page."""
    if name in (*site.tables, *site.printed):
        return link(f"t-{slug(name)}", name)
    return link(f"f-{slug(name)}", f"figure {name}") if name in site.figures else name


def _printed(line: ClaimLine) -> Html:
    parts: list[Content] = [badge(line["verdict"])]
    if line["inequalities"] not in ("", "0"):
        needed = f", {line['needed']} needed" if line["needed"] != line["inequalities"] else ""
        parts.append(f"{line['held']} of {line['inequalities']} inequalities hold{needed}")
    if line["slimmest"]:
        parts.append(f"slimmest by {significant(line['slimmest'])}")
    if line["chance"]:
        parts.append(f"chance {significant(line['chance'], 2)}")
    return joined(parts, "; ")


def _run(line: ClaimLine | None) -> Content:
    """What it comes to on runs; ``proxy_data`` says that the data are not the paper's."""
    if line is None:
        return "not judged: claims.csv was not made for this configuration"
    parts: list[Content] = [badge(line["verdict"])]
    if line["why"]:
        parts.append(line["why"])
    if line["inequalities"]:
        parts.append(f"{line['held']} of {line['inequalities']} inequalities lie on its side")
    if line["weakest"]:
        parts.append(f"weakest: {line['weakest']}: {_estimate(line)}")
    if line["seeds"]:
        parts.append(f"{line['seeds']} seed{'s' if line['seeds'] != '1' else ''}")
    if line["detectable"]:
        parts.append(f"could have shown {significant(line['detectable'])}")
    return joined(parts, "; ")


def _estimate(line: ClaimLine) -> str:
    low, high = significant(line["interval_low"]), significant(line["interval_high"])
    return significant(line["estimate"]) + (f" [{low}, {high}]" if low and high else "")


def claims_path(name: str) -> Path:
    """The file of some claims."""
    return RESULTS / f"{name}.csv"

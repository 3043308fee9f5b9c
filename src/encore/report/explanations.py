"""The explanation of each number of a table: its line of the CSV, what it was read from, and the command that shows it.

An explanation is a section of its own that is shown when its link is followed, so it needs no program.
"""

import shlex
from collections.abc import Iterator
from html import escape

from encore.plan.tables.layout import Column, Row
from encore.report.markup import Content, Html, code, count, facts, joined, link, significant, slug
from encore.report.published_tables import PublishedTable
from encore.report.records import ArtifactRecords
from encore.report.slice import RESULTS, ReportSlice

DIGITS = 6


def cell_explanations(shown: PublishedTable, records: ArtifactRecords, site: ReportSlice) -> Iterator[str]:
    """One for each cell that shows a number."""
    for row in shown.layout.rows:
        for column in shown.layout.shown():
            line = shown.lines.get((row.setting, row.id, column.id), {})
            if found := _facts(shown, row, column, line, records, site):
                yield _section(shown, row, column, found)


def has_explanation(shown: PublishedTable, row: Row, column: Column) -> bool:
    """Whether a cell has a number, ours or printed, and so an explanation."""
    line = shown.lines.get((row.setting, row.id, column.id), {})
    return bool(line.get("reproduced") or _printed(shown, row, column))


def cell_place(shown: PublishedTable, row: Row, column: Column) -> str:
    """The end of the names of a cell and of its explanation."""
    numbers = shown.layout.rows.index(row), shown.layout.columns.index(column)
    return f"-{slug(shown.name)}-{numbers[0]}-{numbers[1]}"


def linked_numbers(shown: PublishedTable, setting: str, name: str, columns: list[str]) -> Html:
    """Numbers of a row as the table shows them, each a link to its explanation if it has one."""
    row = next((row for row in shown.layout.rows if (row.setting, row.id) == (setting, name)), None)
    head = f"{row.label if row else name}{f' [{setting}]' if setting else ''}"
    if row is None:
        return joined([f"{head}: not a row of this run"])
    by_id = shown.columns()
    return joined([head, joined(_number(shown, row, by_id.get(each), each) for each in columns)], " ")


def _number(shown: PublishedTable, row: Row, column: Column | None, name: str) -> Html:
    if column is None or column.hidden or not has_explanation(shown, row, column):
        return joined([f"{column.label if column else name} –"])
    return joined([column.label, link(f"w{cell_place(shown, row, column)}", shown.entry(row, column))], " ")


def _section(shown: PublishedTable, row: Row, column: Column, found: str) -> str:
    end = cell_place(shown, row, column)
    setting = f" [{row.setting}]" if row.setting else ""
    title = f"{shown.name}: {row.label}{setting}, {column.label}"
    return (
        f'<section class="why" id="w{end}" tabindex="-1" aria-label="{escape(title)}"><h4>{escape(title)}</h4>'
        f'{found}<a class="close" href="#c{end}">Close</a></section>'
    )


def _facts(
    shown: PublishedTable, row: Row, column: Column, line: dict[str, str], records: ArtifactRecords, site: ReportSlice
) -> str:
    printed = _printed(shown, row, column)
    if not shown.made:
        target = f"{RESULTS}/tables/{shown.name}.csv"
        listed: dict[str, Content] = {
            "Printed": printed,
            "Copied from": row.reported_only,
            "In": shown.layout.reported or "",
        }
        return facts(listed | {"Ours": joined(["not run; ", code(site.command(target))], "")}) if printed else ""
    if not has_explanation(shown, row, column):
        return ""
    return facts(
        {
            "Ours": _ours(line),
            "Printed": printed + (f", copied from {row.reported_only}" if row.reported_only else ""),
            "Ours less the paper's": significant(line["difference"], DIGITS),
            "Any order of ties": _between(line["tie_low"], line["tie_high"]),
            "Difference to the control": _between(line["interval_low"], line["interval_high"], " (95 %)"),
            **_comparisons(line),
            "Smallest gain it could show": significant(line["detectable"]),
            "Queries": _queries(line),
            "Verdict": line["verdict"],
            "Measure": " ".join(filter(None, [line["measure"], line["dataset"], line["split"]])),
            "Collection": line["collection"],
            "System": code(line["system"]) if line["system"] else "",
            "Reads": _reads(shown, row, column, records),
            "In a terminal": code(_explain(shown, row, column)),
        }
    )


def _ours(line: dict[str, str]) -> str:
    if not line["reproduced"]:
        return "nothing of ours stands here"
    parts = [line["reproduced"], f"± {significant(line['sd'])}" if line["sd"] else ""]
    seeds = line["seeds"]
    return " ".join(filter(None, [*parts, f"over {seeds} seed{'s' if seeds != '1' else ''}" if seeds else ""]))


def _between(low: str, high: str, more: str = "") -> str:
    return f"{significant(low, DIGITS)} to {significant(high, DIGITS)}{more}" if low and high else ""


def _comparisons(line: dict[str, str]) -> dict[str, Content]:
    """The tests against each comparator of the table."""
    others = [key.removeprefix("delta_") for key in line if key.startswith("delta_")]
    kinds = {"p": "p", "p_holm": "Holm", "p_ttest_one_seed": "t-test of one seed", "p_randomisation": "randomisation"}
    tests_by_row: dict[str, Content] = {}
    for other in others:
        found = {name: line.get(f"{key}_{other}", "") for key, name in kinds.items()}
        tests = [f"{name} {significant(value)}" for name, value in found.items() if value]
        if line[f"delta_{other}"]:
            tests_by_row[f"Less {other}"] = "; ".join([significant(line[f"delta_{other}"], DIGITS), ", ".join(tests)])
    return tests_by_row


def _queries(line: dict[str, str]) -> str:
    judged, answered = line["queries_judged"], line["queries_answered"]
    return f"{count(int(judged))} judged, {count(int(answered))} answered" if judged else ""


def _printed(shown: PublishedTable, row: Row, column: Column) -> str:
    """What the paper prints, as it prints it."""
    return shown.words.get((row.setting, row.id, column.id), "")


def _reads(shown: PublishedTable, row: Row, column: Column, records: ArtifactRecords) -> Content:
    """Links to what the cell was computed from; of a mean or a gain, to what its parts were."""
    columns = shown.columns()
    requests = [requests for each in _parts(column, columns) for requests in [row.cells.get(each.id)] if requests]
    if column.gain:
        rows = [other for other in shown.layout.rows if other.setting == row.setting and other.id == column.gain.over]
        parts = _parts(columns[column.gain.of], columns)
        requests += [other.cells[part.id] for other in [row, *rows] for part in parts]
    reads = {read.folder: read for cell in requests for read in cell.reads}
    files = dict.fromkeys(cell.record for cell in requests if cell.record)
    links = (link(records[folder].key, folder.removeprefix("results/"), class_="read") for folder in reads)
    return joined([*links, *map(code, files)])


def _parts(column: Column, columns: dict[str, Column]) -> list[Column]:
    """A column, or those that it is a mean of."""
    if not column.mean_of:
        return [column]
    return [inner for part in column.mean_of for inner in _parts(columns[part], columns)]


def _explain(shown: PublishedTable, row: Row, column: Column) -> str:
    setting = ["--setting", row.setting] if row.setting else []
    table = f"{RESULTS}/tables/{shown.name}.csv"
    return shlex.join(["encore", "explain", table, "--row", row.id, *setting, "--column", column.id])

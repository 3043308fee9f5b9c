"""The whole page: its parts in order, with their style and their program inside it."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from encore.report import artifacts, claims, confounds, figures, published_tables, run_summary, tables
from encore.report.published_tables import PAPERS, PublishedTable, paper_of
from encore.report.records import ArtifactRecords
from encore.report.slice import ReportSlice
from encore.reporting.tables.footnotes import PROXY_DATA

HERE = Path(__file__).parent
PARTS = {
    "summary": "Summary",
    "claims": "Claims",
    "tables": "Tables",
    "figures": "Figures",
    "efficiency": "Efficiency",
    "run": "What was run",
    "confounds": "Confound ledger",
    "artifacts": "Artifacts",
}


def render_page(site: ReportSlice) -> str:
    """The page of what is there.

    Raises:
        EncoreError: a product that it shows is missing or damaged.
    """
    found = published_tables.all_tables(site)
    drawn = figures.read_figures(site)
    records = ArtifactRecords(
        [*(folder for table in found for folder in table.folders()), *figures.figure_folders(drawn)]
    )
    printed = claims.read_claim_lines("claims_printed")
    run = claims.read_claim_lines("claims") if site.claims else []
    parts = {
        "summary": _summary(site, found, printed, run),
        "claims": claims.claim_sections(site, printed, run, found),
        "tables": "".join(tables.table_section(table, records, site) for table in found),
        "figures": figures.figure_sections(drawn, records),
        "efficiency": run_summary.efficiency_tables(records),
        "run": run_summary.data_table(records, site)
        + run_summary.training_table(records)
        + run_summary.cost_table(records),
        "confounds": _CONFOUNDS + confounds.confound_table(found, records, site),
        "artifacts": _ARTIFACTS + artifacts.environments(records) + "".join(artifacts.artifact_sections(records)),
    }
    body = "".join(f'<section id="{key}"><h2>{PARTS[key]}</h2>{part}</section>\n' for key, part in parts.items())
    style, program = ((HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>Encore: {escape(site.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"{_head(site, found, printed, run)}<main>\n{body}</main>\n<script>\n{program}</script>\n</body>\n</html>\n"
    )


_CONFOUNDS = (
    "<p>In what, besides what a table is about, the rows of one setting differ, of the lowest seed. A control spends "
    "what an objective spends on fine-tuning: such rows are listed too, and are meant to be.</p>"
)
_ARTIFACTS = (
    "<p>Each number leads to what it was computed from, and that to what it was made from, down to the raw text. "
    "<code>encore audit</code> compares all digests with the files.</p>"
)


def _head(
    site: ReportSlice,
    found: Sequence[PublishedTable],
    printed: Sequence[claims.ClaimLine],
    run: Sequence[claims.ClaimLine],
) -> str:
    papers = dict.fromkeys([*(paper_of(table.name) for table in found), *(line["paper"] for line in printed)])
    verdicts = {claims.slug(line["verdict"]): line["verdict"] for line in (*printed, *run)}
    links = "".join(f'<a href="#{key}">{name}</a>' for key, name in PARTS.items())
    note = f"<p>{PROXY_DATA}</p>" if site.proxy_data else ""
    return (
        f'<header><h1>Encore: {escape(site.title)}</h1>{note}<p class="legend">In tables: <b>1.23</b> ours, in bold '
        'the best; <i class="p">(1.20; +0.03)</i> the paper’s, and ours less it. Follow a number to what is behind it.'
        "</p></header>\n"
        f'<nav aria-label="Parts">{links}</nav>\n'
        '<form id="filter" role="search" hidden><label>Search <input type="search" id="q" autocomplete="off"></label>'
        f"{_choice('paper', 'Paper', {key: PAPERS.get(key, key) for key in papers})}"
        f"{_choice('state', 'Tables', {'made': 'made', 'printed': 'printed only'})}"
        f"{_choice('verdict', 'Claims', verdicts)}"
        '<button type="reset">Clear</button><output id="found" aria-live="polite"></output></form>\n'
    )


def _choice(key: str, label: str, options: dict[str, str]) -> str:
    listed = "".join(f'<option value="{escape(value)}">{escape(name)}</option>' for value, name in options.items())
    return f'<label>{label} <select id="{key}"><option value="">all</option>{listed}</select></label>'


def _summary(
    site: ReportSlice,
    found: Sequence[PublishedTable],
    printed: Sequence[claims.ClaimLine],
    run: Sequence[claims.ClaimLine],
) -> str:
    ready = [table for table in found if table.made]
    rest = [table for table in found if not table.made]
    numbers = sum(len(table.words) for table in found)
    counts = (
        f"<p>{len(ready)} tables are made of this configuration, {len(site.figures)} figures; of {len(rest)} more the "
        f"printed numbers are shown. In all {numbers:,} printed numbers, {len(printed)} claims.</p>"
    )
    judged = claims.verdict_counts(printed, "Claims on the papers’ printed numbers")
    judged += claims.verdict_counts(run, "Claims on what was run") if run else ""
    return counts + judged + _contents("Made", ready) + _contents("Not run here: printed numbers only", rest)


def _contents(title: str, found: Iterable[PublishedTable]) -> str:
    links = "".join(
        f'<li><a href="#{each.place}">{escape(each.name)}</a> {escape(each.layout.title)}</li>' for each in found
    )
    return f"<h3>{title}</h3><ul class=contents>{links}</ul>" if links else ""

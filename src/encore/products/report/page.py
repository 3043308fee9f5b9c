"""The page: what it shows is read here, and the templates in ``report/templates`` turn it into HTML."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from encore.errors import EncoreError
from encore.products.report import claims, confounds, figures, tables
from encore.products.report.claims import ShownClaim
from encore.products.report.figures import ShownFigure
from encore.products.report.records import ArtifactRecords, Runs, headline_data, read_run, summarise_run
from encore.products.report.slice import ReportSlice, slug
from encore.products.report.tables import ShownTable
from encore.products.slices import about_data
from encore.storage import manifest, typed
from encore.storage.files import canonical, sha256, write_json, write_text

PAGE, RUNS = "index.html", "index.runs.json"


@dataclass(frozen=True)
class PageContent:
    """What a page shows: a function of files in ``results/`` and of the records of jobs."""

    site: ReportSlice
    tables: list[ShownTable]
    figures: list[ShownFigure]
    claims: list[ShownClaim]
    records: ArtifactRecords


def read_content(site: ReportSlice, runs: Runs) -> PageContent:
    """Read what a page shows.

    Args:
        runs: gives the record of an artifact's job by its folder.
    """
    shown, drawn = tables.read_tables(site), figures.read_figures(site)
    folders = [folder for table in shown for folder in table.folders()]
    folders += [folder for figure in drawn for row in figure.rows for folder in row.reads]
    return PageContent(site, shown, drawn, claims.read_claims(site, shown), ArtifactRecords(folders, runs))


def render_page(content: PageContent) -> str:
    """The page as text; equal contents give equal bytes."""
    environment = jinja2.Environment(  # text is escaped, and a name that nobody gives is an error
        loader=jinja2.PackageLoader("encore.products.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {each.__name__: each for each in FILTERS}
    environment.tests["numeric"] = _is_numeric
    return environment.get_template("page.html.j2").render(_names(content))


def _names(content: PageContent) -> dict[str, Any]:
    """What the templates know."""
    shown, records = content.tables, content.records
    made = [table for table in shown if table.made]
    verdicts = claims.count_verdicts(claim.run for claim in content.claims if claim.run)
    seen = dict.fromkeys([*(table.paper for table in shown), *(claim.stated.paper for claim in content.claims)])
    return vars(content) | {
        "about_data": about_data(content.site.proxy_data),
        "papers": {key: content.site.papers.get(key, key) for key in seen},
        "made": made,
        "headline": made[0] if made else None,
        "data": headline_data(made[0], records) if made else None,
        "printed": tables.count_printed(shown),
        "verdicts": verdicts,
        "meanings": {each.verdict: claims.VERDICTS.get(each.verdict, ("", ""))[1] for each in verdicts},
        "artifacts": records.all(),
        "run": summarise_run(records),
        "confounds": confounds.find_confounds(shown, records, content.site),
    }


def _is_numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def count(value: object) -> str:
    """A whole number with commas; anything else unchanged."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def counted(value: int | str, one: str, many: str = "") -> str:
    """A number with its noun: ``1 table``, ``2 tables``."""
    return f"{count(int(value))} {one if int(value) == 1 else many or f'{one}s'}"


def significant(value: float | str, digits: int = 3) -> str:
    """A number, short."""
    text = f"{float(value):.{digits}g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def between(ends: Sequence[float]) -> str:
    """An interval in words."""
    return f"{significant(ends[0], 6)} to {significant(ends[1], 6)}"


def along(value: float, reach: float) -> str:
    """Where a value is on an axis from -reach to reach, in percent of its length, with a margin at either end."""
    return f"{50 + 47 * value / reach:.2f}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever people would say."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:,.3g} h"


def milliseconds(value: float) -> str:
    """A latency; whole milliseconds from a second on."""
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def size(of: int) -> str:
    """Bytes as people say them."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if of >= 2**power:
            return f"{of / 2**power:.3g} {unit}"
    return f"{of} bytes"


FILTERS: tuple[Callable[..., Any], ...] = (along, between, count, counted, duration, milliseconds, significant, size)
FILTERS += (canonical, slug, claims.rank, claims.tone, str.removeprefix)


def render_again(folder: Path) -> str:
    """The page of a folder rendered again, from its slice of the plan, the records of jobs next to it and ``results/``.

    Raises:
        OSError: the manifest or the records are missing.
    """
    site = ReportSlice.model_validate(json.loads((folder / manifest.MANIFEST).read_text())["spec"])
    runs = json.loads((folder / RUNS).read_text())
    return render_page(read_content(site, lambda artifact: runs.get(artifact, {})))


def _verify(record: Path) -> None:
    """Compare a product's files with its manifest."""
    try:
        outputs = json.loads(record.read_text())["outputs"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoreError(f"{record} is not a manifest ({error}); remove it and run snakemake again") from error
    for name, expected in outputs.items():
        path = record.parent / name
        if not path.is_file() or sha256(path) != expected["sha256"]:
            fix = typed.encore("audit", "--prune")
            raise EncoreError(f"{path} is not what its manifest says; run `{fix}`, then snakemake again")


def write_page(folder: Path, site: ReportSlice, products: Path) -> str:
    """Write the page, and the records of jobs that it shows."""
    for record in site.others(folder):
        _verify(record)
    page = read_content(site, read_run)
    write_json(folder / RUNS, page.records.runs())
    write_text(folder / PAGE, render_page(page))
    return f"report: {(folder / PAGE).stat().st_size / 2**20:.1f} MiB in {folder}"

"""What the audit does over again: every claim is judged, and the report's numbers and digests are looked up.

A digest cannot tell a number that was altered together with its manifest; this can. Files that are bad by themselves,
or that other code made, are not compared: the audit lists them already.
"""

import csv
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from encore.claims.slice import CLAIMS, PRINTED
from encore.commands.audit import REPORT, AuditReport, Finding, is_of_this_code
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.plan.project import CATALOGUE
from encore.report.plan import report_plan
from encore.storage import manifest
from encore.storage.files import canonical

NAMED = 3  # what differs is named up to so many times
_TIMED = re.compile(
    r"<dt>Made</dt><dd>.*?</dd>|<table[^>]*><caption>(?:Training|Cost by stage|Environments)</caption>.*?</table>",
    re.DOTALL,
)  # what run.json says, which may change while nothing else does


def recompute_products(plan: Plan, run: Path, report: AuditReport) -> None:
    """Add to an audit's report what claims and the page show that does not come out again.

    Args:
        run: the run's file.
    """
    bad = {finding.place for finding in report.findings}
    bad_products = {cell.split(":")[0] for finding in report.findings for cell in finding.cells}
    places = {name: Path("results") / f"{name}.{manifest.MANIFEST}" for name in (PRINTED, CLAIMS)}
    judges = {
        PRINTED: lambda folder: _judge_printed(plan, folder),
        CLAIMS: lambda folder: _judge(places[CLAIMS], folder),
    }
    for name, place in places.items():
        if _can_be_compared(place, bad) and name not in bad_products:
            with _found(place, report):
                recompute_claims(name, place, judges[name], report)
    if _can_be_compared(REPORT, bad):
        with _found(REPORT, report):
            recompute_pages(report)
            if canonical(json.loads(REPORT.read_text())["spec"]) != canonical(report_plan(plan, run)):
                report.notes.append(
                    "results/report/index.html does not show all that is made; run snakemake for it again"
                )


@contextmanager
def _found(place: Path, report: AuditReport) -> Iterator[None]:
    """Whatever damage raises while a product is made again is a finding about the product."""
    try:
        yield
    except Exception as error:
        reason = f"what {place} is about cannot be made again ({type(error).__name__}: {str(error)[:200]})"
        report.findings.append(Finding(str(place), reason))


def _can_be_compared(place: Path, bad: set[str]) -> bool:
    """Whether a product is there, is what its manifest says, and was made by the code of today."""
    if not place.is_file() or str(place) in bad:
        return False
    return bool(json.loads(place.read_text()).get("code")) and is_of_this_code(place)


def _judge_printed(plan: Plan, folder: Path) -> None:
    from encore.claims import printed_claims

    printed_claims.write_printed(folder / f"{PRINTED}.csv", CATALOGUE / "papers", plan.catalogue)


def _judge(place: Path, folder: Path) -> None:
    from encore.claims import run_claims

    record = json.loads(place.read_text())
    run_claims.write_run_claims(folder / f"{CLAIMS}.csv", run_claims.ClaimsSlice.model_validate(record["spec"]))


def recompute_claims(name: str, place: Path, judge: Callable[[Path], None], report: AuditReport) -> None:
    """Judge claims again into a temporary folder, and report each difference from the results as a finding.

    Args:
        name: the claims' files in ``results/``, without ending.
        place: their manifest, which findings are listed under.
        judge: writes the claims into a given folder.
        report: the audit's report, to which findings are added.
    """
    with TemporaryDirectory() as folder:
        try:
            judge(Path(folder))
        except EncoreError as error:
            report.findings.append(Finding(str(place), f"results/{name}.csv cannot be judged again: {error}"))
            return
        reasons = list(_differences(Path(f"results/{name}.csv"), Path(folder) / f"{name}.csv"))
        page = Path(f"results/{name}.md")
        if page.read_bytes() != (Path(folder) / page.name).read_bytes():
            reasons.append(f"{page} is not what comes out again")
    report.findings += [Finding(str(place), reason) for reason in reasons]


def _differences(made: Path, again: Path) -> Iterator[str]:
    """The lines that differ, by the claim's id and the first column that does."""
    if made.read_bytes() == again.read_bytes():
        return
    lines, expected = _lines(made), _lines(again)
    found = [f"{made} has other claims or columns than are judged"] if [*lines] != [*expected] else []
    for claim in expected.keys() & lines.keys():
        for column, value in expected[claim].items():
            if lines[claim].get(column) != value:
                found.append(f"{made}: {claim}: {column} is {lines[claim].get(column)!r}, judged again {value!r}")
                break
    yield from _first(sorted(found) or [f"{made} has other bytes than come out again"], str(made))


def _lines(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {line.get("id", ""): line for line in csv.DictReader(file)}


def recompute_pages(report: AuditReport) -> None:
    """Compare the page, place by place, with what its products and artifacts say now."""
    from encore.report.build import PAGE
    from encore.report.page import render_page
    from encore.report.slice import ReportSlice

    page = REPORT.with_name(PAGE)
    try:
        expected = _places(render_page(ReportSlice.model_validate(json.loads(REPORT.read_text())["spec"])))
    except (EncoreError, OSError) as error:
        report.findings.append(Finding(str(REPORT), f"{page} cannot be made again: {error}"))
        return
    shown = _places(page.read_text(encoding="utf-8"))
    differ = [place for place in {**expected, **shown} if expected.get(place) != shown.get(place)]
    reasons = [f"{page}#{place} does not show what lies in results/" for place in differ]
    report.findings += [Finding(str(REPORT), reason) for reason in _first(reasons, str(page))]


def _places(text: str) -> dict[str, str]:
    """What stands on a page, by the nearest name before it; without times, style and program."""
    body = _TIMED.sub("", text.partition("<body>")[2].partition("<script>")[0])
    parts = re.split(r' id="([^"]+)"', body)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def _first(reasons: list[str], place: str) -> list[str]:
    """The first reasons, and how many more there are."""
    more = len(reasons) - NAMED
    return reasons[:NAMED] + ([f"{place}: {more} more places differ"] if more > 0 else [])

"""What the audit makes again: every table, figure and claim, and the report.

A digest cannot tell a number that was altered together with its manifest; this can. Products that are bad already, or
that rest on an artifact that is, are not made again. A difference from what other code made is a note.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from encore.commands import remake
from encore.commands.audit import REPORT, AuditReport, Finding, MadeProduct, is_of_this_code
from encore.commands.remake import NAMED
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.report.plan import report_plan
from encore.storage.files import canonical

_TIMED = re.compile(
    r"<dt>Made</dt><dd>.*?</dd>|<table[^>]*><caption>(?:Training|Cost by stage|Environments)</caption>.*?</table>",
    re.DOTALL,
)  # what run.json says, which may change while nothing else does


def recompute_products(plan: Plan, run: Path, report: AuditReport) -> None:
    """Add to an audit's report what tables, figures, claims and the page show that does not come out again.

    Args:
        run: the run's file.
    """
    bad = {finding.place for finding in report.findings}
    bad_products = {cell.split(":")[0] for finding in report.findings for cell in finding.cells}
    for product in report.products:
        if product.name not in bad_products:
            with _found(product.place, report):
                recompute_product(plan, product, report)
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


def recompute_product(plan: Plan, product: MadeProduct, report: AuditReport) -> None:
    """Make a table, a figure or the claims again, and add to an audit's report what differs."""
    place = product.place
    reasons = remake.differences(product.rule, place, product.content, plan.catalogue)
    if is_of_this_code(place):
        report.findings += [Finding(str(place), reason) for reason in reasons]
    elif reasons:
        report.notes.append(f"{place}: with the code of today it comes out otherwise; run snakemake for it again")
    if not remake.same_pictures(place):
        report.notes.append(f"{place}: another version of matplotlib drew it, so only its data were compared")


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

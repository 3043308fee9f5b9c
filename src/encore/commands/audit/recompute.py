"""What the audit makes again: every table, figure and claim, and the report.

A digest cannot tell a number that was altered together with its manifest; this can. Products that are bad already, or
that rest on an artifact that is, are not made again. What other code made must come out again too: who forges a number
can forge the digest of the code that made it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from encore.commands.audit import remake
from encore.commands.audit.findings import REPORT, AuditReport, Finding, MadeProduct
from encore.commands.audit.products import is_of_this_code
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.claims.entries import PRINTED
from encore.products.claims.plan import printed_plan
from encore.products.report.plan import report_plan
from encore.storage.files import canonical


def recompute_products(plan: Plan, run: Path, report: AuditReport) -> None:
    """Add to an audit's report what tables, figures, claims and the page show that does not come out again.

    Args:
        run: the run's file.
    """
    remake_products(plan.catalogue, report)
    recompute_report(plan, run, report)


def recompute_report(plan: Plan, run: Path, report: AuditReport) -> None:
    """Add what the page shows that does not come out again."""
    bad = {finding.place for finding in report.findings}
    if str(REPORT) not in report.others and _can_be_compared(REPORT, bad):
        with _found(REPORT, report):
            spec, planned = json.loads(REPORT.read_text())["spec"], report_plan(plan, run)
            recompute_page(report)
            if spec["run"] == planned["run"] and spec["proxy_data"] != planned["proxy_data"]:
                report.findings.append(Finding(str(REPORT), f"{REPORT} has another `proxy_data` than {run}"))
            elif canonical(spec) != canonical(planned):
                report.notes.append(
                    "results/report/index.html does not show all that is made; run snakemake for it again"
                )


def remake_products(catalogue: Catalogue, report: AuditReport) -> None:
    """Add to an audit's report what tables, figures and claims show that does not come out again."""
    bad_products = {cell.split(":")[0] for finding in report.findings for cell in finding.cells}
    for product in report.products:
        if product.name not in bad_products:
            with _found(product.place, report):
                recompute_product(catalogue, product, report)


@contextmanager
def _found(place: Path, report: AuditReport) -> Iterator[None]:
    """Whatever damage raises while a product is made again is a finding about the product."""
    try:
        yield
    except Exception as error:
        reason = f"what {place} is about cannot be made again ({type(error).__name__}: {str(error)[:200]})"
        report.findings.append(Finding(str(place), reason))


def _can_be_compared(place: Path, bad: set[str]) -> bool:
    """Whether a product is there and is what its manifest says."""
    return place.is_file() and str(place) not in bad


def recompute_product(catalogue: Catalogue, product: MadeProduct, report: AuditReport) -> None:
    """Make a table, a figure or the claims again, and add to an audit's report what differs."""
    place = product.place
    if product.rule == PRINTED and canonical(product.content) != canonical(printed_plan(catalogue)):
        report.notes.append(f"{place}: config/papers has other claims or numbers than it was made from")
        return
    for reason in remake.differences(product.rule, place, product.content, catalogue):
        report.findings.append(Finding(str(place), reason + _of_other_code(place)))
    if not remake.same_pictures(place):
        report.notes.append(f"{place}: another version of matplotlib drew it, so only its data were compared")


def recompute_page(report: AuditReport) -> None:
    """Make the page again from its products and artifacts, with the templates of today, and compare every byte."""
    from encore.products.report.build import PAGE, render_again

    page = REPORT.with_name(PAGE)
    try:
        expected = render_again(REPORT.parent)
    except (EncoreError, OSError) as error:
        report.findings.append(Finding(str(REPORT), f"{page} cannot be made again: {error}"))
        return
    shown = page.read_text(encoding="utf-8")
    if shown != expected:
        start = next(place for place, (one, other) in enumerate(zip_longest(shown, expected)) if one != other)
        place = expected[:start].rpartition(' id="')[2].partition('"')[0]
        line = expected.count("\n", 0, start) + 1
        reason = f"{page}#{place} does not show what lies in results/ (line {line} is the first that differs)"
        report.findings.append(Finding(str(REPORT), reason + _of_other_code(REPORT)))


def _of_other_code(place: Path) -> str:
    """What is added to a difference that an earlier or later version of Encore may have made."""
    return "" if is_of_this_code(place) else " (its manifest names other code than this version's)"

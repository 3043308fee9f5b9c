"""What the audit makes again: every table, figure and claim, and the report.

A digest cannot tell a number that was altered together with its manifest; this can. Products that are bad already, or
that rest on an artifact that is, are not made again. What other code made must come out again too: who forges a number
can forge the digest of the code that made it.

The numbers of a CSV are compared cell by cell, so that what was altered is named. Pictures that another version of
matplotlib drew, by their manifest, are counted as not audited.
"""

import csv
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from encore.commands.audit.findings import REPORT, AuditReport, Finding, MadeProduct, in_words, is_of_this_code
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.report.plan import report_plan
from encore.storage.files import canonical, readable_object
from encore.storage.machine import is_of_machine

NAMED = 3  # what differs is named up to so many times
PICTURES = (".png", ".svg")
KEYS = ("id", "label", "setting", "column", "panel")  # columns of a CSV that tell whose a line is


def recompute_report(plan: Plan, report: AuditReport) -> None:
    """Add what the page shows that is not what the plan says."""
    if not _is_in_order(REPORT, report):
        return
    with _found(REPORT, report):
        spec, planned = readable_object(REPORT)["spec"], report_plan(plan).dumped()
        if spec["run"] == planned["run"] and spec["proxy_data"] != planned["proxy_data"]:
            report.findings.append(Finding(str(REPORT), f"{REPORT} has another `proxy_data` than {plan.config.file}"))
        elif canonical(spec) != canonical(planned):
            report.notes.append("results/report/index.html does not show all that is made; run snakemake for it again")


def remake_products(report: AuditReport) -> None:
    """Make tables, figures and claims again, and add what differs to an audit's report."""
    bad_products = {cell.split(":")[0] for finding in report.findings for cell in finding.cells}
    for product in report.products:
        if product.name not in bad_products:
            with _found(product.place, report):
                recompute_product(product, report)


def remake_page(report: AuditReport) -> None:
    """Make the page again, and add what differs to an audit's report."""
    if _is_in_order(REPORT, report):
        with _found(REPORT, report):
            recompute_page(report)


def _is_in_order(place: Path, report: AuditReport) -> bool:
    """True if there is a product, which was audited and not found bad."""
    return place.is_file() and str(place) not in {*report.left_out, *(finding.place for finding in report.findings)}


@contextmanager
def _found(place: Path, report: AuditReport) -> Iterator[None]:
    """Whatever damage raises while a product is made again is a finding about it; what this machine lacks is none."""
    try:
        yield
    except Exception as error:
        if is_of_machine(error):
            raise
        reason = f"what {place} is about cannot be made again: {in_words(error)}"
        report.findings.append(Finding(str(place), reason))


def recompute_product(product: MadeProduct, report: AuditReport) -> None:
    """Make a table, a figure or the claims again, and add to an audit's report what differs."""
    place = product.place
    for reason in differences(product):
        report.findings.append(Finding(str(place), reason + _of_other_code(place)))
    if not same_pictures(place):
        for file in (file for file in product.files if file.endswith(PICTURES)):
            report.leave_out(str(place.with_name(file)), "drawn by another version of matplotlib, as its manifest says")


def recompute_page(report: AuditReport) -> None:
    """Make the page again from its products and artifacts, with the templates of today, and compare every byte."""
    from encore.products.report.page import PAGE, render_again

    page = REPORT.with_name(PAGE)
    try:
        expected = render_again(REPORT.parent)
    except (EncoreError, OSError) as error:
        if is_of_machine(error):
            raise
        report.findings.append(Finding(str(REPORT), f"{page} cannot be made again: {in_words(error)}"))
        return
    shown = page.read_text(encoding="utf-8")
    if shown != expected:
        start = next(place for place, (one, other) in enumerate(zip_longest(shown, expected)) if one != other)
        place = expected[:start].rpartition(' id="')[2].partition('"')[0]
        line = expected.count("\n", 0, start) + 1
        reason = f"{page}#{place} does not show what is in results/ (line {line} is the first that differs)"
        report.findings.append(Finding(str(REPORT), reason + _of_other_code(REPORT)))


def _of_other_code(place: Path) -> str:
    """What is added to a difference that an earlier or later version of Encore may have made."""
    return "" if is_of_this_code(place) else " (its manifest names other code than this version's)"


def differences(product: MadeProduct) -> list[str]:
    """What of a product differs when it is made again, in words."""
    place, kind = product.place, product.kind
    typed = kind.typed(json.loads(canonical(product.content)))  # in the order of its file
    with TemporaryDirectory() as folder:
        try:
            kind.write(Path(folder), typed, place.parent)
        except EncoreError as error:
            if is_of_machine(error):
                raise
            return [f"{kind.named(kind.stem, product.name)} cannot be made again: {error}"]
        files = [file for file in product.files if same_pictures(place) or not file.endswith(PICTURES)]
        return [reason for file in files for reason in _of_file(place.with_name(file), Path(folder) / file)]


def same_pictures(place: Path) -> bool:
    """True if today's matplotlib drew a product's pictures, or it has none."""
    drawn = readable_object(place).get("results") or {}
    return "matplotlib" not in drawn or bool(drawn["matplotlib"] == version("matplotlib"))


def _of_file(made: Path, again: Path) -> Iterator[str]:
    """How a file differs from the one that was made again."""
    if made.read_bytes() == again.read_bytes() or (made.suffix == ".png" and _same_picture(made, again)):
        return
    reasons = list(_of_lines(made, again)) if made.suffix == ".csv" else []
    yield from reasons[:NAMED] or [f"{made} is not what comes out again"]
    if len(reasons) > NAMED:
        yield f"{made}: {len(reasons) - NAMED} more lines differ"


def _of_lines(made: Path, again: Path) -> Iterator[str]:
    """The lines of a CSV that differ, each by the first column that does."""
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in (made, again))
    (header, *lines), (expected_header, *expected) = ([*csv.reader(text.splitlines(True))] or [[]] for text in texts)
    if header != expected_header or len(lines) != len(expected):
        yield f"{made} has other lines or columns than come out again"
        return
    for number, (line, right) in enumerate(zip(lines, expected, strict=True), 2):
        for column, found, wanted in zip_longest(header, line, right, fillvalue=""):
            if found != wanted:
                known = dict(zip(header, right, strict=False))
                name = ", ".join(known[key] for key in KEYS if known.get(key)) or f"line {number}"
                yield f"{made}: {name}: {column} is {found!r}, comes out again as {wanted!r}"
                break


def _same_picture(made: Path, again: Path) -> bool:
    """True if two PNG files have the same pixels, and the same of all else: texts, sizes, and no further frames."""
    import matplotlib.image
    import numpy as np

    try:
        same = _chunks(made) == _chunks(again)
        return same and bool(np.array_equal(matplotlib.image.imread(made), matplotlib.image.imread(again)))
    except (OSError, ValueError, SyntaxError, struct.error):  # what a damaged picture raises
        return False


def _chunks(path: Path) -> list[tuple[bytes, bytes]]:
    """The chunks of a PNG file, apart from those that hold pixels, which may be packed otherwise; then what follows."""
    found: list[tuple[bytes, bytes]] = []
    data, place = path.read_bytes(), 8  # bytes of its signature
    while not found or found[-1][0] != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, place)
        found.append((kind, data[place + 8 : place + 8 + length]))
        place += length + 12
    return [each for each in found if each[0] != b"IDAT"] + [(b"", data[place:])]

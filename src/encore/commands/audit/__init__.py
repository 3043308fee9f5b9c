"""``encore audit``: what is bad, how much was verified, and the root."""

import argparse
import sys
from pathlib import Path

from encore.storage.program import positive

from encore.commands.audit import audit, prune, recompute
from encore.commands.audit.findings import AuditReport, Finding
from encore.commands.plan import plan_of
from encore.errors import EncoreError
from encore.storage import typed
from encore.storage.root import compare_root


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("folder", nargs="?", type=Path, help="a copy of results from elsewhere; it needs no --config")
    parser.add_argument("--root", metavar="DIGITS", help="the root that you wrote down: other results are bad")
    parser.add_argument("--deep", action="store_true", help="evaluate runs again, and search a sample of queries again")
    parser.add_argument(
        "--queries", type=positive, default=20, metavar="N", help="of each run under --deep (default %(default)s)"
    )
    parser.add_argument("--prune", action="store_true", help="remove what is bad and all that was made from it")
    parser.add_argument("--yes", action="store_true", help="with --prune: without asking")


def answer(arguments: argparse.Namespace) -> int:
    """One line for each bad file, and a summary; 1 when anything is bad."""
    if arguments.folder:
        return _show_audit_of_copy(arguments)
    plan = plan_of(arguments)
    this = typed.called(arguments.config)
    report = audit.audit(plan, this)
    notes, findings = len(report.notes), len(report.findings)
    _print_findings(report.notes, report.findings)  # before anything else is tried
    recompute.recompute_products(plan, report)
    _print_findings(report.notes[notes:], report.findings[findings:])
    if arguments.prune:
        return _prune(prune.to_prune(plan, report), this, yes=arguments.yes)
    if arguments.deep:
        _check_deeply(report, arguments.queries)
    bad = len({finding.place for finding in report.findings})
    fix = f"; fix with `{typed.encore('audit', '--prune', run=this)}`" if bad else ""
    print(f"audit: {report.verified} artifacts verified, {bad} bad{fix}")
    print(report.scope)
    return _show_root(*compare_root(arguments.root), bad)


def _prune(places: list[str], run: str, *, yes: bool) -> int:
    """Remove what is bad if that is agreed to; 1 if it is not."""
    if not places:
        print("nothing to prune")
        return 0
    print("\n".join(f"{'removed' if yes else 'to be removed:'} {place}" for place in places), flush=True)
    if not yes and not _agreed(len(places)):
        print(f"nothing was removed; `{typed.encore('audit', '--prune', '--yes', run=run)}` removes it")
        return 1
    prune.prune(places)
    print(f"pruned; `{typed.snakemake(run=run)}` makes it again")
    return 0


def _agreed(count: int) -> bool:
    """True if a person at a terminal says yes."""
    return sys.stdin.isatty() and input(f"remove these {count}? [y/N] ").strip().lower() in ("y", "yes")


def _show_audit_of_copy(arguments: argparse.Namespace) -> int:
    from encore.commands.audit.copy import audit_copy

    if arguments.prune:
        raise EncoreError("--prune is for your own results; a copy is only read")
    queries = arguments.queries if arguments.deep else None
    report, wrong, root = audit_copy(arguments.folder, arguments.root, queries)
    _print_findings(report.notes, report.findings)
    bad = len({finding.place for finding in report.findings})
    known = "compared with no configuration; the papers' printed numbers are this checkout's"
    print(f"audit: {report.verified} artifacts verified by their own manifests, {bad} bad; {known}")
    print(report.scope)
    return _show_root(wrong, root, bad)


def _check_deeply(report: AuditReport, queries: int) -> None:
    from encore.commands.audit.deep import check_deeply

    before = len(report.findings)
    check_deeply(report, queries)
    _print_findings([], report.findings[before:])


def _show_root(wrong: str | None, root: str, bad: int) -> int:
    """The root as the last line, or what is wrong with it; 1 when that or anything else is bad."""
    print(f"bad: {wrong}" if wrong else root)
    return 1 if bad or wrong else 0


def _print_findings(notes: list[str], findings: list[Finding]) -> None:
    for note in notes:
        print(f"note: {note}")
    for finding in findings:
        print(f"bad: {finding}", flush=True)

"""``encore audit``: what is bad, how much was verified, and the root."""

import argparse
from pathlib import Path

from encore.storage.program import positive

from encore.storage.root import beginning_of_root


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("folder", nargs="?", type=Path, help="a copy of results from elsewhere; it needs no --config")
    parser.add_argument(
        "--tables", nargs="+", default=[], metavar="NAME", help="only what these tables or figures were made from"
    )
    parser.add_argument(
        "--root", type=beginning_of_root, metavar="DIGITS", help="the root that you wrote down: other results are bad"
    )
    parser.add_argument("--deep", action="store_true", help="evaluate runs again, and search a sample of queries again")
    parser.add_argument(
        "--queries", type=positive, default=20, metavar="N", help="of each run under --deep (default %(default)s)"
    )
    parser.add_argument("--prune", action="store_true", help="remove what is bad and all that was made from it")
    parser.add_argument("--yes", action="store_true", help="with --prune: without asking")


def answer(arguments: argparse.Namespace) -> int:
    """One line for each bad file, a summary, the root or what is wrong with it, and how much was not audited.

    1 where anything is bad, or where a product of the run itself is among what was not audited.
    """
    from encore.commands.audit.audit import agree_and_prune, audit, to_prune
    from encore.commands.audit.copies import audit_copy, known_of
    from encore.commands.audit.recompute import recompute_report, remake_page, remake_products
    from encore.commands.plan import plan_of
    from encore.errors import EncoreError
    from encore.storage.root import compare_root
    from encore.storage.typed import called, encore

    if arguments.deep and (arguments.tables or arguments.prune):
        raise EncoreError("--deep checks all results and removes nothing; give it without --tables and --prune")
    if arguments.tables and (arguments.folder or arguments.root):
        raise EncoreError("--tables is a part of your own results; a copy or a root is compared whole, without it")
    if arguments.folder:
        if arguments.prune:
            raise EncoreError("--prune is for your own results; a copy is only read")
        queries = arguments.queries if arguments.deep else None
        report, wrong, root = audit_copy(arguments.folder, arguments.root, queries)
        report.print_new()
        verified = f"{report.verified} artifacts verified by their own manifests, {report.bad} bad"
        print(f"audit: {verified}; {known_of(arguments.folder)}")
    else:
        plan, this = plan_of(arguments), called(arguments.config)
        report = audit(plan, this, arguments.tables)
        report.print_new()  # before anything else is tried
        remake_products(report)
        if not arguments.tables:
            remake_page(report)
            recompute_report(plan, report)
        report.print_new()
        if arguments.prune:
            print(report.not_audited, end="\n" * bool(report.not_audited))
            return agree_and_prune(to_prune(plan, report), this, yes=arguments.yes)
        if arguments.deep:
            from encore.commands.audit.deep import check_deeply

            check_deeply(report, arguments.queries)
            report.print_new()
        fix = f"; fix with `{encore('audit', '--prune', run=this)}`" if report.bad else ""
        print(f"audit: {report.verified} artifacts verified, {report.bad} bad{fix}")
        wrong, root = (None, "no root: only some tables") if arguments.tables else compare_root(arguments.root)
    print(report.scope)
    print(f"bad: {wrong}" if wrong else root)
    if report.not_audited:
        print(report.not_audited)
    return 1 if report.bad or wrong or report.is_partial else 0

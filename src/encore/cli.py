"""``encore``: what people ask about a run. What makes files is Snakemake's; see ``workflow/``."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.storage.program import run

from encore.commands import compare, explain, explain_product, flops
from encore.commands.audit import audit, prune, recompute
from encore.commands.audit.findings import AuditReport, Finding
from encore.commands.new import command as making
from encore.commands.preflight import command
from encore.commands.whatif import command as asking
from encore.config.lineage import split_index
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan import folders, index, ledger, project
from encore.plan.plan import Plan
from encore.storage import typed
from encore.storage.root import compare_root
from encore.targets import lineage_targets

NOT_DEEP = (
    "compared: digests, inputs, products made again; not made again: models, indexes, runs and scores (see --deep)"
)
ASKS = ("show", "explain", "flops")  # commands about a table or figure, which know the run that made it
RENAMED = {"budget": "flops", "path": "targets"}  # commands of older versions: what each is called now
RENAMED_FLAGS = {"preflight": {"--against": "--compare-finished"}}  # likewise their flags, by command


def main() -> None:
    """Parse the command line and answer."""
    parser = argparse.ArgumentParser(prog="encore", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    targets = _command(
        commands,
        "targets",
        show_targets,
        "print the targets of a lineage, a system, a source or a dataset, declared or not",
    )
    targets.add_argument("lineage", help="for example bert-base+costa~temperature=0.05+marco-bm25")
    checking = _command(
        commands, "audit", show_audit, "verify tables, figures, claims, the report and all that they were made from"
    )
    checking.add_argument("folder", nargs="?", type=Path, help="a copy of results from elsewhere; it needs no --config")
    checking.add_argument("--root", metavar="DIGITS", help="the root that you wrote down: other results are bad")
    checking.add_argument(
        "--deep", action="store_true", help="evaluate runs again, and search a sample of queries again"
    )
    checking.add_argument("--queries", type=int, default=20, metavar="N", help="of each run under --deep (default 20)")
    checking.add_argument("--prune", action="store_true", help="remove what is bad and all that was made from it")
    checking.add_argument("--yes", action="store_true", help="with --prune: without asking")
    packing = _command(
        commands, "crate", show_crate, "copy what was made, with all that it was made from, as an RO-Crate"
    )
    packing.add_argument("folder", type=Path, help="a new folder; `encore audit FOLDER` verifies it")
    table = _command(commands, "show", show_table, "print a table that was made, and where its files lie")
    table.add_argument("table", nargs="?", default="table1")
    explaining = _command(
        commands, "explain", show_explanation, "print what stands behind a cell, down to the raw text"
    )
    explaining.add_argument("table", help="results/tables/costa/table1.csv, a figure's file or results/claims.csv")
    explaining.add_argument("--row", required=True, help="a row's id or label, a figure's line, or a claim: C12")
    explaining.add_argument("--column", help="a column's id or label, or the place of a figure's point")
    explaining.add_argument("--setting", help="only under this setting, or in this panel, where there are several")
    explaining.add_argument("--json", action="store_true", help="as JSON")
    claimed = _command(commands, "claims", show_claims, "print what each claim of the papers says of their own numbers")
    claimed.add_argument("id", nargs="?", help="one claim: what decides it, and what of that is made: C48")
    claimed.add_argument("--runs", action="store_true", help="of what was run instead: results/claims.md")
    spending = _command(
        commands, "flops", show_flops, "print the floating-point operations that each row of a table spent"
    )
    spending.add_argument("table", nargs="?", default="table1")
    sourced = _command(commands, "ledger", show_ledger, "print where the values of steps and objectives come from")
    sourced.add_argument("--paper", help="one paper's ledger: a folder of config/papers")
    making.add_new(
        _command(commands, "new", making.new, "write a run's file for a collection of your own: config/NAME.yaml")
    )
    command.add_preflight(
        _command(commands, "preflight", show_preflight, "print what a run needs and what is missing, before it starts")
    )
    command.add_calibrate(
        _command(commands, "calibrate", show_calibration, "fit the rates of `encore preflight` to finished jobs")
    )
    asking.add_whatif(
        _command(commands, "whatif", show_whatif, "print the jobs, hours, cells and claims that a change would change")
    )
    compare.add_arguments(
        _command(commands, "compare", compare.compare, "print how close a run is to one that it should reproduce")
    )
    _command(commands, "schema", show_schema, "print the JSON schema of a run's configuration")
    if message := _old_words(sys.argv[1:]):
        run(lambda: _refuse(message))
    arguments = parser.parse_args()
    asked = getattr(arguments, "table", None) if sys.argv[1] in ASKS else None
    arguments.config = arguments.config or (index.read().run_of(asked) if asked else None) or project.DEFAULT_RUN
    run(lambda: arguments.answer(arguments))


def show_targets(arguments: argparse.Namespace) -> int:
    """The model's folder for every seed, if it is a lineage, then what Snakemake can be asked for."""
    plan = _plan(arguments)
    if texts := folders.named(plan, arguments.lineage):
        print("\n".join(texts))
        return 0
    if arguments.lineage in plan.catalogue.systems:
        print("\n".join(dict.fromkeys(lineage_targets(plan, arguments.lineage))))
        return 0
    if "+" not in arguments.lineage and (meant := folders.misspelt(plan, arguments.lineage)):
        raise EncoreError(meant)
    lineage = plan.resolve.lineage(split_index(arguments.lineage)[0])
    found = [plan.model(lineage, seed).manifest for seed in plan.config.seeds]
    found += lineage_targets(plan, arguments.lineage) if lineage.steps else []
    print("\n".join(dict.fromkeys(found)))
    return 0


def show_audit(arguments: argparse.Namespace) -> int:
    """One line for each bad file, and a summary; 1 when anything is bad."""
    if arguments.folder:
        return _show_audit_of_copy(arguments)
    plan = _plan(arguments)
    this = typed.called(arguments.config)
    report = audit.audit(plan, this)
    notes, findings = len(report.notes), len(report.findings)
    _print_findings(report.notes, report.findings)  # before anything else is tried
    recompute.recompute_products(plan, arguments.config, report)
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
    """Remove what is bad once that is agreed to; 1 where it is not."""
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
    """Whether a person who can answer says yes."""
    return sys.stdin.isatty() and input(f"remove these {count}? [y/N] ").strip().lower() in ("y", "yes")


def _show_audit_of_copy(arguments: argparse.Namespace) -> int:
    from encore.commands.audit.copy import audit_copy

    if arguments.prune:
        raise EncoreError("--prune is for results of one's own; a copy is only read")
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


def show_crate(arguments: argparse.Namespace) -> int:
    """The place of the crate, and how many files it has."""
    from encore.commands.crate import METADATA, write_crate

    title = _plan(arguments).config.title
    files = write_crate(title, arguments.config, arguments.folder)
    print(f"{arguments.folder / METADATA} describes {files} files; verify them with `encore audit {arguments.folder}`")
    return 0


def show_table(arguments: argparse.Namespace) -> int:
    """The Markdown of a table, and where everything of it lies."""
    from encore.reporting.tables import aligned_text

    _plan(arguments)
    name = arguments.table
    bold = "\033[1m{}\033[0m" if sys.stdout.isatty() else "{}"
    run = typed.called(arguments.config)
    print(aligned_text.show_table(Path("results/tables"), name, bold=bold, run=run), end="")
    print("\n".join(f"results/figures/{name}.{ending}" for ending in ("png", "svg", "csv")))
    return 0


def show_explanation(arguments: argparse.Namespace) -> int:
    """The chain from a cell to bytes: scores, run, index, models, negatives, corpus."""
    plan = _plan(arguments)
    if explain_product.is_product(plan, arguments.table):
        return explain_product.show_product(plan, arguments)
    if arguments.column is None:
        raise EncoreError("a cell of a table stands in a column; name it with --column")
    cells = explain.find_cells(plan, arguments.table, arguments.row, arguments.column, arguments.setting)
    chains = [(cell, list(explain.chain(plan, cell))) for cell in cells]
    if arguments.json:
        found = [explain.cell_json(*each) for each in chains]
        print(json.dumps(found[0] if len(found) == 1 else found, indent=1))
    else:
        print("\n\n".join(explain.cell_text(cell, links, explain.shown_in(cell)) for cell, links in chains))
    return 0


def show_claims(arguments: argparse.Namespace) -> int:
    """The page of the claims: made here from the printed numbers, or by the workflow from the runs; or one claim."""
    if arguments.id:
        from encore.claims import deciding

        print(deciding.claim_text(_plan(arguments), arguments.id, typed.called(arguments.config)))
        return 0
    if not arguments.runs:
        from encore.claims import pages
        from encore.claims import printed_claims as claims

        lines = claims.judged_lines(project.CATALOGUE / "papers", project.load_catalogue())
        print(pages.of_printed(claims.HEADER, lines), end="")
        return 0
    page = Path("results/claims.md")
    if not page.is_file():
        make = typed.snakemake("results/claims.csv", run=typed.called(arguments.config))
        raise EncoreError(f"{page} is missing; make it with: {make}")
    print(page.read_text(encoding="utf-8"), end="")
    return 0


def show_flops(arguments: argparse.Namespace) -> int:
    """Floating-point operations by row; 1 when a comparison is not fair."""
    rows = flops.flops_of_rows(_plan(arguments), arguments.table)
    print(flops.flops_text(rows))
    wrong = flops.budget_complaints(rows)
    for complaint in wrong:
        print(f"unfair: {complaint}")
    return 1 if wrong else 0


def show_ledger(arguments: argparse.Namespace) -> int:
    """A line for each value: what it is, where it stands, why; checked first."""
    catalogue = _plan(arguments).catalogue
    ledger.check(catalogue, project.CATALOGUE)
    entries = ledger.read(project.CATALOGUE)
    papers = {entry.paper for entry in entries}
    if arguments.paper and arguments.paper not in papers:
        raise EncoreError(f"there is no ledger of {arguments.paper!r}{nearest(arguments.paper, papers)}")
    shown = [entry for entry in entries if arguments.paper in (None, entry.paper)]
    print(ledger.table(shown, catalogue, project.CATALOGUE))
    return 0


def show_preflight(arguments: argparse.Namespace) -> int:
    """What a run needs; 1 when that is beyond a limit."""
    return command.preflight(_plan(arguments), arguments)


def show_calibration(arguments: argparse.Namespace) -> int:
    """How fast this machine is at what the run does."""
    return command.calibrate(_plan(arguments), arguments)


def show_whatif(arguments: argparse.Namespace) -> int:
    """What a change would do, without making it."""
    return asking.whatif(_plan(arguments), arguments.config, arguments)


def show_schema(arguments: argparse.Namespace) -> int:
    """The schema that ``config/schema.json`` holds, for editors."""
    from encore.config.run import RunConfig

    print(json.dumps(RunConfig.model_json_schema(), indent=1, sort_keys=True))
    return 0


def _old_words(words: list[str]) -> str:
    """What a command line with a command or flag of an older version is answered; empty for any other."""
    name, *flags = words or [""]
    if name in RENAMED:
        return f"`encore {name}` is now called `encore {RENAMED[name]}`; use that name"
    flag = next((flag for flag in flags if flag in RENAMED_FLAGS.get(name, {})), None)
    return f"`encore {name} {flag}` is now called `{RENAMED_FLAGS[name][flag]}`; use that name" if flag else ""


def _refuse(message: str) -> int:
    raise EncoreError(message)


def _command(
    commands: Any, name: str, answer: Callable[[argparse.Namespace], int], says: str
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=says, description=says)
    made = " (without: that of the run which made the table or figure, else the default)"
    command.add_argument("--config", type=Path, help=f"the run's configuration{made if name in ASKS else ''}")
    command.set_defaults(answer=answer)
    return command


def _plan(arguments: argparse.Namespace) -> Plan:
    """The plan with every declared table in it.

    Raises:
        EncoreError: this is not the root of the repository, or the configuration is wrong.
    """
    from encore.plan.tables import table_plan

    if not Path("Snakefile").is_file():
        raise EncoreError("there is no Snakefile here; run encore from the root of the repository")
    plan = project.load_plan(arguments.config)
    for name in plan.config.tables:
        table_plan(plan, name)
    return plan


if __name__ == "__main__":
    main()

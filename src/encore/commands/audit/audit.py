"""The audit: is each file behind what is published what its manifest says, and made from what the plan says?

Snakemake trusts what is in ``results/``; this does not. It recomputes every digest, compares every manifest with the
plan, and names the cells that rest on a bad file. ``recompute.py`` makes every product again.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from encore.commands.audit.findings import (
    REPORT,
    AuditReport,
    Finding,
    check_artifact,
    explained,
    problems_without_plan,
)
from encore.commands.audit.left_out import OtherRuns, added_files, reason_of, run_of_page
from encore.commands.audit.products import cells_behind, check_product, files_of, places_of
from encore.commands.audit.progress import Progress
from encore.commands.audit.recompute import remake_page, remake_products
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.claims.entries import CLAIMS, PRINTED
from encore.products.claims.plan import claims_plan, printed_plan
from encore.products.declared import declared
from encore.products.kinds import BY_RULE, kinds_of
from encore.products.known_numbers import CHECKS, checks_plan
from encore.products.slices import built_from
from encore.products.tables.plan import CURVES
from encore.storage import manifest, typed
from encore.storage.files import readable_object
from encore.storage.manifest import has_no_vectors
from encore.storage.program_files import CATALOGUE
from encore.storage.root import RESULTS, compare_root, manifests_behind, product_manifests

RECORDS = (manifest.MANIFEST, "run.json", "root.json", "index.json")


def audit(plan: Plan, run: str = "", only: Sequence[str] = ()) -> AuditReport:
    """Check everything behind the finished tables, figures and claims; one that was not made yet is a note.

    Args:
        run: the run's file, as commands name it. A product is left to another run's audit only where its own manifest
            says that it was built from another plan.
        only: the names of the tables and figures that are looked at, with what they were made from; all without.
    """
    refuse_endless_records()
    slices, report = _chosen(published_products(plan), only), AuditReport()
    declared_here = {*plan.config.tables, *plan.config.figures, CURVES, PRINTED, CHECKS}
    declared_here |= {CLAIMS} if plan.config.claims != "all" else set()  # others were requested, by any run
    others = OtherRuns(run)
    made: dict[str, list[Path]] = {}
    for name, content in slices.items():
        places = [place for place in places_of(name, content) if files_of(place)]
        if not places:
            report.notes.append(f"{_called(name, content)} is not made yet")
            continue
        is_ours = name in declared_here
        theirs = [each for each in places if built_from(each, content) is False and (others.made(each) or not is_ours)]
        if ours := [place for place in places if place not in theirs]:
            made[name] = ours
        if name == CURVES and (drawn := _of_fewer_steps(ours, content)):
            report.notes.append(
                f"{_called(name, content)} does not show all that is declared; run snakemake for it again"
            )
            slices[name] = drawn
        report.left_out |= {str(place): others.reason(place) for place in theirs}
        report.is_partial |= is_ours and bool(theirs)
    affected = cells_behind(plan, slices)
    wanted = {folder for folder, cells in affected.items() if any(cell.split(":")[0] in made for cell in cells)}
    progress = Progress(wanted)
    for folder, artifact in plan.made.items():
        if folder in wanted:
            check_artifact(artifact, tuple(affected[folder]), report)
            progress.add(folder)
    for name, places in made.items():
        for place in places:
            check_product(slices[name], place, report)
    report.notes += _removed_vectors(wanted)
    if files_of(REPORT) and (by := run_of_page()) not in (None, run):
        report.left_out[str(REPORT)] = reason_of(by)
        report.is_partial |= not only
    if only:
        return report  # what else there is was left out on purpose
    if str(REPORT) not in report.left_out:
        check_product(None, REPORT, report)
    known = {*report.left_out, *(str(place) for places in made.values() for place in places)}
    report.left_out |= {str(each): others.reason(each) for each in product_manifests() if str(each) not in known}
    report.findings += added_files(report)
    return report


def audit_copy(folder: Path, expected: str | None, queries: int | None = None) -> tuple[AuditReport, str | None, str]:
    """Audit a results folder, or the folder that holds one, that came from elsewhere: by what it says of itself.

    Every file is compared with its manifest, every manifest with those that name it as an input, and every product is
    made again. A copy cannot tell whether a configuration would have planned the same; compare its root for that.

    Args:
        expected: the beginning of a root that was written down elsewhere.
        queries: how many of each run are searched again by ``deep.check_deeply``; None for a quick audit.

    Returns:
        The audit's report, and what ``compare_root`` says.
    """
    catalogue, report = load_catalogue(CATALOGUE), AuditReport()
    with _inside(folder):
        refuse_endless_records()
        products = product_manifests()
        if not products:
            raise EncoreError(f"{folder} has no manifest of a table, a figure or claims; give a results folder")
        behind = manifests_behind(products)
        report.notes += _removed_vectors(str(Path(found).parent) for found in behind)
        progress = Progress(str(Path(found).parent) for found in behind if Path(found) not in products)
        for found in behind:
            if Path(found) not in products:
                made = str(Path(found).parent)
                reasons = list(explained(found, problems_without_plan(made)))
                report.findings += [Finding(made, reason) for reason in reasons]
                report.verified += not reasons
                progress.add(made)
        for place in products:
            check_product(readable_object(place).get("spec"), place, report)  # which says if it has none
        check_product(None, REPORT, report)
        report.findings += added_files(report)
        remake_products(catalogue, report)
        remake_page(report)
        if queries is not None:
            from encore.commands.audit.deep import check_deeply

            check_deeply(report, queries)
        return report, *compare_root(expected)


def refuse_endless_records() -> None:
    """Refuse pipes, sockets and devices in the place of manifests and other records, which are read whole."""
    for path in RESULTS.rglob("*.json"):
        if path.name.endswith(RECORDS) and path.exists() and not path.is_file() and not path.is_dir():
            raise EncoreError(f"{path} is a pipe or a device and no file; remove it, then repeat")


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in a folder whose ``results`` is that one, as manifests name their inputs, and whose ``config`` is ours."""
    own = folder / "results"
    with TemporaryDirectory() as place:
        for name, target in {"results": own if own.is_dir() else folder, CATALOGUE.name: CATALOGUE}.items():
            (Path(place) / name).symlink_to(target.resolve())
        with chdir(place):
            yield


def _removed_vectors(folders: Iterable[str]) -> Iterator[str]:
    """How many shards have no vectors to compare any more, if any."""
    if count := sum(has_no_vectors(Path(folder)) for folder in folders):
        yield f"the vectors of {count} shards were removed (`execution: keep_vectors: false`) and are not compared"


def published_products(plan: Plan) -> dict[str, dict[str, Any]]:
    """The slices of the tables and figures that are declared or in results, of known numbers, and of the claims."""
    claims = {CLAIMS: claims_plan(plan)} if files_of(Path(BY_RULE[CLAIMS].record)) else {}
    checks = {CHECKS: checks_plan(plan)} if plan.config.checks else {}
    return declared(plan) | {PRINTED: printed_plan(plan.catalogue)} | claims | checks


def _chosen(slices: dict[str, dict[str, Any]], only: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The slices of the named products; all without names."""
    for name in only:
        if name not in slices:
            raise EncoreError(f"--tables {name!r} is no table or figure of this run{nearest(name, slices)}")
    return {name: slices[name] for name in only} if only else slices


def to_prune(plan: Plan, report: AuditReport) -> list[str]:
    """Exactly what is bad and what was made from it: folders of artifacts, then files of products.

    Products that were not audited are none of it.
    """
    bad = {finding.place for finding in report.findings}
    for folder, artifact in plan.made.items():
        if any(parent.folder in bad for parent in artifact.inputs.values()):
            bad.add(folder)
    removed = sorted(place for place in bad if not place.endswith(manifest.MANIFEST) and os.path.lexists(place))
    slices = published_products(plan)
    affected = cells_behind(plan, slices)
    names = {cell.split(":")[0] for folder in bad for cell in affected.get(folder, [])}
    products = [place for name in sorted(names) for place in places_of(name, slices[name])]
    products += [Path(place) for place in sorted(bad) if place.endswith(manifest.MANIFEST)]
    for record in dict.fromkeys([*products, *([REPORT] if products else [])]):
        removed += sorted(map(str, files_of(record))) if str(record) not in report.left_out else []
    return removed


def agree_and_prune(places: list[str], run: str, *, yes: bool) -> int:
    """Remove what ``to_prune`` gave if a person at a terminal agrees to it, or has already; 1 if not."""
    if not places:
        print("nothing to prune")
        return 0
    print("\n".join(f"{'removed' if yes else 'to be removed:'} {place}" for place in places), flush=True)
    question = f"remove these {len(places)}? [y/N] "
    if not yes and not (sys.stdin.isatty() and input(question).strip().lower() in ("y", "yes")):
        print(f"nothing was removed; `{typed.encore('audit', '--prune', '--yes', run=run)}` removes it")
        return 1
    prune(places)
    print(f"pruned; `{typed.snakemake(run=run)}` makes it again")
    return 0


def prune(places: list[str]) -> None:
    """Remove files and folders, so that the ordinary command repairs."""
    for place in places:
        is_folder = Path(place).is_dir() and not Path(place).is_symlink()
        shutil.rmtree(place) if is_folder else Path(place).unlink()


def _of_fewer_steps(places: list[Path], content: dict[str, Any]) -> dict[str, Any] | None:
    """The slice that a figure of pre-training steps was drawn from, if it has only some of today's steps.

    It was drawn before another table was declared, which may call its steps otherwise.
    """
    try:
        (drawn,) = [json.loads(place.read_text())["spec"] for place in places if place.is_file()]
        shown = [row["seeds"] for row in drawn["rows"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    planned = [row["seeds"] for row in content["rows"]]
    fewer = 0 < len(shown) < len(planned) and all(seeds in planned for seeds in shown)
    return drawn if fewer and drawn["name"] == content["name"] else None


def _called(name: str, content: dict[str, Any]) -> str:
    kind = kinds_of(name, content)[0]
    return kind.files[0] if kind.category in ("Claims", "Checks") else f"{kind.category.lower()[:-1]} {name}"

"""The audit: is each file behind what is published what its manifest says, and made from what the plan says?

Snakemake trusts what is in ``results/``; this does not. It recomputes every digest, compares every manifest with the
plan, and names the cells that rest on a bad file. ``recompute.py`` makes every product again. A product is left to
another run's audit only where its own manifest has another plan than this run's; ``results/plan/index.json``, which
nothing seals, only says which run that was.
"""

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from encore.commands.audit.findings import (
    REPORT,
    AuditReport,
    Finding,
    cells_behind,
    check_artifact,
    check_product,
    files_of,
    places_of,
)
from encore.config.validation import nearest
from encore.errors import EncoreError, quoted
from encore.plan import index
from encore.plan.plan import Plan
from encore.products.claims.entries import CLAIMS
from encore.products.claims.plan import claims_plan
from encore.products.declared import declared
from encore.products.kinds import BY_RULE, kinds_of
from encore.products.known_numbers import CHECKS, checks_plan
from encore.products.slices import built_from
from encore.products.tables.plan import CURVES
from encore.storage import typed
from encore.storage.files import readable_object
from encore.storage.manifest import MANIFEST, VECTORS, added, has_no_vectors, read_manifest
from encore.storage.root import RESULTS, ROOT, SIGNATURE, product_manifests

RECORDS = (MANIFEST, "run.json", "root.json", "index.json")
LONG = 20e9  # bytes: an audit of less says nothing of its time
EVERY = 10.0  # seconds between two lines
SAMPLE = bytes(2**24)


def audit(plan: Plan, run: str = "", only: Sequence[str] = ()) -> AuditReport:
    """Check everything behind the finished tables, figures and claims; one that was not made yet is a note.

    Args:
        run: the run's file, as commands name it. A product is left to another run's audit only where its own manifest
            says that it was built from another plan.
        only: the names of the tables and figures that are looked at, with what they were made from; all without.
    """
    refuse_endless_records()
    slices, report = _chosen(published_products(plan), only), AuditReport()
    declared_here = {*plan.config.tables, *plan.config.figures, CURVES, CHECKS}
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
    removed = without_vectors(sorted(wanted))
    if plan.config.execution.keep_vectors:
        for vectors in removed:
            report.leave_out(vectors, "removed, though this run keeps vectors")
    elif removed:
        report.notes.append(f"the vectors of {len(removed)} shards were removed, as this run plans, and not compared")
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


def refuse_endless_records() -> None:
    """Refuse pipes, sockets and devices in the place of manifests and other records, which are read whole."""
    for path in RESULTS.rglob("*.json"):
        if path.name.endswith(RECORDS) and path.exists() and not path.is_file() and not path.is_dir():
            raise EncoreError(f"{path} is a pipe or a device and no file; remove it, then repeat")


def without_vectors(folders: Iterable[str]) -> list[str]:
    """The vectors that were removed: by their folders nobody can tell whether that was meant."""
    return [f"{folder}/{VECTORS}" for folder in folders if has_no_vectors(Path(folder))]


def published_products(plan: Plan) -> dict[str, dict[str, Any]]:
    """The slices of the tables and figures that are declared or in results, of known numbers, and of the claims."""
    claims = {CLAIMS: claims_plan(plan).dumped()} if files_of(Path(BY_RULE[CLAIMS].record)) else {}
    checks = {CHECKS: checks_plan(plan).dumped()} if plan.config.checks else {}
    return declared(plan) | claims | checks


def _chosen(slices: dict[str, dict[str, Any]], only: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The slices of the named products; all without names."""
    for name in only:
        if name not in slices:
            raise EncoreError(f"--tables {name!r} is no table or figure of this run{nearest(name, slices)}")
    return {name: slices[name] for name in only} if only else slices


def to_prune(plan: Plan, report: AuditReport) -> list[str]:
    """Exactly what is bad and what was made from it: folders of artifacts, then files of products.

    Products that were not audited are not among them.
    """
    bad = {finding.place for finding in report.findings}
    for folder, artifact in plan.made.items():
        if any(parent.folder in bad for parent in artifact.inputs.values()):
            bad.add(folder)
    removed = sorted(place for place in bad if not place.endswith(MANIFEST) and os.path.lexists(place))
    slices = published_products(plan)
    affected = cells_behind(plan, slices)
    names = {cell.split(":")[0] for folder in bad for cell in affected.get(folder, [])}
    products = [place for name in sorted(names) for place in places_of(name, slices[name])]
    products += [Path(place) for place in sorted(bad) if place.endswith(MANIFEST)]
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


class OtherRuns:
    """Which runs other than the audited one have made what is in results, as the last plans wrote it down."""

    def __init__(self, run: str) -> None:
        self._run, self._made_by = run, index.read().products

    def made(self, place: Path) -> bool:
        """True if another run is said to have made a product."""
        return self._made_by.get(str(place), self._run) != self._run

    def reason(self, place: Path) -> str:
        """Why a product with another plan is not audited."""
        return reason_of(self._made_by[str(place)]) if self.made(place) else "built from no plan of this run"


def reason_of(run: Any) -> str:
    """Why a product of another run is not audited; the name comes from a file that anybody may have edited."""
    if isinstance(run, str) and os.path.isfile(run or typed.DEFAULT_RUN):  # noqa: PTH113  # False for any odd name
        return f"of another run: `{typed.encore('audit', run=run)}` looks at it"
    return f"of a run whose file is not here: {quoted(run)}"


def run_of_page() -> str | None:
    """The run of the page, by its own manifest; None where that is missing or damaged."""
    match readable_object(REPORT):
        case {"spec": {"run": str(run)}}:
            return run
    return None


def added_files(report: AuditReport) -> Iterator[Finding]:
    """Each file among the products that no manifest lists, unless it belongs to a product that is bad already."""
    bad = [Path(finding.place) for finding in report.findings if finding.place.endswith(MANIFEST)]
    for folder in (RESULTS, RESULTS / "tables", RESULTS / "figures", REPORT.parent):
        # The files of claims and checks are in results itself, next to the folders of all else.
        depth = "" if folder == RESULTS else "**/"
        records = [REPORT] if folder == REPORT.parent else sorted(folder.glob(f"{depth}*.{MANIFEST}"))
        listed = {path for record in records for path in (record, *_outputs(record))}
        listed |= {ROOT, SIGNATURE, RESULTS / ".gitignore"}
        listed |= {path for record in bad for path in files_of(record)}
        names = [str(path.relative_to(folder)) for path in listed if path.is_relative_to(folder)]
        for path in added(folder, names, f"{depth}*"):
            if folder == RESULTS and path.is_dir():
                continue  # a folder that somebody keeps elsewhere, behind a link; what it holds is looked at
            yield Finding(str(path), f"{path} was added: no product's manifest lists it")


def _outputs(record: Path) -> Iterator[Path]:
    """The files that a product's manifest lists; none that lie elsewhere, nor any of a damaged one."""
    outputs = readable_object(record).get("outputs")
    names = map(str, outputs) if isinstance(outputs, dict | list) else ()
    yield from (record.parent / name for name in names if "/" not in name)


class Progress:
    """Prints to standard error how much there is to read, and from time to time what is left."""

    def __init__(self, folders: Iterable[str]) -> None:
        """Count the bytes of artifacts by their manifests."""
        self.total, self.done = float(sum(map(_bytes, folders))), 0.0
        self.began = self.printed = time.monotonic()
        if self.total > LONG:
            hashlib.sha256(SAMPLE).digest()
            rate = len(SAMPLE) / max(time.monotonic() - self.began, 1e-9)
            _say(
                f"{self.total / 1e9:,.0f} GB are read; {_duration(self.total / rate)} if the disk is as fast as sha256"
            )

    def add(self, folder: str) -> None:
        """An artifact was read."""
        self.done += _bytes(folder)
        now = time.monotonic()
        if now - self.printed >= EVERY and self.done:
            self.printed = now
            left = (self.total - self.done) * (now - self.began) / self.done
            _say(f"{self.done / 1e9:,.1f} of {self.total / 1e9:,.1f} GB read, {_duration(left)} left")


def _bytes(folder: str) -> int:
    """Bytes of an artifact by its manifest; none for one that is damaged, or whose vectors were removed."""
    try:
        outputs = read_manifest(Path(folder))["outputs"].values()
        return 0 if has_no_vectors(Path(folder)) else sum(each["bytes"] for each in outputs)
    except (EncoreError, TypeError, KeyError):
        return 0


def _duration(seconds: float) -> str:
    return f"about {seconds / 3600:.1f} hours" if seconds >= 5400 else f"about {max(1, round(seconds / 60))} min"


def _say(text: str) -> None:
    print(f"audit: {text}", file=sys.stderr, flush=True)

"""The audit: is each file behind a declared table what its manifest says, and made from what the plan says?

Snakemake trusts what lies in ``results/``; this does not. It recomputes every digest, compares every manifest with the
plan, and names the cells that a bad file stands behind.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.growth import GROWING
from encore.plan import Plan
from encore.planning.artifact import Artifact, behind
from encore.provenance import manifest
from encore.provenance.implementation import code_digest
from encore.tables import CURVES, declared, folders

KINDS = ("tables", "figures")


@dataclass(frozen=True)
class Finding:
    """What is wrong with one artifact or product, and the cells that it stands behind."""

    place: str
    reason: str
    cells: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.reason + (f"; affects {', '.join(self.cells)}" if self.cells else "")


@dataclass
class Report:
    """The outcome of an audit."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verified: int = 0


def audit(plan: Plan) -> Report:
    """Check all that stands behind the tables and figures that exist; one that was not made yet is a note."""
    report = Report()
    slices = declared(plan)
    affected = _cells(plan, slices)
    made = [name for name in slices if any(_files(_product(kind, name)) for kind in KINDS)]
    report.notes += [
        f"{'figure' if name in (CURVES, GROWING) or 'kind' in slices[name] else 'table'} {name} is not made yet"
        for name in slices
        if name not in made
    ]
    wanted = {folder for folder, cells in affected.items() if any(cell.split(":")[0] in made for cell in cells)}
    for folder, artifact in plan.made.items():
        if folder in wanted:
            _check(artifact, tuple(affected[folder]), report)
    for name in made:
        for kind in KINDS:
            _check_product(slices[name], kind, name, report)
    return report


def prune(plan: Plan, report: Report) -> list[str]:
    """Remove exactly what is bad and what was made from it, so that the ordinary command repairs; gives what went."""
    bad = {finding.place for finding in report.findings}
    for folder, artifact in plan.made.items():
        if any(parent.folder in bad for parent in artifact.inputs.values()):
            bad.add(folder)
    removed = sorted(folder for folder in bad if folder in plan.made and Path(folder).exists())
    for folder in removed:
        shutil.rmtree(folder)
    affected = _cells(plan, declared(plan))
    tables = {cell.split(":")[0] for folder in removed for cell in affected.get(folder, [])}
    products = [_product(kind, name) for name in sorted(tables) for kind in KINDS]
    products += [Path(place) for place in sorted(bad) if place.endswith(manifest.MANIFEST)]
    for record in dict.fromkeys(products):
        removed += _remove_product(record)
    return removed


def _check(artifact: Artifact, cells: tuple[str, ...], report: Report) -> None:
    reasons = list(_problems(artifact))
    report.findings += [Finding(artifact.folder, reason, cells) for reason in reasons]
    report.verified += not reasons
    if not reasons and _code_of(Path(artifact.folder)) not in (None, code_digest(artifact.stage)):
        report.notes.append(f"{artifact.folder} was made by code that has changed since; affects {', '.join(cells)}")


def _code_of(folder: Path) -> str | None:
    """The digest of the code that made an artifact; None where ``run.json``, which nothing depends on, is lost."""
    try:
        digest: str | None = json.loads((folder / "run.json").read_text()).get("code")
    except (OSError, ValueError, AttributeError):
        return None
    return digest


def _problems(artifact: Artifact) -> Iterator[str]:
    """Everything that is wrong with one artifact, in words."""
    folder = Path(artifact.folder)
    try:
        record = manifest.read(folder)
        yield from manifest.problems(folder)
    except EncoreError as error:
        yield str(error).split(";")[0]
        return
    except (KeyError, TypeError, AttributeError):
        yield f"{artifact.manifest} is not a manifest"
        return
    if record["spec"] != _as_json(artifact.spec):
        yield f"{artifact.manifest} has another spec than the plan"
    yield from _changed_inputs(artifact.manifest, record, {parent.manifest for parent in artifact.inputs.values()})


def _changed_inputs(place: str, record: dict[str, Any], expected: set[str]) -> Iterator[str]:
    if set(record["inputs"]) != expected:
        yield f"{place} was made from other folders than the plan says"
    for name, digest in record["inputs"].items():
        if Path(name).is_file() and manifest.describe(Path(name)) != digest:
            yield f"{place}: its input {name} is not the one that it was made from"


def _check_product(content: dict[str, Any], kind: str, name: str, report: Report) -> None:
    """A table or a figure: its files, its slice of the plan, and what it was made from."""
    place = _product(kind, name)
    if not _files(place):
        return
    reasons: list[str] = []
    try:
        record = json.loads(place.read_text())
        if record["spec"] != _as_json(content):
            reasons.append(f"{place} has another plan than the configuration; run snakemake for it again")
        reasons += _changed_inputs(str(place), record, set(record["inputs"]))
        for file, digest in record["outputs"].items():
            path = place.parent / file
            if not path.is_file() or manifest.describe(path) != digest:
                reasons.append(f"{path} {'was altered' if path.is_file() else 'is missing'}")
    except FileNotFoundError:
        reasons.append(f"{place} is missing, so nothing says what its files were made from")
    except (ValueError, KeyError, TypeError):
        reasons.append(f"{place} is not a manifest")
    report.findings += [Finding(str(place), reason, (f"{name}: every cell",)) for reason in reasons]
    report.verified += not reasons


def _cells(plan: Plan, slices: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """For each artifact's folder the rows that it stands behind, as ``table: label [setting]``."""
    affected: dict[str, list[str]] = {}
    for name, content in slices.items():
        for row in content["rows"]:
            cell = f"{name}: {row['label']}" + (f" [{row['setting']}]" if row.get("setting") else "")
            for artifact in behind(plan.find(folder) for folder in dict.fromkeys(folders(row))):
                if cell not in affected.setdefault(artifact.folder, []):
                    affected[artifact.folder].append(cell)
    return affected


def _product(kind: str, name: str) -> Path:
    return Path("results") / kind / f"{name}.{manifest.MANIFEST}"


def _files(record: Path) -> list[Path]:
    """All that lies of a table or figure, its manifest included."""
    stem = record.name.removesuffix(manifest.MANIFEST)
    return [path for path in record.parent.glob(f"{stem}*") if path.is_file()]


def _remove_product(record: Path) -> list[str]:
    files = _files(record)
    for path in files:
        path.unlink()
    return sorted(map(str, files))


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))

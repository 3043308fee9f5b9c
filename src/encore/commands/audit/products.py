"""One product, a table, a figure, the claims or the report: its files, and what it was made from."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encore.commands.audit.findings import AuditReport, Finding, MadeProduct, as_json, explained
from encore.plan.artifact import upstream
from encore.plan.plan import Plan
from encore.products.kinds import kind_of_record, kinds_of
from encore.products.record import BUILDERS
from encore.storage import manifest
from encore.storage.files import readable_object
from encore.storage.source_text import source_digest


def check_product(content: dict[str, Any] | None, place: Path, report: AuditReport) -> None:
    """Check a product's files, what it was made from, and its slice of the plan if one is given.

    Args:
        place: its manifest.
    """
    if not files_of(place):
        return
    found = kind_of_record(place, content)
    reasons = list(explained(str(place), _product_problems(content, place)))
    cells = (f"{found[1]}: every {found[0].part}",) if found else ()
    report.findings += [Finding(str(place), reason, cells) for reason in reasons]
    report.verified += not reasons
    if not reasons and content is not None and found:
        report.products.append(MadeProduct(*found, place, content))
    if not reasons and not is_of_this_code(place):
        report.notes.append(f"{place} was made by code that has changed since")


def _product_problems(content: dict[str, Any] | None, place: Path) -> Iterator[str]:
    """Everything that is wrong with one product, in words."""
    try:
        record = json.loads(place.read_text())
    except FileNotFoundError:
        yield f"{place} is missing, so nothing says what its files were made from"
        return
    except (ValueError, RecursionError):
        record = None
    found = kind_of_record(place, record["spec"]) if _is_product(record) else None
    if found is None:
        yield f"{place} is not a manifest"
        return
    product = MadeProduct(*found, place, record["spec"])
    if content is not None and record["spec"] != as_json(content):
        yield f"{place} has another plan than the configuration; run snakemake for it again"
    yield from manifest.changed_inputs(str(place), record, set(product.kind.reads(product.content)))
    if is_of_this_code(place):
        if record["stage"] != product.kind.rule:
            yield f"{place} is a manifest of stage {record['stage']!r} and not of {product.kind.rule!r}"
        missing = set(product.files).symmetric_difference(record["outputs"])
        yield from (f"{place} lists other files than are made: {file}" for file in sorted(missing))
    for file, digest in record["outputs"].items():
        path = place.parent / file
        if not path.is_file() or manifest.describe(path) != digest:
            yield f"{path} {'was altered' if os.path.lexists(path) else 'is missing'}"


def _is_product(record: Any) -> bool:
    """True if JSON has the parts of a product's manifest."""
    if not isinstance(record, dict) or not all(isinstance(record.get(key), dict) for key in ("inputs", "outputs")):
        return False
    made_by = (record.get("code", ""), record.get("stage", ""))
    described = manifest.are_described([*record["inputs"].values(), *record["outputs"].values()])
    return "spec" in record and described and all(isinstance(text, str) for text in made_by)


def is_of_this_code(place: Path) -> bool:
    """True if a product was made by the code of this version; False if it does not say which code made it."""
    record = readable_object(place)
    try:
        return bool(record["code"] == source_digest(BUILDERS[record["stage"]]))
    except Exception:  # a stage that this version has not
        return False


def cells_behind(plan: Plan, slices: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """For each artifact's folder the cells that rest on it: rows, as ``table: label [setting]``, and claims."""
    affected: dict[str, list[str]] = {}
    for name, content in slices.items():
        for part, read in kinds_of(name, content)[0].parts(content):
            for artifact in upstream(plan.find(folder) for folder in dict.fromkeys(read)):
                if (cell := f"{name}: {part}") not in affected.setdefault(artifact.folder, []):
                    affected[artifact.folder].append(cell)
    return affected


def places_of(name: str, content: dict[str, Any]) -> list[Path]:
    """The manifests of all that is built from a slice of the plan, if it was built.

    How close runs are to released ones is not among them: it is an input of the table.
    """
    return [Path(kind.named(kind.record, name)) for kind in kinds_of(name, content) if kind.category]


def files_of(record: Path) -> list[Path]:
    """All files of a product that exist, its manifest included; not how close its runs are to released ones."""
    stem = record.name.removesuffix(manifest.MANIFEST)
    found = (path for path in record.parent.glob(f"{stem}*") if path.is_file() or path.is_symlink())
    return [path for path in found if not path.name.startswith(f"{stem}reproduction.")]

"""One product, a table, a figure, the claims or the report: where it lies, its files, and what it was made from."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encore.commands.audit.artifacts import as_json, changed_inputs, explained
from encore.commands.audit.findings import REPORT, AuditReport, Finding, MadeProduct, rule_of
from encore.plan.artifact import upstream
from encore.plan.plan import Plan
from encore.products.claims.entries import CLAIMS, PRINTED
from encore.products.declared import folders
from encore.products.kinds import FILES
from encore.products.report.plan import REPORT as REPORT_NAME
from encore.products.report.plan import report_reads
from encore.storage import manifest
from encore.storage.code_digest import code_digest

KINDS = ("tables", "figures")


def check_product(content: dict[str, Any] | None, place: Path, name: str, report: AuditReport) -> None:
    """A product: its files, its slice of the plan where one is given, and what it was made from."""
    if not files_of(place):
        return
    reasons = list(explained(str(place), _product_problems(content, place, name)))
    report.findings += [Finding(str(place), reason, (f"{name}: every {_part(name)}",)) for reason in reasons]
    report.verified += not reasons
    if not reasons and content is not None:
        report.products.append(MadeProduct(name, place, content))
    if not reasons and not is_of_this_code(place):
        report.notes.append(f"{place} was made by code that has changed since")


def _product_problems(content: dict[str, Any] | None, place: Path, name: str) -> Iterator[str]:
    """Everything that is wrong with one product, in words."""
    try:
        record = json.loads(place.read_text())
    except FileNotFoundError:
        yield f"{place} is missing, so nothing says what its files were made from"
        return
    except (ValueError, RecursionError):
        record = None
    if not _is_product(record):
        yield f"{place} is not a manifest"
        return
    if content is not None and record["spec"] != as_json(content):
        yield f"{place} has another plan than the configuration; run snakemake for it again"
    yield from changed_inputs(str(place), record, _expected_inputs(name, place, record["spec"]))
    if is_of_this_code(place):
        rule, stem = rule_of(name, place, record["spec"]), _stem(place)
        if record["stage"] != rule:
            yield f"{place} is a manifest of stage {record['stage']!r} and not of {rule!r}"
        missing = {f"{stem}.{ending}" for ending in FILES[rule]}.symmetric_difference(record["outputs"])
        yield from (f"{place} lists other files than are made: {file}" for file in sorted(missing))
    for file, digest in record["outputs"].items():
        path = place.parent / file
        if not path.is_file() or manifest.describe(path) != digest:
            yield f"{path} {'was altered' if path.is_file() else 'is missing'}"


def _is_product(record: Any) -> bool:
    """Whether JSON has the parts of a product's manifest."""
    if not isinstance(record, dict) or not all(isinstance(record.get(key), dict) for key in ("inputs", "outputs")):
        return False
    made_by = (record.get("code", ""), record.get("stage", ""))
    described = manifest.are_described([*record["inputs"].values(), *record["outputs"].values()])
    return "spec" in record and described and all(isinstance(text, str) for text in made_by)


def _stem(place: Path) -> str:
    """What the names of a product's files begin with."""
    return "index" if place == REPORT else place.name.removesuffix(f".{manifest.MANIFEST}")


def _expected_inputs(name: str, place: Path, content: dict[str, Any]) -> set[str]:
    """What a product is made from, as its slice of the plan says."""
    if name == REPORT_NAME:
        return set(report_reads(content))
    found = {f"{folder}/{manifest.MANIFEST}" for _, read in reading(name, content) for folder in read}
    compared = rule_of(name, place, content) == "table" and content.get("references")
    return found | ({f"results/tables/{name}.reproduction.csv"} if compared else set())


def is_of_this_code(place: Path) -> bool:
    """Whether a product was made by the code of this version; no, where it does not say which code made it."""
    record = json.loads(place.read_text())
    try:
        return bool(record["code"] == code_digest(record["stage"]))
    except Exception:  # a stage that this version has not
        return False


def _part(name: str) -> str:
    """What a product consists of."""
    return {CLAIMS: "claim", PRINTED: "claim", REPORT_NAME: "number"}.get(name, "cell")


def cells_behind(plan: Plan, slices: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """For each artifact's folder what it stands behind: rows, as ``table: label [setting]``, and claims."""
    affected: dict[str, list[str]] = {}
    for name, content in slices.items():
        for cell, read in reading(name, content):
            for artifact in upstream(plan.find(folder) for folder in dict.fromkeys(read)):
                if cell not in affected.setdefault(artifact.folder, []):
                    affected[artifact.folder].append(cell)
    return affected


def reading(name: str, content: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The parts of a product with the folders that each reads."""
    if name == CLAIMS:
        for table, about in content["tables"].items():
            yield f"{name}: about {table}", [folder for row in about["rows"] for folder in folders(row)]
        for figure, points in content["figures"].items():
            parts = (part for point in points for part in point["parts"])
            yield f"{name}: about {figure}", [read["folder"] for part in parts for read in part["reads"]]
    for row in content.get("rows", []):
        yield f"{name}: {row['label']}" + (f" [{row['setting']}]" if row.get("setting") else ""), folders(row)


def places_of(name: str) -> list[Path]:
    """Where the manifests of what is made of a slice lie, if it was made."""
    if name in (CLAIMS, PRINTED):
        return [Path("results") / f"{name}.{manifest.MANIFEST}"]
    return [Path("results") / kind / f"{name}.{manifest.MANIFEST}" for kind in KINDS]


def name_of(place: Path) -> str:
    """What a product is called, by where its manifest lies."""
    return re.sub(r"^results/(?:(?:tables|figures)/)?", "", str(place)).removesuffix(f".{manifest.MANIFEST}")


def files_of(record: Path) -> list[Path]:
    """All that lies of a table or figure, its manifest included; how close it is to released runs is made by itself."""
    stem = record.name.removesuffix(manifest.MANIFEST)
    found = (path for path in record.parent.glob(f"{stem}*") if path.is_file())
    return [path for path in found if not path.name.startswith(f"{stem}reproduction.")]

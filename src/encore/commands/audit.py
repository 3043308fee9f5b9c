"""The audit: is each file behind what is published what its manifest says, and made from what the plan says?

Snakemake trusts what lies in ``results/``; this does not. It recomputes every digest, compares every manifest with the
plan, and names the cells that a bad file stands behind. ``recompute.py`` makes every product again.
"""

import json
import os
import re
import shutil
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.claims.slice import CLAIMS, PRINTED, claims_plan, printed_plan
from encore.commands.earlier import EarlierResults
from encore.commands.products import FILES, ONE_OF_ITS_KIND
from encore.errors import EncoreError
from encore.plan import index
from encore.plan.artifact import Artifact, upstream
from encore.plan.figures.corpus_size import CORPUS_SIZE
from encore.plan.plan import Plan
from encore.plan.tables import CURVES, declared, folders
from encore.report.plan import REPORT as REPORT_NAME
from encore.report.plan import report_reads
from encore.storage import manifest
from encore.storage.code_digest import code_digest
from encore.storage.root import manifests_behind, product_manifests
from encore.storage.typed import encore

KINDS = ("tables", "figures")
REPORT = Path("results/report") / manifest.MANIFEST


@dataclass(frozen=True)
class Finding:
    """What is wrong with one artifact or product, and the cells that it stands behind."""

    place: str
    reason: str
    cells: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = self.reason + (f"; affects {', '.join(self.cells)}" if self.cells else "")
        return " ".join(text.encode(errors="backslashreplace").decode().split())  # names in damaged files may be odd


@dataclass(frozen=True)
class MadeProduct:
    """A product whose files are those of its manifest: its name, its manifest, and its slice of the plan."""

    name: str
    place: Path
    content: dict[str, Any]

    @property
    def rule(self) -> str:
        """The rule that makes it."""
        return rule_of(self.name, self.place, self.content)


@dataclass
class AuditReport:
    """The outcome of an audit; ``products`` are tables, figures and claims that nothing is wrong with so far."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    products: list[MadeProduct] = field(default_factory=list)
    verified: int = 0
    scope: str = (
        "compared: digests, inputs, products made again; not made again: models, indexes, runs, scores (--deep)"
    )
    others: dict[str, str] = field(default_factory=dict)  # manifests of products of other runs, and these runs


def audit(plan: Plan, run: str = "") -> AuditReport:
    """Check all that stands behind the tables, figures and claims that exist; one that was not made yet is a note.

    Args:
        run: the run's file, as commands name it. What another run of this clone made is left to its own audit.
    """
    slices = published_products(plan)
    report = AuditReport(others=_of_other_runs(slices, run))
    report.notes += _left_to_others(report.others)
    own, earlier = _own(plan), EarlierResults(plan)
    made: dict[str, list[Path]] = {}
    for name, content in slices.items():
        places = [place for place in _places(name) if str(place) not in report.others]
        if len(places) < len(_places(name)) and not any(map(_files, places)):
            continue  # all that there is of it is another run's
        if not any(map(_files, places)):
            report.notes.append(f"{_called(name, content)} is not made yet")
        elif any(earlier.has_made(place) for place in places if not _is_of(place, content)):
            report.notes.append(f"{_called(name, content)} was made by an earlier version; run snakemake for it again")
        elif name in own or all(_is_of(place, content) for place in places if _files(place)):
            made[name] = places
        else:
            report.notes.append(f"{_called(name, content)} was made of another plan; run snakemake for it again")
    affected = _cells(plan, slices)
    wanted = {folder for folder, cells in affected.items() if any(cell.split(":")[0] in made for cell in cells)}
    for folder, artifact in plan.made.items():
        if folder in wanted:
            _check(artifact, tuple(affected[folder]), report)
    for name, places in made.items():
        for place in places:
            _check_product(slices[name], place, name, report)
    if _files(REPORT) and str(REPORT) not in report.others:
        _check_product(None, REPORT, REPORT_NAME, report)
    if note := earlier.note():
        report.notes.append(note)
    return report


def check_copy(report: AuditReport) -> None:
    """Check all that lies behind the tables, figures and claims in ``results/`` by what they say of themselves."""
    products = product_manifests()
    for found in manifests_behind(products):
        if Path(found) not in products:
            folder = str(Path(found).parent)
            reasons = list(_explained(found, _problems_without_plan(folder)))
            report.findings += [Finding(folder, reason) for reason in reasons]
            report.verified += not reasons
    for place in products:
        try:
            content = json.loads(place.read_bytes())["spec"]
        except (ValueError, KeyError, TypeError, RecursionError):
            content = None  # no manifest, which is for the check to say
        _check_product(content, place, _name(place), report)


def published_products(plan: Plan) -> dict[str, dict[str, Any]]:
    """The slices of the tables and figures that are declared or lie in results, and of the claims."""
    claims = {CLAIMS: claims_plan(plan)} if any(map(_files, _places(CLAIMS))) else {}
    return declared(plan) | {PRINTED: printed_plan(plan.catalogue)} | claims


def _of_other_runs(slices: dict[str, dict[str, Any]], run: str) -> dict[str, str]:
    """The products that another run made and that this one would make otherwise, and which run that was."""
    planned = {str(place): content for name, content in slices.items() for place in _places(name)}
    found = {place: by for place, by in index.read().products.items() if by != run}
    return {place: by for place, by in found.items() if place not in planned or not _has(Path(place), planned[place])}


def _left_to_others(others: dict[str, str]) -> Iterator[str]:
    for run in dict.fromkeys(others.values()):
        places = [place for place, by in others.items() if by == run and Path(place).is_file()]
        if places:
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            yield f"{places[0]}{more} of another run: `{encore('audit', run=run)}` looks at them"


def to_prune(plan: Plan, report: AuditReport) -> list[str]:
    """Exactly what is bad and what was made from it: folders of artifacts, then files of products.

    Products that another run made are none of it.
    """
    bad = {finding.place for finding in report.findings}
    for folder, artifact in plan.made.items():
        if any(parent.folder in bad for parent in artifact.inputs.values()):
            bad.add(folder)
    removed = sorted(folder for folder in bad if folder in plan.made and os.path.lexists(folder))
    affected = _cells(plan, published_products(plan))
    names = {cell.split(":")[0] for folder in removed for cell in affected.get(folder, [])}
    products = [place for name in sorted(names) for place in _places(name)]
    products += [Path(place) for place in sorted(bad) if place.endswith(manifest.MANIFEST)]
    for record in dict.fromkeys([*products, *([REPORT] if products else [])]):
        removed += sorted(map(str, _files(record))) if str(record) not in report.others else []
    return removed


def prune(places: list[str]) -> None:
    """Remove what ``to_prune`` gave, so that the ordinary command repairs."""
    for place in places:
        shutil.rmtree(place) if _is_folder(place) else Path(place).unlink()


def _is_folder(place: str) -> bool:
    return Path(place).is_dir() and not Path(place).is_symlink()


def _check(artifact: Artifact, cells: tuple[str, ...], report: AuditReport) -> None:
    reasons = list(_explained(artifact.manifest, _problems(artifact)))
    report.findings += [Finding(artifact.folder, reason, cells) for reason in reasons]
    report.verified += not reasons
    if not reasons and _code_of(Path(artifact.folder)) not in (None, code_digest(artifact.stage)):
        report.notes.append(f"{artifact.folder} was made by code that has changed since; affects {', '.join(cells)}")


def _explained(place: str, reasons: Iterator[str]) -> Iterator[str]:
    """The reasons; where what lies there cannot even be looked at, that is one."""
    try:
        yield from reasons
    except Exception as error:  # whatever damage raises is what an audit is there to find
        yield f"{place} cannot be checked ({type(error).__name__}: {str(error)[:200]})"


def _code_of(folder: Path) -> str | None:
    """The digest of the code that made an artifact; None where ``run.json``, which nothing depends on, is lost."""
    return manifest.read_run(folder).get("code")


def _problems(artifact: Artifact) -> Iterator[str]:
    """Everything that is wrong with one artifact, in words."""
    record = yield from _own_problems(artifact.folder)
    if record is not None:
        if record["spec"] != _as_json(artifact.spec):
            yield f"{artifact.manifest} has another spec than the plan"
        yield from _changed_inputs(artifact.manifest, record, {parent.manifest for parent in artifact.inputs.values()})


def _problems_without_plan(folder: str) -> Iterator[str]:
    """What is wrong with an artifact by its own manifest and those of its inputs, in words."""
    record = yield from _own_problems(folder)
    if record is not None:
        yield from _changed_inputs(f"{folder}/{manifest.MANIFEST}", record, set(record["inputs"]))


def _own_problems(folder: str) -> Generator[str, None, dict[str, Any] | None]:
    """What is wrong with an artifact's manifest and files, in words; the manifest is returned if it is one."""
    try:
        record = manifest.read_manifest(Path(folder))
        described = manifest.are_described([*record["inputs"].values(), *record["outputs"].values()])
        if not described or not isinstance(record.get("stage"), str):
            yield f"{folder}/{manifest.MANIFEST} is not a manifest"
            return None
        yield from manifest.problems(Path(folder))
    except EncoreError as error:
        yield str(error).rpartition(";")[0]
        return None
    return record


def _changed_inputs(place: str, record: dict[str, Any], expected: set[str]) -> Iterator[str]:
    if set(record["inputs"]) != expected:
        yield f"{place} was made from other folders than the plan says"
    for name, digest in record["inputs"].items():
        if Path(name).is_file() and manifest.describe(Path(name)) != digest:
            yield f"{place}: its input {name} is not the one that it was made from"


def _check_product(content: dict[str, Any] | None, place: Path, name: str, report: AuditReport) -> None:
    """A product: its files, its slice of the plan where one is given, and what it was made from."""
    if not _files(place):
        return
    reasons = list(_explained(str(place), _product_problems(content, place, name)))
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
    if content is not None and record["spec"] != _as_json(content):
        yield f"{place} has another plan than the configuration; run snakemake for it again"
    yield from _changed_inputs(str(place), record, _expected_inputs(name, place, record["spec"]))
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


def rule_of(name: str, place: Path, content: dict[str, Any]) -> str:
    """The rule that makes a product, by its name, where its manifest lies, and its slice of the plan."""
    if name in (PRINTED, CLAIMS, REPORT_NAME):
        return name
    if place.is_relative_to("results/tables"):
        return "table"
    rules = {figure: rule for rule, figure in ONE_OF_ITS_KIND.items()}
    return rules.get(name) or ("draw" if "kind" in content else "figure")


def _stem(place: Path) -> str:
    """What the names of a product's files begin with."""
    return "index" if place == REPORT else place.name.removesuffix(f".{manifest.MANIFEST}")


def _expected_inputs(name: str, place: Path, content: dict[str, Any]) -> set[str]:
    """What a product is made from, as its slice of the plan says."""
    if name == REPORT_NAME:
        return set(report_reads(content))
    found = {f"{folder}/{manifest.MANIFEST}" for _, read in _reading(name, content) for folder in read}
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


def _cells(plan: Plan, slices: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """For each artifact's folder what it stands behind: rows, as ``table: label [setting]``, and claims."""
    affected: dict[str, list[str]] = {}
    for name, content in slices.items():
        for cell, read in _reading(name, content):
            for artifact in upstream(plan.find(folder) for folder in dict.fromkeys(read)):
                if cell not in affected.setdefault(artifact.folder, []):
                    affected[artifact.folder].append(cell)
    return affected


def _reading(name: str, content: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The parts of a product with the folders that each reads."""
    if name == CLAIMS:
        for table, about in content["tables"].items():
            yield f"{name}: about {table}", [folder for row in about["rows"] for folder in folders(row)]
        for figure, points in content["figures"].items():
            parts = (part for point in points for part in point["parts"])
            yield f"{name}: about {figure}", [read["folder"] for part in parts for read in part["reads"]]
    for row in content.get("rows", []):
        yield f"{name}: {row['label']}" + (f" [{row['setting']}]" if row.get("setting") else ""), folders(row)


def _own(plan: Plan) -> set[str]:
    """What the configuration itself declares; other tables and figures were only asked for, perhaps under another."""
    return {*plan.config.tables, *plan.config.figures, CURVES, CORPUS_SIZE, PRINTED}


def _is_of(place: Path, content: dict[str, Any]) -> bool:
    """Whether a product's record has such a slice, or is no record at all, which is for ``_check_product`` to say."""
    return _has(place, content) is not False


def _has(place: Path, content: dict[str, Any]) -> bool | None:
    """Whether a product's record has such a slice; None where there is no record that can be read."""
    try:
        return bool(json.loads(place.read_text())["spec"] == _as_json(content))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _called(name: str, content: dict[str, Any]) -> str:
    if name in (CLAIMS, PRINTED):
        return f"results/{name}.csv"
    return f"{'figure' if name in (CURVES, CORPUS_SIZE) or 'kind' in content else 'table'} {name}"


def _places(name: str) -> list[Path]:
    """Where the manifests of what is made of a slice lie, if it was made."""
    if name in (CLAIMS, PRINTED):
        return [Path("results") / f"{name}.{manifest.MANIFEST}"]
    return [Path("results") / kind / f"{name}.{manifest.MANIFEST}" for kind in KINDS]


def _name(place: Path) -> str:
    """What a product is called, by where its manifest lies."""
    return re.sub(r"^results/(?:(?:tables|figures)/)?", "", str(place)).removesuffix(f".{manifest.MANIFEST}")


def _files(record: Path) -> list[Path]:
    """All that lies of a table or figure, its manifest included; how close it is to released runs is made by itself."""
    stem = record.name.removesuffix(manifest.MANIFEST)
    found = (path for path in record.parent.glob(f"{stem}*") if path.is_file())
    return [path for path in found if not path.name.startswith(f"{stem}reproduction.")]


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))

"""What an audit found, and what is wrong with one artifact or one product: its manifest, files, spec and inputs."""

import json
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore import stages
from encore.errors import EncoreError, quoted
from encore.plan.artifact import Artifact, upstream
from encore.plan.plan import Plan
from encore.products.kinds import BY_RULE, ProductKind, kind_of_record, kinds_of
from encore.stages import code_digest
from encore.storage import manifest
from encore.storage.files import canonical, digest, readable_object
from encore.storage.machine import is_of_machine

REPORT = Path(BY_RULE["report"].record)
SEARCHES = frozenset({"fuse", "lucene_search", "rerank", "search", "search_index"})  # which make all of results/runs
PRODUCT_KEYS = {"stage", "code", *manifest.PARTS}


@dataclass(frozen=True)
class Finding:
    """What is wrong with one artifact or product, and the cells that rest on it."""

    place: str
    reason: str
    cells: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = self.reason + (f"; affects {', '.join(self.cells)}" if self.cells else "")
        return " ".join(text.encode(errors="backslashreplace").decode().split())  # names in damaged files may be odd


@dataclass(frozen=True)
class MadeProduct:
    """A product whose files are those of its manifest: its kind and name, its manifest, and its slice of the plan."""

    kind: ProductKind
    name: str
    place: Path
    content: dict[str, Any]

    @property
    def files(self) -> list[str]:
        """The names of its files without the manifest."""
        return [Path(self.kind.named(file, self.name)).name for file in self.kind.files[:-1]]


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
    left_out: dict[str, str] = field(default_factory=dict)  # what was not audited, by its manifest or file, and why
    is_partial: bool = False  # what the run itself declares, its page, or what was asked for is among them
    printed: tuple[int, int] = (0, 0)  # how many notes and findings ``print_new`` has printed

    @property
    def bad(self) -> int:
        """How many artifacts and products have a finding."""
        return len({finding.place for finding in self.findings})

    @property
    def not_audited(self) -> str:
        """How much was not audited and why, in a line; empty if all was."""
        places: dict[str, list[str]] = {}
        for place, reason in self.left_out.items():
            places.setdefault(reason, []).append(place)
        told = [f"{', '.join(each[:2])}{', ...' * (len(each) > 2)} ({why})" for why, each in places.items()]
        count = f"{len(self.left_out)} file{'s' * (len(self.left_out) > 1)}"
        return f"NOT audited: {count}: {'; '.join(told)}" if told else ""

    def leave_out(self, place: str, reason: str) -> None:
        """Count what was asked for and not audited: an audit that leaves it out is no success."""
        self.left_out[place], self.is_partial = reason, True

    def print_new(self) -> None:
        """Print what was found since the last time, a line each."""
        notes, findings = self.printed
        lines = [f"note: {note}" for note in self.notes[notes:]]
        lines += [f"bad: {finding}" for finding in self.findings[findings:]]
        print("".join(f"{line}\n" for line in lines), end="", flush=True)
        self.printed = len(self.notes), len(self.findings)


def check_artifact(artifact: Artifact, cells: tuple[str, ...], report: AuditReport) -> None:
    reasons = list(explained(artifact.manifest, problems(artifact)))
    report.findings += [Finding(artifact.folder, reason, cells) for reason in reasons]
    report.verified += not reasons
    made_by = manifest.read_run(Path(artifact.folder)).get("code")  # None without ``run.json``: nothing depends on it
    if not reasons and made_by not in (None, code_digest(artifact.stage)):
        report.notes.append(f"{artifact.folder} was made by code that has changed since; affects {', '.join(cells)}")


def explained(place: str, reasons: Iterator[str]) -> Iterator[str]:
    """The reasons; an error while looking for them is one too, but not what this machine lacks: that ends the audit."""
    try:
        yield from reasons
    except Exception as error:  # whatever damage raises is what an audit is there to find
        if is_of_machine(error):
            raise
        yield f"{place} cannot be checked: {in_words(error)}"


def in_words(error: Exception) -> str:
    """Why a damaged file cannot be checked or built again, without Python's names of exceptions."""
    if isinstance(error, EncoreError):
        return str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return f"a record lacks {error}" if isinstance(error, KeyError) else "a file is not in the form that Encore writes"


def problems(artifact: Artifact) -> Iterator[str]:
    """Everything that is wrong with one artifact, in words."""
    record = yield from _own_problems(artifact.folder)
    if record is not None:
        if canonical(record["spec"]) != canonical(artifact.spec):
            yield f"{artifact.manifest} has another spec than the plan"
        if record["stage"] != artifact.stage:
            yield f"{artifact.manifest} has another stage than the plan"
        yield from manifest.changed_inputs(
            artifact.manifest, record, {parent.manifest for parent in artifact.inputs.values()}
        )


def problems_without_plan(folder: str) -> Iterator[str]:
    """What is wrong with an artifact by its folder's name, its own manifest and those of its inputs, in words.

    A folder's name ends with the digest of its spec, and its kind says which stages make it.
    """
    record = yield from _own_problems(folder)
    if record is not None:
        place, kind, stage = f"{folder}/{manifest.MANIFEST}", folder.split("/")[1], record["stage"].partition(".")[0]
        makes = {"scores": {"evaluate"}, "runs": SEARCHES}.get(kind, {*stages.names()} - {"evaluate", *SEARCHES})
        if stage not in makes:
            yield f"{place} is of stage {quoted(stage)}, which makes nothing in results/{kind}"
        named = Path(folder) if not manifest.NAME.fullmatch(Path(folder).name) else Path(folder).parent
        if not named.name.endswith(f"-{digest(record['spec'])}"):
            yield f"{place} has another spec than the one that its folder is named by"
        yield from manifest.changed_inputs(place, record, set(record["inputs"]))


def _own_problems(folder: str) -> Generator[str, None, dict[str, Any] | None]:
    """What is wrong with an artifact's manifest and files, in words; the manifest is returned if it is one."""
    place = f"{folder}/{manifest.MANIFEST}"
    try:
        record = manifest.read_manifest(Path(folder))
        described = manifest.are_described([*record["inputs"].values(), *record["outputs"].values()])
        if not described or not isinstance(record.get("stage"), str) or record.keys() != {"stage", *manifest.PARTS}:
            yield f"{place} is not a manifest"
            return None
        if not manifest.is_as_written(Path(place), record):
            yield f"{place} is not written as Encore writes it"
        yield from manifest.problems(Path(folder))
    except EncoreError as error:
        if is_of_machine(error):
            raise
        yield str(error).rpartition(";")[0]
        return None
    return record


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
    if not manifest.is_as_written(place, record):
        yield f"{place} is not written as Encore writes it"
    if content is not None and canonical(record["spec"]) != canonical(content):
        yield f"{place} has another plan than the configuration; run snakemake for it again"
    planned = product.kind.typed(product.content)
    yield from manifest.changed_inputs(str(place), record, set(product.kind.reads(planned, product.name)))
    if record["stage"] != product.kind.rule:
        yield f"{place} is a manifest of stage {record['stage']!r} and not of {product.kind.rule!r}"
    if record["results"].keys() != ({"matplotlib"} if "svg" in product.kind.endings else set()):
        yield f"{place} says other things of how it was made than Encore writes"
    missing = set(product.files).symmetric_difference(record["outputs"])
    yield from (f"{place} lists other files than are made: {file}" for file in sorted(missing))
    for file, described in record["outputs"].items():
        path = place.parent / file
        if not path.is_file() or manifest.describe(path) != described:
            yield f"{path} {'was altered' if os.path.lexists(path) else 'is missing'}"


def _is_product(record: Any) -> bool:
    """True if JSON has the parts of a product's manifest."""
    if not isinstance(record, dict) or record.keys() != PRODUCT_KEYS:
        return False
    if not all(isinstance(record[key], dict) for key in ("inputs", "outputs", "results")):
        return False
    described = manifest.are_described([*record["inputs"].values(), *record["outputs"].values()])
    return described and all(isinstance(record[key], str) for key in ("code", "stage"))


def is_of_this_code(place: Path) -> bool:
    """True if a product was made by the code of this version."""
    record = readable_object(place)
    try:
        return bool(record["code"] == BY_RULE[record["stage"]].code)
    except Exception:  # a damaged manifest
        return False


def cells_behind(plan: Plan, slices: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """For each artifact's folder the cells that rest on it: rows, as ``table: label [setting]``, and claims."""
    affected: dict[str, list[str]] = {}
    for name, content in slices.items():
        for part, read in kinds_of(name, content)[0].typed(content).parts():
            for artifact in upstream(plan.find(folder) for folder in dict.fromkeys(read)):
                if (cell := f"{name}: {part}") not in affected.setdefault(artifact.folder, []):
                    affected[artifact.folder].append(cell)
    return affected


def places_of(name: str, content: dict[str, Any]) -> list[Path]:
    """The manifests of all that is built from a slice of the plan, if it was built."""
    return [Path(kind.named(kind.record, name)) for kind in kinds_of(name, content)]


def files_of(record: Path) -> list[Path]:
    """All files of a product that exist, its manifest included."""
    stem = record.name.removesuffix(manifest.MANIFEST)
    return [path for path in record.parent.glob(f"{stem}*") if path.is_file() or path.is_symlink()]

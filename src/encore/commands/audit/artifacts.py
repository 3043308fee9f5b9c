"""One artifact: its manifest, its files, its spec, and the manifests that it was made from."""

import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from encore.commands.audit.findings import AuditReport, Finding
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.storage import manifest
from encore.storage.code_digest import code_digest


def check_artifact(artifact: Artifact, cells: tuple[str, ...], report: AuditReport) -> None:
    reasons = list(explained(artifact.manifest, problems(artifact)))
    report.findings += [Finding(artifact.folder, reason, cells) for reason in reasons]
    report.verified += not reasons
    if not reasons and _code_of(Path(artifact.folder)) not in (None, code_digest(artifact.stage)):
        report.notes.append(f"{artifact.folder} was made by code that has changed since; affects {', '.join(cells)}")


def explained(place: str, reasons: Iterator[str]) -> Iterator[str]:
    """The reasons; an error while looking for them is one too."""
    try:
        yield from reasons
    except Exception as error:  # whatever damage raises is what an audit is there to find
        yield f"{place} cannot be checked ({type(error).__name__}: {str(error)[:200]})"


def _code_of(folder: Path) -> str | None:
    """The digest of the code that made an artifact, or None without ``run.json``, which nothing depends on."""
    return manifest.read_run(folder).get("code")


def problems(artifact: Artifact) -> Iterator[str]:
    """Everything that is wrong with one artifact, in words."""
    record = yield from _own_problems(artifact.folder)
    if record is not None:
        if record["spec"] != as_json(artifact.spec):
            yield f"{artifact.manifest} has another spec than the plan"
        yield from changed_inputs(artifact.manifest, record, {parent.manifest for parent in artifact.inputs.values()})


def problems_without_plan(folder: str) -> Iterator[str]:
    """What is wrong with an artifact by its own manifest and those of its inputs, in words."""
    record = yield from _own_problems(folder)
    if record is not None:
        yield from changed_inputs(f"{folder}/{manifest.MANIFEST}", record, set(record["inputs"]))


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


def changed_inputs(place: str, record: dict[str, Any], expected: set[str]) -> Iterator[str]:
    if set(record["inputs"]) != expected:
        yield f"{place} was made from other folders than the plan says"
    for name, digest in record["inputs"].items():
        if Path(name).is_file() and manifest.describe(Path(name)) != digest:
            yield f"{place}: its input {name} is not the one that it was made from"


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))

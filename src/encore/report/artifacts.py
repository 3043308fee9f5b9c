"""The artifacts of the report: what made each, of what, how and at what cost; each stands once and is linked to."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from encore.report.markup import PROSE, Content, Html, code, facts, html_table, joined, link
from encore.report.records import ArtifactRecords, RecordedArtifact, environment
from encore.storage.files import canonical


def artifact_sections(records: ArtifactRecords) -> Iterator[str]:
    """A section for each artifact, which is shown when its link is followed."""
    return (_section(artifact, records) for artifact in records.all())


def environments(records: ArtifactRecords) -> str:
    """The environments that artifacts were made in, each once."""
    if not records.environments:
        return "<p>No job has left a record of its environment.</p>"
    found = [(key, json.loads(text)) for text, key in records.environments.items()]
    lines = [_environment(*each) for each in found]
    return html_table("Environments", ["", "Device", "Cores", "Python", "Packages"], lines, PROSE)


def seconds(run: Mapping[str, Any]) -> float:
    """Seconds that a job took, from its ``run.json``; 0 where they are not recorded."""
    return float(run.get("seconds") or 0)


def duration(spent: float) -> str:
    """Seconds, minutes or hours, whichever people would say."""
    if spent < 120:
        return f"{spent:.3g} s"
    return f"{spent / 60:.3g} min" if spent < 7200 else f"{spent / 3600:,.3g} h"


def size(of: int) -> str:
    """Bytes as people say them."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if of >= 2**power:
            return f"{of / 2**power:.3g} {unit}"
    return f"{of} bytes"


def _environment(key: str, recorded: dict[str, Any]) -> list[Content]:
    packages = ", ".join(f"{name} {version}" for name, version in sorted((recorded["packages"] or {}).items()))
    place = Html(f'<span id="{key}">{key.removeprefix("e")}</span>')
    device = f"{recorded['device']}, {recorded['machine']}"
    return [place, device, str(recorded["cores"]), str(recorded["python"]), packages]


def _section(artifact: RecordedArtifact, records: ArtifactRecords) -> str:
    made_of = (_parent(role, records[folder]) for role, folder in artifact.inputs.items())
    files = len(artifact.outputs)
    stored = f"{files} file{'s' if files != 1 else ''}, {artifact.bytes:,} bytes"
    listed = facts(
        {
            "Stage": artifact.stage or "its folder is not here",
            "Manifest": code(f"sha256 {artifact.digest}") if artifact.digest else "",
            "Files": stored if artifact.stage else "",
            "With": code(canonical(artifact.spec)) if artifact.spec else "",
            "Gave": code(canonical(artifact.results)) if artifact.results else "",
            "Made from": joined(made_of, "<br>"),
            "Made": _how(artifact, records),
        }
    )
    return (
        f'<section class="why artifact" id="{artifact.key}" tabindex="-1" data-stage="{escape(artifact.stage)}">'
        f'<h3>{escape(artifact.folder)}</h3>{listed}<a class="close" href="#artifacts">Close</a></section>'
    )


def _parent(role: str, parent: RecordedArtifact) -> Html:
    return joined([f"{role.replace('_', ' ')}:", link(parent.key, parent.name, data_role=role)], " ")


def _how(artifact: RecordedArtifact, records: ArtifactRecords) -> Content:
    run = artifact.run
    if not run:
        return ""
    program = str((run.get("command") or [""])[0]).rpartition("workflow/")
    key = records.environments[canonical(environment(run))]
    cost = f"{duration(seconds(run))}, {run.get('peak_memory_mb')} MB at most"
    parts: list[Content] = [f"by {''.join(program[1:])} of commit {run.get('commit')}", cost]
    return joined([*parts, link(key, f"environment {key.removeprefix('e')}")])

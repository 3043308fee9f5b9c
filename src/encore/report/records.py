"""Every artifact behind what is shown, each once, as its ``manifest.json`` and ``run.json`` tell of it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from encore.errors import EncoreError
from encore.storage import manifest
from encore.storage.files import canonical, sha256

_MODEL = re.compile(r"(?P<lineage>.+?)(?:-s\d+)?-[0-9a-f]{8}(?P<index>@.*)?")


@dataclass(frozen=True)
class RecordedArtifact:
    """A folder of results. ``stage`` is empty where its manifest is not there any more.

    ``inputs`` are folders by role; ``spec`` is what made it next to them; ``run`` is how, empty where nobody knows.
    """

    folder: str
    key: str  # its name on the page
    stage: str
    spec: dict[str, Any]
    inputs: dict[str, str]
    results: dict[str, Any]
    outputs: dict[str, dict[str, Any]]
    digest: str
    run: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the folder, without its parents."""
        return PurePosixPath(self.folder).name

    @property
    def stem(self) -> str:
        """Its name without seed and digest."""
        found = _MODEL.fullmatch(self.name)
        return found["lineage"] + (found["index"] or "") if found else self.name

    @property
    def bytes(self) -> int:
        """Bytes of all output files together."""
        return sum(file["bytes"] for file in self.outputs.values())

    @property
    def seed(self) -> int | None:
        """The seed that it was made under; None where there is no chance in it."""
        return self.spec.get("seed")


class ArtifactRecords:
    """Artifacts by folder."""

    def __init__(self, folders: Iterable[str]) -> None:
        found = _reached(folders)
        self.by_folder = {
            folder: _artifact(folder, f"a{number}", found[folder]) for number, folder in enumerate(sorted(found))
        }
        environments = (canonical(environment(each.run)) for each in self.by_folder.values() if each.run)
        self.environments = {text: f"e{number}" for number, text in enumerate(sorted(set(environments)))}

    def __getitem__(self, folder: str) -> RecordedArtifact:
        return self.by_folder[folder]

    def all(self) -> list[RecordedArtifact]:
        """In the order of their folders."""
        return list(self.by_folder.values())

    def upstream(self, folders: Iterable[str]) -> list[RecordedArtifact]:
        """Artifacts and all that they were made from, each once."""
        found: dict[str, RecordedArtifact] = {}
        waiting = list(folders)
        while waiting:
            folder = waiting.pop()
            if folder not in found:
                found[folder] = self[folder]
                waiting.extend(self[folder].inputs.values())
        return [found[folder] for folder in sorted(found)]


def environment(run: Mapping[str, Any]) -> dict[str, Any]:
    """What many jobs had in common."""
    return {key: run.get(key) for key in ("python", "packages", "machine", "device", "cores")}


def _reached(folders: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The manifests of folders and of all behind them; an empty one where there is none."""
    found: dict[str, dict[str, Any]] = {}
    waiting = list(folders)
    while waiting:
        folder = waiting.pop()
        if folder in found:
            continue
        try:
            found[folder] = manifest.read_manifest(Path(folder))
        except EncoreError:
            found[folder] = {}
        waiting += [str(PurePosixPath(path).parent) for path in found[folder].get("inputs", {})]
    return found


def _artifact(folder: str, key: str, record: dict[str, Any]) -> RecordedArtifact:
    if not record:
        return RecordedArtifact(folder, key, "", {}, {}, {}, {}, "", {})
    parents = [str(PurePosixPath(path).parent) for path in record["inputs"]]
    roles = _roles(record["spec"], parents)
    own = {key: value for key, value in record["spec"].items() if key not in roles}
    inputs = dict(sorted(roles.items()))
    unnamed = [parent for parent in parents if parent not in inputs.values()]
    inputs |= {f"input {number}": parent for number, parent in enumerate(sorted(unnamed), 1)}
    digest, run = sha256(Path(folder) / manifest.MANIFEST), manifest.read_run(Path(folder))
    return RecordedArtifact(
        folder, key, str(record.get("stage", "")), own, inputs, record["results"], record["outputs"], digest, run
    )


def _roles(spec: Mapping[str, Any], parents: Iterable[str]) -> dict[str, str]:
    """What a spec calls the folders that it is made from: it names them by the last part."""
    names = {PurePosixPath(parent).name: parent for parent in parents}
    return {role: names[value] for role, value in spec.items() if isinstance(value, str) and value in names}

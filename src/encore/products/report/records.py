"""Every artifact that the page's numbers were made from, from its ``manifest.json`` and ``run.json``."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from encore.errors import EncoreError
from encore.storage import manifest
from encore.storage.files import canonical, sha256

_MODEL = re.compile(r"(?P<lineage>.+?)(?:-s\d+)?-[0-9a-f]{8}(?P<index>@.*)?")
ENVIRONMENT = ("python", "packages", "machine", "device", "cores")  # fields of run.json that many jobs have in common
RUN = (*ENVIRONMENT, "command", "commit", "seconds", "peak_memory_mb")  # those that the page shows
Runs = Callable[[str], Mapping[str, Any]]  # a job's record by its artifact's folder


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
    def kind(self) -> str:
        """The stage without what comes after a point: its objective or its kind of collection."""
        return self.stage.split(".")[0]

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
        """Its seed; None if it does not depend on one."""
        return self.spec.get("seed")

    @property
    def seconds(self) -> float:
        """Seconds that its job took; 0 where they are not recorded."""
        return float(self.run.get("seconds") or 0)

    @property
    def program(self) -> str:
        """The program that made it, below ``workflow/``."""
        return str((self.run.get("command") or [""])[0]).rpartition("workflow/")[2]


class ArtifactRecords:
    """Artifacts by folder."""

    def __init__(self, folders: Iterable[str], runs: Runs) -> None:
        found = _reached(folders)
        self.by_folder = {
            folder: _artifact(folder, f"a{number}", found[folder], runs) for number, folder in enumerate(sorted(found))
        }
        environments = sorted({_environment(each) for each in self.all() if each.run})
        self._environments = {text: f"e{number}" for number, text in enumerate(environments)}

    def __getitem__(self, folder: str) -> RecordedArtifact:
        return self.by_folder[folder]

    def all(self) -> list[RecordedArtifact]:
        """In the order of their folders."""
        return list(self.by_folder.values())

    def of(self, folders: Iterable[str]) -> list[RecordedArtifact]:
        """Those of some folders."""
        return [self[folder] for folder in folders]

    def upstream(self, folders: Iterable[str]) -> list[RecordedArtifact]:
        """Artifacts and all that they were made from, each once."""
        found: set[str] = set()
        waiting = list(folders)
        while waiting:
            folder = waiting.pop()
            if folder not in found:
                found.add(folder)
                waiting.extend(self[folder].inputs.values())
        return self.of(sorted(found))

    def environment_of(self, artifact: RecordedArtifact) -> str:
        """The name on the page of the environment that an artifact was made in."""
        return self._environments[_environment(artifact)]

    def environments(self) -> list[tuple[str, dict[str, Any]]]:
        """Every environment once, after its name on the page."""
        made_in = {self.environment_of(each): each.run for each in self.all() if each.run}
        return [(key, made_in[key]) for key in self._environments.values()]

    def runs(self) -> dict[str, dict[str, Any]]:
        """What the page shows of jobs, by folder."""
        return {each.folder: each.run for each in self.all() if each.run}


def read_run(folder: str) -> dict[str, Any]:
    """What a job recorded, of which the page shows the program and not its arguments, which name places."""
    run = manifest.read_run(Path(folder))
    return {key: run[key][:1] if key == "command" else run[key] for key in RUN if key in run}


def _environment(artifact: RecordedArtifact) -> str:
    return canonical({key: artifact.run.get(key) for key in ENVIRONMENT})


def _reached(folders: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The manifests of folders and of all that these were made from; empty if one is missing."""
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


def _artifact(folder: str, key: str, record: dict[str, Any], runs: Runs) -> RecordedArtifact:
    if not record:
        return RecordedArtifact(folder, key, "", {}, {}, {}, {}, "", {})
    parents = [str(PurePosixPath(path).parent) for path in record["inputs"]]
    names, spec = {PurePosixPath(parent).name: parent for parent in parents}, record["spec"]  # as a spec names folders
    roles = {role: names[value] for role, value in spec.items() if isinstance(value, str) and value in names}
    own = {key: value for key, value in spec.items() if key not in roles}
    inputs = dict(sorted(roles.items()))
    unnamed = [parent for parent in parents if parent not in inputs.values()]
    inputs |= {f"input {number}": parent for number, parent in enumerate(sorted(unnamed), 1)}
    digest, stage = sha256(Path(folder) / manifest.MANIFEST), str(record.get("stage", ""))
    return RecordedArtifact(
        folder, key, stage, own, inputs, record["results"], record["outputs"], digest, dict(runs(folder))
    )

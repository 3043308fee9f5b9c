"""Every artifact that the page's numbers were made from, by its ``manifest.json`` and ``run.json``, and their sums."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from encore import stages
from encore.errors import EncoreError
from encore.products.report.tables import ShownTable
from encore.storage import manifest
from encore.storage.files import canonical, readable_object, sha256

_MODEL = re.compile(r"(?P<lineage>.+?)(?:-s\d+)?-[0-9a-f]{8}(?P<index>@.*)?")
ENVIRONMENT = ("python", "packages", "machine", "device", "cores")  # fields of run.json that many jobs have in common
RUN = (*ENVIRONMENT, "command", "commit", "seconds", "peak_memory_mb")  # those that the page shows
LATENCY = "latency.json"
SIZE = ("architecture", "layers", "hidden", "parameters")  # of a model
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


@dataclass(frozen=True)
class JobGroup:
    """Artifacts of one stage: all of them, or those of one training step under each seed."""

    stage: str
    artifacts: list[RecordedArtifact]

    @property
    def stem(self) -> str:
        """What their names have in common."""
        return self.artifacts[0].stem

    @property
    def step(self) -> dict[str, Any]:
        """The training step's parameters."""
        return {"collection": "", "batch": "", "learning_rate": ""} | self.artifacts[0].spec.get("step", {})

    @property
    def seconds(self) -> float:
        """Seconds of all jobs."""
        return math.fsum(each.seconds for each in self.artifacts)

    @property
    def memory(self) -> int:
        """The most memory that a job had, in MB; 0 where it is not recorded."""
        return max(each.run.get("peak_memory_mb") or 0 for each in self.artifacts)

    @property
    def bytes(self) -> int:
        """Bytes of all outputs."""
        return sum(each.bytes for each in self.artifacts)

    @property
    def devices(self) -> list[str]:
        """The devices that it ran on."""
        return sorted({str(each.run["device"]) for each in self.artifacts if each.run})

    def range(self, key: str) -> list[float]:
        """The least and the most of a result; one number where all have the same."""
        found = sorted({each.results[key] for each in self.artifacts if key in each.results})
        return list(dict.fromkeys([*found[:1], *found[-1:]]))


def headline_data(shown: ShownTable, records: ArtifactRecords) -> dict[str, list[Any]]:
    """On what data a table is: collections searched, queries judged, seeds, sizes of models."""
    made_of = records.upstream(shown.folders())
    searched = {each.inputs.get("collection", "") for each in made_of if each.kind == "evaluate"}
    cells = (row.cells[column.id] for column in shown.table.shown() for row in shown.table.rows)
    judged = dict.fromkeys(cell.ours.judged for cell in cells if cell.ours and cell.ours.judged is not None)
    started = [each.spec["backbone"] | each.results for each in made_of if "backbone" in each.spec]
    sizes = [{key: found[key] for key in SIZE if key in found} for found in started]
    return {
        "collections": records.of(sorted(searched - {""})),
        "queries": list(judged),
        "seeds": shown.table.seeds,
        "backbones": list({canonical(size): size for size in sizes}.values()),
    }


def summarise_run(records: ArtifactRecords) -> dict[str, list[Any]]:
    """Everything that was run, by kind; a latency is with its record."""
    artifacts = records.all()
    trained: dict[tuple[str, str], list[RecordedArtifact]] = defaultdict(list)
    by_kind: dict[str, list[RecordedArtifact]] = defaultdict(list)
    for each in artifacts:
        by_kind[each.kind].append(each)
        if each.kind in stages.that("trains"):
            without_seed = canonical({key: value for key, value in each.spec.items() if key != "seed"})
            trained[each.stem, without_seed].append(each)
    by_stage = [JobGroup(kind, own) for kind, own in by_kind.items()]
    timed = (each for each in artifacts if LATENCY in each.outputs)
    return {
        "collections": [each for each in artifacts if each.kind == "collection"],
        "trained": [JobGroup(own[0].stage, own) for _, own in sorted(trained.items())],
        "stages": sorted(by_stage, key=lambda one: (-one.seconds, one.stage)),
        "latencies": [(each, record) for each in timed if (record := readable_object(Path(each.folder, LATENCY)))],
        "indexes": [each for each in artifacts if each.stage in stages.that("indexes")],
    }

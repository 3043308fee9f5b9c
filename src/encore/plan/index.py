"""The plan on disk: which folder is made from which spec and which other folders, for jobs and for people.

The process that plans writes it when a run starts: ``results/plan/index.json`` has every folder with its stage, spec,
inputs and the targets that need it; the same of each is a file in ``results/plan/specs/`` for the program that makes
the folder. A job of a cluster looks its folder up there and plans nothing.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.plan.artifact import Artifact, upstream
from encore.storage.files import write_changed, write_json
from encore.storage.lock import locked
from encore.storage.typed import called

INDEX = Path("results/plan/index.json")
SPECS = Path("results/plan/specs")


@dataclass
class Index:
    """The content of ``index.json``, as artifacts.

    Args:
        entries: stage, spec, inputs and targets of each folder.
        patterns: for each run, by its file, the regular expressions of wildcards under which it was planned.
        products: the file of the run that last made or found each product, by the product's manifest.
    """

    entries: Mapping[str, dict[str, Any]]
    patterns: Mapping[str, dict[str, str]] = field(default_factory=dict)
    products: Mapping[str, str] = field(default_factory=dict)
    _found: dict[str, Artifact] = field(default_factory=dict, init=False)

    def get(self, folder: str) -> Artifact | None:
        """The artifact in a folder; None where no plan had it."""
        if folder not in self.entries:
            return None
        if folder not in self._found:
            entry = self.entries[folder]
            inputs = {role: self.find(other) for role, other in entry["inputs"].items()}
            self._found[folder] = Artifact(
                entry["stage"], folder, entry["spec"], inputs, entry.get("source"), entry.get("details", {})
            )
        return self._found[folder]

    def find(self, folder: str) -> Artifact:
        """The artifact in a folder."""
        found = self.get(folder)
        if found is None:
            raise EncoreError(f"{INDEX} has no {folder}; run snakemake, which plans and writes it")
        return found

    def run_of(self, product: str) -> Path | None:
        """The file of the run that made a table or figure; None where it is the default, or nobody knows.

        Args:
            product: a table's name, or a file of a table or figure.
        """
        place = Path(product if product.startswith("results/") else f"results/tables/{product}.csv")
        found = self.products.get(str(place.with_suffix(".manifest.json")))
        return Path(found) if found and Path(found).is_file() else None

    def patterns_of(self, run: Path) -> dict[str, str]:
        """The regular expressions of wildcards under which a run was planned; none where it never was.

        Args:
            run: the run's file.
        """
        return self.patterns.get(called(run), {})


def read(path: Path = INDEX) -> Index:
    """The index of earlier plans; empty if it cannot be read: the next run writes it again."""
    return _readable(path) or Index({})


def read_entries() -> Mapping[str, dict[str, Any]]:
    """Stage, spec, inputs and targets of each folder that earlier plans make."""
    return read().entries


def is_damaged(path: Path = INDEX) -> bool:
    """True if there is an index and it cannot be read."""
    return path.exists() and _readable(path) is None


def _readable(path: Path) -> Index | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        entries, patterns = content["artifacts"], content["patterns"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    products = content.get("products", {})
    are_mappings = all(isinstance(each, dict) for each in (entries, patterns, products))
    return Index(entries, patterns, products) if are_mappings else None


def spec_file(folder: str) -> Path:
    """The path of the spec of a folder of results."""
    return SPECS / f"{folder.removeprefix('results/')}.json"


def write(
    run: str,
    targets: Mapping[str, Iterable[Artifact]],
    others: Iterable[Artifact] = (),
    patterns: Mapping[str, str] | None = None,
    products: Iterable[str] = (),
    awaited: Collection[str] = (),
) -> None:
    """Write the index, and the specs of what is needed.

    What earlier plans had stays in it as long as its folder exists or a run at work is to make it, with all that it is
    made from; so do products that exist.

    Args:
        run: the run's file.
        targets: the files that the run is to make, each with what it reads.
        others: what further jobs make, such as those of a table that only the report shows.
        patterns: this run's regular expressions of wildcards, by which a job distinguishes rules.
        products: the manifests of this run's tables, figures, claims and report, which no other run has made.
        awaited: files that runs at work in this folder read and make.
    """
    needed: dict[str, Artifact] = {}
    needed_by: dict[str, list[str]] = {}
    for target, reads in targets.items():
        for artifact in upstream(reads):
            needed.setdefault(artifact.folder, artifact)
            needed_by.setdefault(artifact.folder, []).append(target)
    needed = {artifact.folder: artifact for artifact in upstream(others)} | needed
    now = {
        folder: {
            "stage": artifact.stage,
            "spec": artifact.spec,
            "inputs": {role: parent.folder for role, parent in artifact.inputs.items()},
            "targets": sorted(needed_by.get(folder, [])),
            **({"source": artifact.source} if artifact.source else {}),
            **({"details": dict(artifact.details)} if artifact.details else {}),
        }
        for folder, artifact in needed.items()
    }
    name = called(Path(run))
    with locked(INDEX.parent):
        earlier = read()
        made = {place: by for place, by in earlier.products.items() if Path(place).is_file()}
        made |= dict.fromkeys(products, name)
        by_run = {**earlier.patterns, name: dict(patterns or {})}
        artifacts = _kept(earlier.entries, awaited) | now
        write_json(INDEX, {"run": run, "patterns": by_run, "products": made, "artifacts": artifacts})
    for folder, entry in now.items():
        job = {name: value for name, value in entry.items() if name != "targets"}
        write_changed(spec_file(folder), json.dumps(job, sort_keys=True, indent=1, ensure_ascii=False) + "\n")


def add_products(run: str, products: Iterable[str]) -> None:
    """Note in the index which products a run has made or found, when it ends; a damaged index is left to the next run.

    Args:
        run: the run's file.
        products: their manifests.
    """
    with locked(INDEX.parent):
        if found := _readable(INDEX):
            made = {**found.products, **dict.fromkeys(products, called(Path(run)))}
            write_json(INDEX, {"run": run, "patterns": found.patterns, "products": made, "artifacts": found.entries})


def _kept(entries: Mapping[str, dict[str, Any]], awaited: Collection[str]) -> dict[str, dict[str, Any]]:
    """The entries whose folders exist or are awaited, and those of all that these are made from."""
    kept: dict[str, dict[str, Any]] = {}
    waiting = [folder for folder in entries if Path(folder).is_dir() or f"{folder}/manifest.json" in awaited]
    while waiting:
        folder = waiting.pop()
        if folder in entries and folder not in kept:
            kept[folder] = entries[folder]
            waiting.extend(entries[folder]["inputs"].values())
    return kept

"""The records of an artifact: ``manifest.json`` (deterministic, the dependency edge) and ``run.json`` (how).

Folders are named relative to the working directory, so a copied results folder keeps its manifests.
"""

import json
import math
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.storage import machine
from encore.storage.files import json_text, readable_object, sha256, write_json
from encore.storage.lock import LOCK, locked
from encore.storage.typed import encore

MANIFEST = "manifest.json"
NAME = re.compile(r"(\d{3,})-of-(\d{3,})")  # of a shard's folder
VECTORS = "index"  # of a shard: the one file that may be emptied, see encore.retrieval.kept_vectors
PARTS = ("spec", "results", "inputs", "outputs")
REQUIRED: dict[str, Any] = {"seconds": (int, float), "device": str, "python": str, "packages": dict}  # of run.json
OPTIONAL: dict[str, Any] = {"command": list, "peak_memory_mb": int, "cpu_seconds": float, "machine": str}
OPTIONAL |= {"forked": bool, "processes": int, "threads": int, "search": dict, "build": dict}
OPTIONAL |= {"own_cpu_seconds": float}
LITTER = ("*.tmp", "*~", ".*.swp", ".nfs*", ".DS_Store")  # unfinished writes, editors, file systems: never read
REPORTED_PACKAGES = (
    "numpy",
    "scipy",
    "torch",
    "tokenizers",
    "faiss-cpu",
    "faiss-gpu",
    "pyserini",
    "ir-measures",
    "ir_datasets",
    "snakemake",
)


@contextmanager
def record(output: Path, *, stage: str, spec: dict[str, Any], inputs: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Verify the inputs, let the body fill ``output``, then write its ``run.json`` and, last, its ``manifest.json``.

    ``inputs`` are folders of other artifacts. The dictionary given to the body takes facts for ``run.json`` (final
    loss, rates); under the key ``"results"`` it takes deterministic ones for the manifest (counts, operations spent).
    """
    started = time.time()
    for folder in inputs:
        verify(folder)
    with locked(output):
        (output / MANIFEST).unlink(missing_ok=True)
        for path in output.rglob("*.tmp"):  # of a job that was killed; they can be large
            if path.name != LOCK and (path.is_symlink() or not path.is_dir()):
                path.unlink()
        facts: dict[str, Any] = {}
        before = _cpu_seconds()
        yield facts
        own = round(_cpu_seconds() - before, 2)
        results = facts.pop("results", {})
        times = {"seconds": round(time.time() - started, 2), "own_cpu_seconds": own}  # own: between checks and digests
        write_json(output / "run.json", {"stage": stage, **_surroundings(stage), **times, **facts})
        write_json(
            output / MANIFEST,
            {
                "stage": stage,
                "spec": spec,
                "results": results,
                "inputs": {str(folder / MANIFEST): describe(folder / MANIFEST) for folder in inputs},
                "outputs": {str(path.relative_to(output)): describe(path) for path in _files(output)},
            },
        )


def state_of(folder: Path) -> Path:
    """Where an unfinished job keeps what it resumes from: ``results/state/models/…`` of ``results/models/…``."""
    return Path("results/state", str(folder).strip("/").removeprefix("results/"))


def has_no_vectors(folder: Path) -> bool:
    """True if a folder is a shard whose vectors were removed: its ``index`` is an empty file."""
    file = folder / VECTORS
    return NAME.fullmatch(folder.name) is not None and file.is_file() and file.stat().st_size == 0


def is_unfinished(folder: Path) -> bool:
    """True if a folder has no manifest: its job was killed or failed, perhaps while it built the folder again."""
    return folder.is_dir() and not (folder / MANIFEST).exists()


def describe(path: Path) -> dict[str, Any]:
    """Digest and size, as manifests record them."""
    return {"sha256": sha256(path), "bytes": path.stat().st_size}


def described(*folders: Path) -> list[dict[str, Any]]:
    """The descriptions of artifacts' manifests, which differ where any byte of the artifacts does."""
    return [describe(folder / MANIFEST) for folder in folders]


def read_manifest(folder: Path) -> dict[str, Any]:
    """An artifact's manifest."""
    path = folder / MANIFEST
    if not path.is_file():
        raise EncoreError(
            f"{path} is missing: the artifact was not finished or was removed; run snakemake for it again"
        )
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
    except OSError as error:
        raise EncoreError(f"{path} cannot be read ({error.strerror}); give access to it, then repeat") from error
    except (ValueError, RecursionError) as error:
        raise EncoreError(f"{path} is not JSON ({error}); {_repair()}") from error
    if not (isinstance(manifest, dict) and all(isinstance(manifest.get(key), dict) for key in PARTS)):
        raise EncoreError(f"{path} is not a manifest; {_repair()}")
    return manifest


def are_described(files: Sequence[Any]) -> bool:
    """True if each is a digest and a size as ``describe`` gives them, and nothing else."""
    kinds = {"sha256": str, "bytes": int}
    return all(isinstance(file, dict) and {key: type(value) for key, value in file.items()} == kinds for file in files)


def is_as_written(path: Path, record: dict[str, Any]) -> bool:
    """True if a manifest has the bytes that its content is written with: blanks could give it a digest at will."""
    try:
        return path.read_bytes() == json_text(record).encode()
    except ValueError:  # NaN, or half a character
        return False


def read_run(folder: Path) -> dict[str, Any]:
    """The content of ``run.json``: how an artifact was made; empty if it is damaged, as nothing depends on it."""
    run = readable_object(folder / "run.json")
    if not all(isinstance(run.get(key), kind) for key, kind in REQUIRED.items()):
        return {}
    typed = all(isinstance(run.get(key, kind()), kind) for key, kind in OPTIONAL.items())
    texts = [*run["packages"].values(), *run.get("command", [])] if typed else [None]
    counted = ("seconds", "cpu_seconds", "own_cpu_seconds", "peak_memory_mb")
    numbers = [run[key] for key in counted if key in run]
    whole = all(isinstance(text, str) for text in texts) and all(math.isfinite(number) for number in numbers)
    return run if whole else {}


def read_results(folder: str) -> dict[str, Any]:
    """The deterministic facts of an artifact: counts, operations spent."""
    results: dict[str, Any] = read_manifest(Path(folder))["results"]
    return results


def _repair() -> str:
    """The repair of a damaged folder, as a sentence."""
    return f"run `{encore('audit', '--prune')}`, then snakemake again"


def verify(folder: Path, files: Sequence[str] | None = None) -> None:
    """Compare the files of an artifact with its manifest: all, or those that will be read."""
    for reason in problems(folder, files):
        raise EncoreError(f"{reason}; {_repair()}")


def problems(folder: Path, files: Sequence[str] | None = None) -> Iterator[str]:
    """Each file of an artifact (all, or the named ones) that is missing, cut short, altered or added, in words.

    Removed vectors are not a problem: jobs that need them encode them again.
    """
    outputs = read_manifest(folder)["outputs"]
    if files is None:
        yield from (f"{path} was added: the manifest does not list it" for path in added(folder, outputs.keys()))
    for name in outputs if files is None else files:
        path, expected = folder / name, outputs.get(name)
        if name == VECTORS and has_no_vectors(folder):
            continue
        if expected is None:
            yield f"{folder / MANIFEST} lists no {name}"
            continue
        try:
            if not path.is_file():
                yield f"{path} is {'no file' if os.path.lexists(path) else 'missing'}"
            elif path.stat().st_size != expected["bytes"]:
                yield f"{path} has {path.stat().st_size} bytes, its manifest says {expected['bytes']}"
            elif sha256(path) != expected["sha256"]:
                yield f"{path} was altered: its sha256 is not the one in its manifest"
        except OSError as error:
            if machine.is_of_machine(error):
                raise
            yield f"{path} cannot be read: {error.strerror}"


def changed_inputs(place: str, record: dict[str, Any], expected: set[str]) -> Iterator[str]:
    """Problems with the inputs that a manifest names, a sentence each: not those expected, or changed since."""
    if set(record["inputs"]) != expected:
        yield f"{place} was made from other folders than the plan says"
    for name, digest in record["inputs"].items():
        if Path(name).is_file() and describe(Path(name)) != digest:
            yield f"{place}: its input {name} is not the one that it was made from"


def added(folder: Path, listed: Collection[str], pattern: str = "**/*") -> Iterator[Path]:
    """Unlisted files, links and devices in a folder of results, except those that editors leave."""
    expected = {folder / name for name in (*listed, MANIFEST, "run.json")}
    for path in sorted(folder.glob(pattern)):
        is_folder = path.is_dir() and not path.is_symlink()
        if path not in expected and not is_folder and not _is_litter(path):
            yield path


def _files(folder: Path) -> list[Path]:
    """Every file of an artifact except the two records and what is never read."""
    records = {folder / MANIFEST, folder / "run.json"}
    files = (path for path in folder.rglob("*") if path.is_file() and path not in records)
    return sorted(path for path in files if not _is_litter(path))


def _is_litter(path: Path) -> bool:
    is_file = path.is_file() and not path.is_symlink()  # a link could have another file written to
    return is_file and any(fnmatch(path.name, name) for name in LITTER)


def look_up_for_forks() -> None:
    """Look up, in a process whose forks are jobs, what is the same for all of them: commit, packages, library."""
    _commit(Path.cwd())
    _versions()


def _surroundings(stage: str) -> dict[str, Any]:
    return {
        "commit": _commit(Path.cwd()),
        "command": sys.argv,
        "forked": sys.argv[0] not in sys.orig_argv,  # from a process that was started for another program
        "python": platform.python_version(),
        "packages": _versions(),
        "machine": platform.machine(),
        "device": machine.gpu() or "cpu",  # that torch computed on; cpu for a stage that did not load it
        "cores": machine.cores(),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
        "peak_memory_mb": machine.peak_memory_mb(),
        "cpu_seconds": round(_cpu_seconds(), 2),
    }


def _cpu_seconds() -> float:
    """The processor's seconds from the program's start on, ended children included."""
    return math.fsum(os.times()[:4])


@cache
def _versions() -> dict[str, str]:
    return machine.versions(REPORTED_PACKAGES)


@cache
def _commit(folder: Path) -> str | None:
    """The commit that ran in a folder, with ``+`` for uncommitted changes; None outside a git checkout."""
    try:
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip()

"""Changes of an artifact: of one of its files, or of its manifest; each says what an audit must find and name."""

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from finished_run import MANIFEST, FinishedRun, Json

ODD_JSON = [
    "[]",
    "null",
    "7",
    '"text"',
    "{",
    "",
    '{"a": 1}',
    '{"spec": {}, "results": {}, "inputs": {}, "outputs": {}}',
]
ODD_JSON += [
    '{"stage": [], "spec": 1, "results": 2, "inputs": {"a": []}, "outputs": {"b": {}}}',
    "[" * 100_000,
    "NaN",
    "\0",
]
STRAYS = ("segments_2", "_0_1.liv", ".hidden", "001-of-002/index", "docid.npy", "model.bin", "a b/é", "run.trec")


@dataclass(frozen=True)
class Expected:
    """What an audit must say of a change: a finding at one of these places, and all of these rows and no other."""

    places: set[str]
    rows: set[str] = field(default_factory=set)


Change = Callable[[FinishedRun, random.Random], Expected]


def of_artifact(run: FinishedRun, folder: str) -> Expected:
    return Expected({folder}, run.rows(folder))


def of_consumers(run: FinishedRun, folder: str) -> Expected:
    """Of an artifact that agrees with its own manifest: who reads it tells."""
    readers = run.consumers(folder)
    return Expected(readers, set().union(*(run.rows(reader) for reader in readers)))


def of_both(run: FinishedRun, one: str, other: str) -> Expected:
    return Expected({one}, run.rows(one) | run.rows(other))


# One file of an artifact


def any_file(run: FinishedRun, chance: random.Random) -> tuple[str, str]:
    """An artifact's folder and one of its listed files that is not empty, its kind drawn first: models are few."""
    kinds = sorted({folder.split("/")[1] for folder in run.manifests})
    kind = chance.choice(kinds)
    folder = chance.choice([folder for folder in run.manifests if folder.split("/")[1] == kind])
    files = [name for name, about in run.manifests[folder]["outputs"].items() if about["bytes"]]
    return folder, f"{folder}/{chance.choice(files)}"


def of_bytes(change: Callable[[bytes, random.Random], bytes]) -> Change:
    def changed(run: FinishedRun, chance: random.Random) -> Expected:
        folder, place = any_file(run, chance)
        run.write(place, change((run.root / place).read_bytes(), chance))
        return of_artifact(run, folder)

    return changed


def flipped(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]


def lost(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    (run.root / place).unlink()
    return of_artifact(run, folder)


def a_folder_instead(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    (run.root / place).unlink()
    (run.root / place).mkdir()
    return of_artifact(run, folder)


def a_pipe_instead(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    (run.root / place).unlink()
    os.mkfifo(run.root / place)
    return of_artifact(run, folder)


def a_broken_link(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    (run.root / place).unlink()
    (run.root / place).symlink_to("nowhere")
    return of_artifact(run, folder)


def swapped_files(run: FinishedRun, chance: random.Random) -> Expected:
    """Two files of one name, of two artifacts of one kind."""
    pairs = [
        (f"{one}/{name}", f"{other}/{name}")
        for one in run.manifests
        for other in run.manifests
        if one < other and one.split("/")[1] == other.split("/")[1]
        for name, about in run.manifests[one]["outputs"].items()
        if "/" not in name
        if run.manifests[other]["outputs"].get(name, about) != about
    ]
    first, second = chance.choice(pairs)
    contents = [(run.root / place).read_bytes() for place in (second, first)]
    for place, content in zip((first, second), contents, strict=True):
        run.write(place, content)
    return of_both(run, *(str(Path(place).parent) for place in (first, second)))


def swapped_folders(run: FinishedRun, chance: random.Random) -> Expected:
    """Two artifacts of one kind under each other's names."""
    folders = [(one, other) for one in run.manifests for other in run.manifests if one < other]
    first, second = chance.choice([(one, other) for one, other in folders if one.split("/")[1] == other.split("/")[1]])
    kept = run.root / "results/swapped"
    (run.root / first).rename(kept)
    (run.root / second).rename(run.root / first)
    kept.rename(run.root / second)
    return of_both(run, first, second)


def a_lost_folder(run: FinishedRun, chance: random.Random) -> Expected:
    folder = chance.choice([*run.manifests])
    shutil.rmtree(run.root / folder)
    return of_artifact(run, folder)


def an_added_file(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    where = str(Path(place).parent if chance.random() < 0.7 else folder)
    run.write(f"{where}/{chance.choice(STRAYS)}", chance.choice([b"", b"more", (run.root / place).read_bytes()]))
    return of_artifact(run, folder)


def an_added_link(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    target = chance.choice([place, "/etc", "nowhere", folder])
    (run.root / folder / chance.choice(STRAYS[:3])).symlink_to(run.root / target)
    return of_artifact(run, folder)


# The manifest of an artifact


def of_manifest(change: Callable[[Json, random.Random], None], found: Callable[..., Expected]) -> Change:
    def changed(run: FinishedRun, chance: random.Random) -> Expected:
        folder = chance.choice([folder for folder, record in run.manifests.items() if record["inputs"]])
        run.edit(f"{folder}/{MANIFEST}", lambda record: change(record, chance))
        return found(run, folder)

    return changed


def another_digest(described: Json) -> None:
    described["sha256"] = described["sha256"][::-1]


def drop(content: Json, chance: random.Random) -> None:
    del content[chance.choice([*content])]


def text_of_manifest(texts: Callable[[str, random.Random], str | bytes | None]) -> Change:
    def changed(run: FinishedRun, chance: random.Random) -> Expected:
        folder = chance.choice([*run.manifests])
        place = run.root / folder / MANIFEST
        content = texts(place.read_text(), chance)
        place.unlink() if content is None else run.write(f"{folder}/{MANIFEST}", content)
        return of_artifact(run, folder)

    return changed

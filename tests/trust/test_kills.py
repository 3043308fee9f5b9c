"""Jobs killed at any moment, trainings above all: no half file, and the same job again ends with the same bytes."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trials import SEED, Count

from encore.storage import manifest
from encore.storage.lock import locked
from tests.support import served
from tests.support.clones import Clone, environment

TRAININGS = (
    "tiny+ict-s0",
    "tiny+control-s0",
    "tiny+marco-bm25-s0",
    "tiny+ict+marco-bm25-s0",
    "tiny+marco-bm25+marco-hn",
)
OTHERS = ("collections/", "tokenizers/", "tokens/", "indexes/lucene/", "indexes/tiny+ict+", "models/tiny-s0-")
OTHERS += ("runs/bm25-", "runs/tiny+control", "negatives/tiny+ict+", "scores/bm25-")
WHOLE = [*((name, 5) for name in TRAININGS), *((name, 3) for name in OTHERS)]
SIZES = [pytest.param(name, 2, id=f"sample {name}") for name in ("tiny+ict-s0", "negatives/tiny+ict+")]
SIZES += [pytest.param(name, times, id=name, marks=pytest.mark.everything) for name, times in WHOLE]
PATIENCE = 60.0  # seconds until a job must have come to the moment that is waited for


class Job:
    """A job of a finished run, which is carried out again as its rule did."""

    def __init__(self, clone: Clone, folder: str) -> None:
        self.clone, self.folder = clone, clone.root / "results" / folder
        self.before = clone.root / "before"
        self.folder.rename(self.before)
        self.command = json.loads((self.before / "run.json").read_text())["command"]
        if self.trains:
            self.command[self.command.index("--checkpoint-seconds") + 1] = "0.0001"
        served.server()

    @property
    def trains(self) -> bool:
        return "--checkpoint-seconds" in self.command

    @property
    def steps(self) -> int:
        return int(json.loads((self.before / manifest.MANIFEST).read_text())["results"]["steps"])

    @property
    def state(self) -> Path:
        return self.clone.root / self.command[self.command.index("--state") + 1]

    def start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(served.folder() / "python"), *self.command],
            cwd=self.clone.root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kill(self, moment: Callable[[], bool]) -> bool:
        """Start the job and kill it at a moment; whether it was still at work then."""
        process = self.start()
        deadline = time.monotonic() + PATIENCE
        has_come = False
        while process.poll() is None and not has_come and time.monotonic() < deadline:
            has_come = moment()  # without a pause: a checkpoint is written in milliseconds
        alive = process.poll() is None and has_come
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with locked(self.folder):  # once the kernel has ended it
            pass
        return alive and not (self.folder / manifest.MANIFEST).exists()

    def half_files(self) -> list[str]:
        """Files under their last names with other bytes than the finished job gave them."""
        present = [path for path in self.folder.rglob("*") if path.is_file() and not is_temporary(path)]
        names = [str(path.relative_to(self.folder)) for path in present if path.name != "run.json"]
        return [name for name in names if (self.folder / name).read_bytes() != (self.before / name).read_bytes()]

    def finish(self) -> str:
        """What the job says that is left in peace, if it fails."""
        process = self.start()
        said, _ = process.communicate(timeout=300)
        return said if process.returncode else ""


def is_temporary(path: Path) -> bool:
    return any(part.endswith(".tmp") for part in path.parts)


def at_work(chance: random.Random, folder: Path) -> Callable[[], bool]:
    """Some time after a job has begun to make its folder."""
    return after(folder.is_dir, chance.choice([0.01, 0.1, 1.0]) * chance.random())


def in_training(chance: random.Random, state: Path, steps: int) -> Callable[[], bool]:
    """Some milliseconds after the checkpoint of some step, or while the next one is written; each step has one."""
    step = chance.randrange(max(1, steps - 4))
    if chance.random() < 0.4:
        return after(lambda: last_step(state) >= step, chance.random() * 0.05)
    return lambda: last_step(state) >= step and (any(state.glob(".step-*.tmp")) or last_step(state) > step + 2)


def after(begun: Callable[[], bool], seconds: float) -> Callable[[], bool]:
    """Whether so many seconds have passed since something began."""
    seen: list[float] = []

    def come() -> bool:
        if not seen and begun():
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() > seen[0] + seconds

    return come


def last_step(state: Path) -> int:
    """Of the newest checkpoint; 0 where there is none."""
    names = os.listdir(state) if state.is_dir() else []  # noqa: PTH208  # the fastest look
    return max((int(name[5:-3]) for name in names if name.startswith("step-")), default=0)


def what_was_hit(job: Job) -> str:
    """The moment at which a job was killed, by what it has left."""
    if not job.trains:
        return "another job"
    if any(job.state.glob(".step-*.tmp")):
        return "a training, while a checkpoint was written"
    return f"a training, {'between' if last_step(job.state) else 'before the first of its'} checkpoints"


@pytest.mark.parametrize(("name", "times"), SIZES)
def test_a_killed_job_ends_with_the_same_bytes(nano: Clone, name: str, times: int, count: Count) -> None:
    kind = name if "/" in name else f"models/{name}"
    (folder, *_) = (path.parent for path in sorted((nano.root / "results").glob(f"{kind}*/**/{manifest.MANIFEST}")))
    job = Job(nano, str(folder.relative_to(nano.root / "results")))
    chance, hit = random.Random(f"{SEED} {name}"), []
    while len(hit) < times:
        moment = in_training(chance, job.state, job.steps) if job.trains else at_work(chance, job.folder)
        if not job.kill(moment):
            shutil.rmtree(job.folder, ignore_errors=True)  # it was faster: again
            continue
        assert job.half_files() == []
        hit.append(what_was_hit(job))
    assert job.finish() == ""
    assert {path: path.read_bytes() for path in outputs(job.folder)} == {
        job.folder / path.relative_to(job.before): path.read_bytes() for path in outputs(job.before)
    }
    assert not [path for path in (nano.root / "results").rglob("*.tmp") if path.is_file()]
    assert not [path for path in (nano.root / "results/state").rglob("*") if path.is_file()]
    for kind in hit:
        count("kills", kind, 1, 1)


def outputs(folder: Path) -> list[Path]:
    """All files of an artifact but what tells times."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "run.json")

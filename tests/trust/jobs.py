"""Jobs of a finished run, carried out again as their rules did, to be disturbed."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from encore.storage import manifest
from encore.storage.environment import CHECKPOINT_SECONDS
from encore.storage.lock import locked
from tests.support import forks
from tests.support.clones import Clone, environment

PATIENCE = 60.0  # seconds until a job must have come to the moment that is waited for


def folder_of(clone: Clone, kind: str) -> str:
    """The first artifact of a kind, such as ``models/tiny+control``, below results."""
    (found, *_) = sorted((clone.root / "results").glob(f"{kind}*/**/{manifest.MANIFEST}"))
    return str(found.parent.relative_to(clone.root / "results"))


class Job:
    """A job of a finished run, which is carried out again as its rule did."""

    def __init__(self, clone: Clone, folder: str) -> None:
        self.clone, self.folder = clone, clone.root / "results" / folder
        self.before = clone.root / "before"
        self.folder.rename(self.before)
        self.command = json.loads((self.before / "run.json").read_text())["command"]
        self.planned = json.loads((clone.root / self.command[self.command.index("--planned") + 1]).read_text())
        forks.environment()  # before times are taken

    @property
    def trains(self) -> bool:
        return self.planned["stage"].partition(".")[0] in ("pretrain", "finetune")

    @property
    def steps(self) -> int:
        return int(json.loads((self.before / manifest.MANIFEST).read_text())["results"]["steps"])

    @property
    def state(self) -> Path:
        return self.clone.root / manifest.state_of(self.folder.relative_to(self.clone.root))

    def start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, forks.JOB, *self.command],
            cwd=self.clone.root,
            env=environment() | forks.environment() | {CHECKPOINT_SECONDS: "0"},  # one after every step
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


def outputs(folder: Path) -> list[Path]:
    """All files of an artifact but what tells times."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "run.json")

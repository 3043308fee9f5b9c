"""Checkpoints that an interrupted training resumes from: a folder of the newest and the one before it."""

import io
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from encore.errors import EncoreError
from encore.storage import sealed

KEPT = 2


class Resume(NamedTuple):
    """How a training runs and resumes, which decides no byte of it.

    ``state``: the folder of its checkpoints; ``seconds``: between two of them; ``workers``: processes that make batches
    ahead, at least one for a GPU.
    """

    state: Path
    seconds: float = 120.0
    workers: int = 0


class Due:
    """A checkpoint is due some seconds after the last one."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.last = seconds, time.monotonic()

    def __call__(self) -> bool:
        """True if one is due; the time of the next one then counts from here."""
        now = time.monotonic()
        if now - self.last < self.seconds:
            return False
        self.last = now
        return True


def save_checkpoint(folder: Path, run: str, step: int, content: dict[str, Any]) -> None:
    """Write the checkpoint of ``step`` whole or not at all, then drop all but the newest two.

    Args:
        run: identity of the training; ``load_checkpoint`` refuses another run's checkpoints.
        content: tensors, numbers, strings, and lists and dictionaries of these.
    """
    packed = io.BytesIO()  # a full disk then shows as what it is, not as an error of torch's
    torch.save({"run": run, "step": step, **content}, packed)
    sealed.write(folder / f"step-{step:09d}.pt", packed.getbuffer())
    for old in _newest_first(folder)[KEPT:]:
        old.unlink(missing_ok=True)


def load_checkpoint(folder: Path, run: str) -> dict[str, Any] | None:
    """The newest checkpoint that is as it was written, or None.

    A damaged one is removed, so that it does not count among those that are kept.
    """
    for killed in folder.glob(".step-*.tmp"):  # while it was written; nobody writes before all have loaded
        killed.unlink(missing_ok=True)
    for path in _newest_first(folder):
        try:
            packed = io.BytesIO(sealed.read(path))  # one copy at a time: every process of a training reads it
        except EncoreError:
            print(f"{path} is damaged; resuming from the checkpoint before it, or from the start", flush=True)
            path.unlink(missing_ok=True)
            continue
        content: dict[str, Any] = torch.load(packed, map_location="cpu", weights_only=True)
        if content["run"] != run:
            raise EncoreError(
                f"{path} is of another training (data, step or seed differ); remove {folder}, then repeat"
            )
        return content
    return None


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.pt"), reverse=True)

"""How far an audit is: it reads every byte behind the tables, which of a large run takes hours."""

import hashlib
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from encore.errors import EncoreError
from encore.storage.manifest import has_no_vectors, read_manifest

LONG = 20e9  # bytes: an audit of less says nothing of its time
EVERY = 10.0  # seconds between two lines
SAMPLE = bytes(2**24)


class Progress:
    """Prints to standard error how much there is to read, and from time to time what is left."""

    def __init__(self, folders: Iterable[str]) -> None:
        """Count the bytes of artifacts by their manifests."""
        self.total, self.done = float(sum(map(_bytes, folders))), 0.0
        self.began = self.printed = time.monotonic()
        if self.total > LONG:
            hashlib.sha256(SAMPLE).digest()
            rate = len(SAMPLE) / max(time.monotonic() - self.began, 1e-9)
            _say(
                f"{self.total / 1e9:,.0f} GB are read; {_duration(self.total / rate)} if the disk is as fast as sha256"
            )

    def add(self, folder: str) -> None:
        """An artifact was read."""
        self.done += _bytes(folder)
        now = time.monotonic()
        if now - self.printed >= EVERY and self.done:
            self.printed = now
            left = (self.total - self.done) * (now - self.began) / self.done
            _say(f"{self.done / 1e9:,.1f} of {self.total / 1e9:,.1f} GB read, {_duration(left)} left")


def _bytes(folder: str) -> int:
    """Bytes of an artifact by its manifest; none for one that is damaged, or whose vectors were removed."""
    try:
        outputs = read_manifest(Path(folder))["outputs"].values()
        return 0 if has_no_vectors(Path(folder)) else sum(each["bytes"] for each in outputs)
    except (EncoreError, TypeError, KeyError):
        return 0


def _duration(seconds: float) -> str:
    return f"about {seconds / 3600:.1f} hours" if seconds >= 5400 else f"about {max(1, round(seconds / 60))} min"


def _say(text: str) -> None:
    print(f"audit: {text}", file=sys.stderr, flush=True)

"""What has come of a file that is not there yet: its bytes, and a note of where they are from."""

import json
from pathlib import Path

from encore.storage.files import readable_object, write_text

PART = ".part"


class PartialFile:
    """What has come of a file, and which version of it the server reported."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}{PART}")
        self._note = target.with_name(f"{target.name}{PART}.json")

    @property
    def size(self) -> int:
        """Bytes received so far."""
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def version(self) -> str | None:
        """The entity tag or date that the part began with; None where nothing came, or the server reported neither."""
        return self._noted("version")

    @property
    def url(self) -> str | None:
        """The address that the part came from; None as for the version."""
        return self._noted("url")

    def _noted(self, key: str) -> str | None:
        value = readable_object(self._note).get(key) if self.size else None
        return value if isinstance(value, str) and value.isascii() and value.isprintable() else None

    def begin(self, version: str | None = None, url: str | None = None) -> None:
        """Start from the first byte, with a version where the server names one."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
        if version:
            write_text(self._note, json.dumps({"version": version, "url": url}))

    def finish(self) -> None:
        """Give the file its final name and remove the note of its version."""
        self.path.replace(self.target)
        self._note.unlink(missing_ok=True)

"""Trust on first use: where no digest is published, the first download's is written down and held to afterwards."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from encore.errors import EncoreError
from encore.fetching.remote import Remote, digest_of
from encore.storage import write_json

NAME = "trusted.json"


def hold_to_the_first(remote: Remote, path: Path, data_root: Path) -> str:
    """The digest of a file: the published one, or the one that ``data_root/trusted.json`` has or now gets.

    Args:
        path: the file, verified against what is published; it lies below ``data_root``, which names it in the record.

    Raises:
        EncoreError: it is not the file that came first, or the record is damaged.
    """
    if remote.digest is not None:
        return remote.digest
    found, key = digest_of(path, "sha256"), path.relative_to(data_root).as_posix()
    with _alone(data_root):
        trusted = _read(data_root / NAME)
        if trusted.setdefault(key, found) != found:
            raise EncoreError(
                f"{path} has the digest {found}, and {trusted[key]} came first ({data_root / NAME}); see "
                f"{remote.terms} whether it was replaced, and remove the file or its line there"
            )
        write_json(data_root / NAME, trusted)
    return found


def _read(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        trusted = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise EncoreError(f"{path} is not JSON ({error}); mend it, or remove it to trust anew") from error
    if not isinstance(trusted, dict):
        raise EncoreError(f"{path} must be an object of files and digests; mend it, or remove it to trust anew")
    return trusted


@contextmanager
def _alone(data_root: Path) -> Iterator[None]:
    """Jobs that fetch side by side add to one record."""
    with (data_root / f".{NAME}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

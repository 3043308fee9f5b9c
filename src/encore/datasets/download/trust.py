"""Trust on first use: where no digest is published, the first download's is written down and held to afterwards."""

import errno
import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from encore.config.sources import Remote, digest_of
from encore.errors import EncoreError
from encore.storage.files import write_json

NAME = "trusted.json"


def held_to_the_first(remote: Remote, path: Path, data_root: Path) -> str:
    """The digest of a file: the published one, or its own, if that is the one that ``data_root/trusted.json`` has.

    Args:
        path: the file, verified against what is published; its path below ``data_root`` names it in the record.

    Raises:
        EncoreError: it is not the file that came first, or the record is damaged.
    """
    if remote.digest is not None:
        return remote.digest
    found = digest_of(path, "sha256")
    if (first := _read(data_root / NAME).get(_key(path, data_root), found)) != found:
        raise EncoreError(
            f"{path} has the digest {found}, and {first} came first ({data_root / NAME}); see "
            f"{remote.terms} whether it was replaced, and remove the file or its line there"
        )
    return found


def trust(path: Path, digest: str, data_root: Path) -> None:
    """Write down the digest of a file of which none is published, once it was read as what it should be.

    A folder that can only be read, such as an administrator's of a cluster, is used as it is: where nothing can be
    written, nothing is added to the record, and the digest stays in the manifest of what was built from the file.
    """
    if _read(data_root / NAME).get(_key(path, data_root)) == digest:
        return
    try:
        with _alone(data_root):
            write_json(data_root / NAME, {_key(path, data_root): digest, **_read(data_root / NAME)})
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise EncoreError(f"cannot write {data_root / NAME}: {error.strerror}; make room, then repeat") from error
        print(f"{data_root} can only be read: the digest of {path} is not added to {NAME}", flush=True)


def _key(path: Path, data_root: Path) -> str:
    return path.relative_to(data_root).as_posix()


def _read(path: Path) -> dict[str, str]:
    try:
        trusted = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise EncoreError(f"{path} cannot be read: {error.strerror}; make it a file that can be") from error
    except (ValueError, RecursionError) as error:
        raise EncoreError(f"{path} is not JSON ({error}); fix it, or remove it to trust again") from error
    if not isinstance(trusted, dict) or not all(isinstance(digest, str) for digest in trusted.values()):
        raise EncoreError(f"{path} must be an object of files and digests; fix it, or remove it to trust again")
    return trusted


@contextmanager
def _alone(data_root: Path) -> Iterator[None]:
    """Jobs that fetch side by side add to one record."""
    with (data_root / f".{NAME}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

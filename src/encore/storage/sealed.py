"""Files of unfinished work, each with the digest of its own bytes at its end, so that damage is never gone on from.

The results of a job have manifests; what an interrupted job goes on from has none yet.
"""

import hashlib
from pathlib import Path

from encore.errors import EncoreError
from encore.storage.files import replacing

_LENGTH = hashlib.sha256().digest_size


def write(path: Path, content: bytes | memoryview) -> None:
    """Write a file and its seal, whole or not at all.

    Raises:
        EncoreError: it cannot be written.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.write(_seal(path, content))


def read(path: Path) -> memoryview:
    """The content of a file that is as it was written, under the name that it was written under.

    Raises:
        EncoreError: it is not, or is missing.
    """
    try:
        whole = memoryview(path.read_bytes())
    except OSError as error:
        raise EncoreError(f"{path} cannot be read ({error.strerror}); run the same command again") from error
    content, seal = whole[:-_LENGTH], whole[-_LENGTH:]
    if bytes(seal) != _seal(path, content):
        raise EncoreError(f"{path} is damaged: its digest is another; remove it and run the same command again")
    return content


def is_whole(path: Path) -> bool:
    """Whether a file is there and undamaged; a damaged one is removed, with a line that says so."""
    if not path.is_file():
        return False
    try:
        read(path)
    except EncoreError:
        print(f"{path} is damaged; it is made again", flush=True)
        path.unlink(missing_ok=True)
        return False
    return True


def _seal(path: Path, content: bytes | memoryview) -> bytes:
    """Of the name and the content: a file in another's place is damage too."""
    digest = hashlib.sha256(f"{path.name}\n".encode())
    digest.update(content)
    return digest.digest()

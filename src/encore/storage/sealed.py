"""Files of unfinished work, each ending with the digest of its bytes, so that no job resumes from damage.

The results of a job have manifests; the files that an interrupted job resumes from have none yet.
"""

import hashlib
import os
import shutil
import struct
from pathlib import Path

from encore.errors import EncoreError
from encore.storage.files import replacing, writing

_LENGTH = hashlib.sha256().digest_size
_BLOCK = struct.Struct(f"<Q{_LENGTH}s")  # in a file of seals: bytes of a block, and its seal


def write(path: Path, content: bytes | memoryview) -> None:
    """Write a file and its seal, whole or not at all."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.write(_seal(path, content))


def read(path: Path) -> memoryview:
    """The content of a file that is as it was written, under the name that it was written under."""
    try:
        whole = memoryview(path.read_bytes())
    except OSError as error:
        raise EncoreError(f"{path} cannot be read ({error.strerror}); run the same command again") from error
    content, seal = whole[:-_LENGTH], whole[-_LENGTH:]
    if bytes(seal) != _seal(path, content):
        raise EncoreError(f"{path} is damaged: its digest is another; remove it and run the same command again")
    return content


def is_whole(path: Path) -> bool:
    """True if a file exists and is undamaged; a damaged one is removed, and a line is printed."""
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
    """Digest of the name and the content: a file under another's name is damaged too."""
    digest = hashlib.sha256(f"{path.name}\n".encode())
    digest.update(content)
    return digest.digest()


class SealedBlocks:
    """A file that grows by blocks, and next to it their seals: an interrupted job resumes after the last whole block.

    A seal is the digest of what the blocks are made from and of all bytes up to the end of its block. So from the first
    block on that is torn, damaged or made from something else, all are cut off.

    Attributes:
        count: of the blocks that are whole.
    """

    def __init__(self, path: Path, made_from: str) -> None:
        """Open a file, or begin it.

        Args:
            made_from: all that decides the bytes.
        """
        self.path, self._seals = path, path.with_name(f"{path.name}.seals")
        self.count, self._digest = 0, hashlib.sha256(f"{made_from}\n".encode())
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            for file in (path, self._seals):
                if file.is_symlink():
                    file.unlink()  # what it leads to is not ours
                file.touch()
            size = self._read_whole()
            if size < path.stat().st_size:
                print(
                    f"{path} is cut off after {self.count} blocks: what follows is torn or of other inputs", flush=True
                )
            os.truncate(path, size)
            os.truncate(self._seals, self.count * _BLOCK.size)

    def _read_whole(self) -> int:
        """Count the blocks that are whole; their bytes."""
        seals, size = self._seals.read_bytes(), 0
        with self.path.open("rb") as file:
            for start in range(0, len(seals) - _BLOCK.size + 1, _BLOCK.size):
                length, seal = _BLOCK.unpack_from(seals, start)
                block = file.read(min(length, self.path.stat().st_size))
                digest = self._digest.copy()
                digest.update(block)
                if len(block) != length or digest.digest() != seal:
                    break
                self.count, self._digest, size = self.count + 1, digest, size + len(block)
        return size

    def append(self, block: bytes | memoryview) -> None:
        """Write a block, then its seal."""
        with writing(self.path):
            with self.path.open("ab") as file:
                file.write(block)
            self._digest.update(block)
            with self._seals.open("ab") as file:
                file.write(_BLOCK.pack(memoryview(block).nbytes, self._digest.digest()))
        self.count += 1

    def move(self, path: Path) -> None:
        """Give the file its last name; its seals stay for the caller to remove."""
        with replacing(path) as temporary:
            shutil.move(self.path, temporary)

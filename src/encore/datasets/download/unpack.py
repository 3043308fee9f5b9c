"""Taking an archive apart, in a folder that appears whole.

Archives come from strangers. Of one only regular files and folders are taken, under names below its own folder; an
archive with anything else (links, devices, absolute names, ``../``) is refused, and so is one that unpacks to more than
it can sensibly hold. The bytes are written here and not by ``tarfile``, whose filters not every Python 3.11 has.
"""

import bz2
import errno
import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from encore.errors import EncoreError, quoted

Kind = Literal["none", "gz", "tar", "zip"]

SMALL = 1 << 30  # bytes that every archive may unpack to
EXPANSION = 200  # times its own size that a larger one may unpack to; packed text expands about five times
MOST_FILES = 1_000_000  # of an archive, folders included
DEEPEST = 32  # folders within each other
CHUNK = 1 << 20  # bytes
LONGEST_HEADER = 1 << 24  # bytes that are held at once

_PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}  # by how each begins
_ZIPPED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_LINK = "no regular file and no folder; do not use this archive"
_ENCRYPTED = 0x1  # a bit of a zip entry's flags
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)  # not the archive's fault


def unpack(archive: Path, kind: Kind, members: Collection[str], folder: Path) -> None:
    """Write what an archive holds into ``folder``, which does not exist before and is whole after.

    Args:
        members: files and folders in the archive that are wanted, as the archive names them; all if none is named.
    """
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with _explained(archive, kind):
            temporary.mkdir(parents=True)
            match kind:
                case "none":
                    same(archive, temporary / archive.name)
                case "gz":
                    with gzip.open(archive) as packed, (temporary / archive.stem).open("xb") as file:
                        shutil.copyfileobj(_Bounded(packed, archive), file, CHUNK)
                case "tar":
                    _untar(archive, members, temporary)
                case "zip":
                    _unzip(archive, members, temporary)
            missing = [name for name in members if not (temporary / name).exists()]
            if missing:
                raise EncoreError(f"{archive} does not hold {missing[0]}; correct `members:` or `folder:`")
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def same(file: Path, target: Path) -> None:
    """A second name where the disk can give one, since these files may be large; a copy elsewhere."""
    try:
        target.hardlink_to(file)
    except OSError:
        shutil.copyfile(file, target)


class _Bounded:
    """The unpacked bytes of an archive, no further than it may unpack to, and never many at once."""

    def __init__(self, unpacked: IO[bytes] | gzip.GzipFile, archive: Path) -> None:
        self._unpacked, self._archive, self._most = unpacked, archive, _most(archive)
        self.last = b""  # what was read last

    def read(self, size: int = -1) -> bytes:
        """Read up to ``size`` bytes, and keep them as ``last``.

        Raises:
            tarfile.ReadError: more is requested than a header may hold.
        """
        if not 0 <= size <= LONGEST_HEADER:
            raise tarfile.ReadError("a header is too long")
        self.last = self._unpacked.read(size)
        self._check(self._unpacked.tell())
        return self.last

    def seek(self, position: int) -> int:
        """Move to a position of the unpacked bytes, if the archive may unpack to as many."""
        self._check(position)
        return self._unpacked.seek(position)

    def tell(self) -> int:
        """The position in the unpacked bytes."""
        return self._unpacked.tell()

    def _check(self, position: int) -> None:
        if position > self._most:
            raise _too_large(self._archive, self._most)


def _untar(archive: Path, members: Collection[str], folder: Path) -> None:
    with archive.open("rb") as file:
        begins = file.read(6)
    opener = next((_PACKED[magic] for magic in _PACKED if begins.startswith(magic)), open)
    with opener(archive, "rb") as unpacked:
        stream: Any = _Bounded(unpacked, archive)
        with tarfile.open(fileobj=stream, mode="r:") as tar:
            for number, member in enumerate(tar):
                _refuse_many(archive, number + 1)
                if not (member.isreg() or member.isdir()) or member.issparse():
                    raise EncoreError(f"{archive} holds {quoted(member.name)}, which is {_LINK}")
                if member.size < 0:
                    raise tarfile.ReadError("a negative size")
                place = _place(archive, member.name, folder)
                if member.isreg() and _wanted(member.name, members):
                    _write(tar.extractfile(member), member.size, place)
            if stream.last.strip(b"\0"):  # tarfile takes a damaged header for the end
                raise tarfile.ReadError("a header is damaged")
            while stream.read(CHUNK):  # a packed one has its checksum at the end
                pass


def _unzip(archive: Path, members: Collection[str], folder: Path) -> None:
    most = left = _most(archive)
    with zipfile.ZipFile(archive) as packed:
        for number, member in enumerate(packed.infolist()):
            _refuse_many(archive, number + 1)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise EncoreError(f"{archive} holds {quoted(member.filename)}, which is {_LINK}")
            place = _place(archive, member.filename, folder)
            if member.is_dir() or not _wanted(member.filename, members):
                continue
            if member.flag_bits & _ENCRYPTED or member.compress_type not in _ZIPPED:
                how = "encrypted" if member.flag_bits & _ENCRYPTED else "packed in an unknown way"
                raise EncoreError(f"{archive}: {quoted(member.filename)} is {how}; unpack the archive by hand")
            left -= member.file_size  # more than it says is not read of it
            if left < 0:
                raise _too_large(archive, most)
            with packed.open(member) as file:
                _write(file, member.file_size, place)


def _write(source: IO[bytes] | None, size: int, place: Path) -> None:
    """Write one member, which must be as long as its header says."""
    if source is None:
        raise tarfile.ReadError("a member without content")
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as file:  # the second of one name is refused
        shutil.copyfileobj(source, file, CHUNK)
        if file.tell() != size:
            raise tarfile.ReadError(f"{place.name} has {file.tell()} of {size} bytes")


def _wanted(name: str, members: Collection[str]) -> bool:
    own = name.removeprefix("./")
    return not members or any(own == each or own.startswith(f"{each}/") for each in members)


def _place(archive: Path, name: str, folder: Path) -> Path:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise EncoreError(f"{archive} names {quoted(name)}, which is outside of its folder; do not use this file")
    if not name.isprintable() or len(path.parts) > DEEPEST:  # half characters, line breaks, NUL
        raise EncoreError(f"{archive} names {quoted(name)}, which is not the name of a file; do not use this file")
    return folder / name


def _most(archive: Path) -> int:
    return max(SMALL, EXPANSION * archive.stat().st_size)


def _too_large(archive: Path, most: int) -> EncoreError:
    return EncoreError(
        f"{archive} unpacks to more than {most / 1e9:.1f} GB, {EXPANSION} times its size; do not use this file, or "
        "unpack it by hand"
    )


def _refuse_many(archive: Path, files: int) -> None:
    if files > MOST_FILES:
        raise EncoreError(f"{archive} holds more than {MOST_FILES} files; do not use this file, or unpack it by hand")


@contextmanager
def _explained(archive: Path, kind: Kind) -> Iterator[None]:
    try:
        yield
    except EncoreError:
        raise
    except Exception as error:  # damaged archives raise anything
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:200] or type(error).__name__
        if isinstance(error, OSError) and error.errno in _DISK:
            raise EncoreError(f"cannot unpack {archive}: {reason}; make room or give access, then repeat") from error
        raise EncoreError(
            f"{archive} is not a {kind} archive or is damaged ({reason}); remove it and fetch it again"
        ) from error

"""Unpacking archives of strangers: regular files and folders below their own folder, and nothing else.

An archive with links, devices, absolute names or ``../`` is refused. The bytes are written here and not by ``tarfile``,
whose filters not every Python 3.11 has.
"""

import gzip
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from encore.errors import EncoreError, quoted

Kind = Literal["none", "gz", "tar", "zip"]
Members = Iterator[tuple[str, Callable[[], Any] | None]]  # name, and what opens it as a binary file; None of a folder
CHUNK = 1 << 20  # bytes


def unpack(archive: Path, kind: Kind, members: Collection[str], folder: Path) -> None:
    """Write what an archive holds into ``folder``, next to what is there; no file is replaced.

    Args:
        members: files and folders in the archive that are wanted, as the archive names them; all if none is named.
    """
    name = archive.name
    try:
        if kind == "none":
            same(archive, folder / name)
            return
        for name, content in {"gz": _gzipped, "tar": _tarred, "zip": _zipped}[kind](archive):
            place = _place(archive, name, folder)
            if content is not None and _wanted(name, members):
                place.parent.mkdir(parents=True, exist_ok=True)
                with content() as packed, place.open("xb") as file:
                    shutil.copyfileobj(packed, file, CHUNK)
    except FileExistsError as error:
        raise EncoreError(
            f"{archive} holds {name}, which is there from another file of its source, or twice; choose with `members:`"
        ) from error
    except Exception as error:  # damaged archives raise anything
        if isinstance(error, EncoreError) or getattr(error, "errno", None):  # the latter is the disk's fault
            raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise EncoreError(
            f"{archive} is not a {kind} archive or is damaged ({reason}); remove it and fetch it again"
        ) from error
    if missing := [name for name in members if not (folder / name).exists()]:
        raise EncoreError(f"{archive} does not hold {missing[0]}; correct `members:` or `folder:`")


def same(file: Path, target: Path) -> None:
    """A second name where the disk can give one, since these files may be large; a copy elsewhere."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(file)
    except FileExistsError:
        raise
    except OSError:
        shutil.copyfile(file, target)


def _gzipped(archive: Path) -> Members:
    yield archive.stem, partial(gzip.open, archive)


def _tarred(archive: Path) -> Members:
    with tarfile.open(archive) as tar:
        for member in tar:
            if not (member.isreg() or member.isdir()):
                raise _no_file(archive, member.name)
            yield member.name, partial(tar.extractfile, member) if member.isreg() else None
        while rest := tar.fileobj.read(CHUNK):  # a packed one has its checksum at the end
            if rest.strip(b"\0"):  # tarfile takes a damaged header for the end
                raise tarfile.ReadError("a header is damaged")


def _zipped(archive: Path) -> Members:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _no_file(archive, member.filename)
            yield member.filename, None if member.is_dir() else partial(packed.open, member)


def _no_file(archive: Path, name: str) -> EncoreError:
    return EncoreError(
        f"{archive} holds {quoted(name)}, which is no regular file and no folder; do not use this archive"
    )


def _place(archive: Path, name: str, folder: Path) -> Path:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise EncoreError(f"{archive} names {quoted(name)}, which is outside of its folder; do not use this file")
    return folder / name


def _wanted(name: str, members: Collection[str]) -> bool:
    own = name.removeprefix("./")
    return not members or any(own == each or own.startswith(f"{each}/") for each in members)

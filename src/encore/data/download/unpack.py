"""Taking an archive apart, in a folder that appears whole.

Archives of strangers may name files outside of the folder (``../``, absolute paths, links); such an archive is refused
before anything of it is used.
"""

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Literal

from encore.errors import EncoreError

Kind = Literal["none", "gz", "tar", "zip"]


def unpack(archive: Path, kind: Kind, members: Collection[str], folder: Path) -> None:
    """Write what an archive holds into ``folder``, which does not exist before and is whole after.

    Args:
        members: names in the archive that are wanted, as they stand there; all without.

    Raises:
        EncoreError: it is no such archive, is damaged, lacks a member, or names a file outside of the folder.
    """
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        with _explained(archive, kind):
            match kind:
                case "none":
                    same(archive, temporary / archive.name)
                case "gz":
                    with gzip.open(archive) as packed, (temporary / archive.stem).open("wb") as file:
                        shutil.copyfileobj(packed, file, 1 << 20)
                case "tar":
                    with tarfile.open(archive) as tar:
                        _untar(tar, members, temporary)
                case "zip":
                    with zipfile.ZipFile(archive) as packed_zip:
                        _unzip(packed_zip, members, temporary)
        missing = [name for name in members if not (temporary / name).exists()]
        if missing:
            raise EncoreError(f"{archive} does not hold {missing[0]}; correct `members:` in config/sources.yaml")
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


def _untar(tar: tarfile.TarFile, members: Collection[str], folder: Path) -> None:
    for member in tar:
        if not member.isdir() and _wanted(member.name, members):
            _refuse_outside(member.name)
            tar.extract(member, folder, filter="data")  # which refuses links and devices that lead out


def _unzip(packed: zipfile.ZipFile, members: Collection[str], folder: Path) -> None:
    for member in packed.infolist():
        if not member.is_dir() and _wanted(member.filename, members):
            _refuse_outside(member.filename)
            packed.extract(member, folder)


def _wanted(name: str, members: Collection[str]) -> bool:
    return not members or name.removeprefix("./") in members


def _refuse_outside(name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise EncoreError(f"the archive names {name!r}, which lies outside of its folder; do not use this file")


@contextmanager
def _explained(archive: Path, kind: Kind) -> Iterator[None]:
    try:
        yield
    except tarfile.FilterError as error:
        raise EncoreError(f"{archive}: {error}; do not use this file") from error
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise EncoreError(
            f"{archive} is no {kind} archive or is damaged ({error}); remove it and fetch it again"
        ) from error

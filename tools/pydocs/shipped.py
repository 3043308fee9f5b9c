"""The files that Encore ships: the collections in one archive, the versions that they were made of, and licences.

Most of the collections say the same text again, which costs nothing in an archive that is compressed as a whole.
"""

import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from encore.errors import EncoreError
from encore.storage.files import write_bytes, write_json, write_text
from tools.pydocs import sources
from tools.pydocs.collections import DISTRIBUTIONS, STANDARD_LIBRARY, write_collections

ARCHIVE, VERSIONS, LICENCES = "pydocs.tar.xz", "versions.json", "licences"
# The dictionary is larger than all collections together, so that each finds the text of the first again.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 2**26}]
_LICENCE_NAMES = ("licen", "copying", "haven_mit")


def versions() -> dict[str, str]:
    """The installed versions of Python and of the packages that are read."""
    return {STANDARD_LIBRARY: sources.python_version()} | {name: sources.version(name) for name in DISTRIBUTIONS}


def other_versions(shipped: Path) -> list[str]:
    """Where the installed versions differ from those that the shipped files were made of; empty if nowhere."""
    made_of = json.loads((shipped / VERSIONS).read_text(encoding="utf-8"))
    return [
        f"{name} {version} is installed, the files are made of {made_of.get(name)}"
        for name, version in versions().items()
        if made_of.get(name) != version
    ]


def write(shipped: Path, work: Path, processes: int) -> None:
    """Write all files again; ``work`` is an empty folder for the collections."""
    write_bytes(shipped / ARCHIVE, lzma.compress(packed(work, write_collections(work, processes)), filters=FILTERS))
    write_json(shipped / VERSIONS, versions())
    for name, text in licences().items():
        write_text(shipped / LICENCES / f"{name}.txt", text)


def check(shipped: Path, work: Path, processes: int) -> list[str]:
    """What differs between the shipped files and those that would be written now; empty if nothing does.

    The archives are compared by their contents, since other builds of xz may compress in another way.

    Raises:
        EncoreError: other versions are installed, so that nothing can be compared.
    """
    if other := other_versions(shipped):
        raise EncoreError(f"{other[0]}; make the environment with `make env`, or write the files again")
    ours = _members(packed(work, write_collections(work, processes)))
    theirs = _members(lzma.decompress((shipped / ARCHIVE).read_bytes()))
    wrong = [f"{ARCHIVE}: {name}" for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]
    for name, text in licences().items():
        path = shipped / LICENCES / f"{name}.txt"
        wrong += [] if path.is_file() and path.read_text(encoding="utf-8") == text else [f"{LICENCES}/{path.name}"]
    return wrong


def packed(folder: Path, names: Iterable[str]) -> bytes:
    """The named collections of a folder as one tar in this order, their files unpacked, without dates and owners."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in (path for name in names for path in sorted((folder / name).rglob("*")) if path.is_file()):
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            member = tarfile.TarInfo(path.relative_to(folder).as_posix().removesuffix(".gz"))
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


def licences() -> dict[str, str]:
    """The licences and notices of Python and of each package, as installed, by name."""
    python = Path(sources.library_folder() / "LICENSE.txt").read_text(encoding="utf-8")
    return {STANDARD_LIBRARY: python} | {name: _licences_of(name) for name in DISTRIBUTIONS}


def _licences_of(name: str) -> str:
    """All licence files of a distribution, each below its path."""
    found = []
    for file in sorted(metadata.files(name) or (), key=str):
        if file.parts[0].endswith(".dist-info") and any(word in file.name.lower() for word in _LICENCE_NAMES):
            text = Path(str(file.locate())).read_text(encoding="utf-8")
            found.append(f"==== {'/'.join(file.parts[1:])}\n\n{text.strip()}\n")
    return "\n".join(found)


def _members(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {member.name: opened.extractfile(member).read() for member in opened}  # type: ignore[union-attr]

"""Where a file of a collection lies: in a published source, or in a folder of one's own.

``dpr-questions:nq-test.qa.csv`` is a file of the entry ``dpr-questions`` of ``sources.yaml``, whose published digests
are its identity, so that nothing has to be there to plan with it. ``test.csv`` is a file in the dataset's ``path``; its
bytes are the identity.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.storage.files import contents


def sources(places: Iterable[str]) -> list[str]:
    """The sources that places name, each once, in order."""
    return list(dict.fromkeys(source for source, _ in map(_parted, places) if source))


def identity(places: Iterable[str], own: str | None) -> dict[str, Any]:
    """What a spec says of the files of one's own: their digests; those of sources are known by the source's folder.

    Raises:
        EncoreError: such a file is missing, or the dataset has no ``path``.
    """
    paths = {place: _own(place, own) for place in places if not _parted(place)[0]}
    return {"content": contents(paths)} if paths else {}


def located(
    places: Iterable[str], own: Path | None, fetched: Mapping[str, Path], spec: Mapping[str, Any]
) -> dict[str, Path]:
    """The file of each place.

    Args:
        fetched: the folder of each source, by name.
        spec: the collection's, which has the digests of one's own files.

    Raises:
        EncoreError: a file is missing, or is another than was planned with.
    """
    found = {}
    for place in places:
        source, file = _parted(place)
        if source and source not in fetched:
            raise EncoreError(f"a collection of {place} needs --sources, the folder of {source}")
        path = fetched[source] / file if source else _own(place, own)
        if not path.is_file():
            raise EncoreError(f"{path} is missing; correct the dataset's entry, or fetch {source} again")
        found[place] = path
    planned = spec.get("content", {})
    if contents({place: found[place] for place in planned}) != planned:
        raise EncoreError(f"{own} is not what was planned with: its files have changed since; run snakemake again")
    return found


def _parted(place: str) -> tuple[str, str]:
    source, _, file = place.rpartition(":")
    return source, file


def _own(place: str, own: str | Path | None) -> Path:
    if own is None:
        raise EncoreError(f"{place!r} names no source (`source:file`), and the dataset has no `path` to look for it in")
    path = Path(own) / place
    if not path.is_file():
        raise EncoreError(f"{path} is missing; put it there, or name another file or `path`")
    return path

"""The files that a collection is read from, what identifies them, and validation where no file has it.

``dpr-questions:nq-test.qa.csv`` is a file of the entry ``dpr-questions`` of ``sources.yaml``, whose published digests
are its identity, so a run can be planned before it is fetched. ``test.csv`` is a file in the dataset's ``path``; its
bytes are the identity.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from encore.data.collection import Judgment, smallest
from encore.errors import EncoreError
from encore.storage.files import contents, remembered_contents
from encore.storage.text_files import unpacked


def content_of(path: Path, name: str) -> dict[str, str]:
    """What identifies a user's file: its digest, under a name; its file name if it is missing, to plan with."""
    return remembered_contents({name: path}) if path.is_file() else {"absent": path.name}


def refuse_changed(source: Path | None, found: Mapping[str, Any], planned: Mapping[str, Any]) -> None:
    """Raise an EncoreError if a user's files have changed since the run was planned."""
    if found != planned:
        raise EncoreError(f"{source} is not what was planned with: it has changed since; run snakemake again")


def sources(places: Iterable[str]) -> list[str]:
    """The sources that places name, in order, without repetition."""
    return list(dict.fromkeys(source for source, _ in map(_split, places) if source))


def identity(places: Iterable[str], own: str | None) -> dict[str, Any]:
    """What a spec says of the user's files: their digests. Files of sources are identified by the source's folder."""
    paths = {place: _own(place, own) for place in places if not _split(place)[0]}
    return {"content": remembered_contents(paths)} if paths else {}


def located(
    places: Iterable[str], own: Path | None, fetched: Mapping[str, Path], planned: Mapping[str, str]
) -> dict[str, Path]:
    """The file of each place.

    Args:
        fetched: the folder of each source, by name.
        planned: the digests of the user's files in the collection's spec.
    """
    found = {}
    for place in places:
        source, file = _split(place)
        if source and source not in fetched:
            raise EncoreError(f"a collection of {place} needs --sources, the folder of {source}")
        path = fetched[source] / file if source else _own(place, own)
        if not path.is_file():
            raise EncoreError(f"{path} is missing; correct the dataset's entry, or fetch {source} again")
        found[place] = path
    refuse_changed(own, contents({place: found[place] for place in planned}), planned)
    return found


def _split(place: str) -> tuple[str, str]:
    source, _, file = place.rpartition(":")
    return source, file


def _own(place: str, own: str | Path | None) -> Path:
    if own is None:
        raise EncoreError(f"{place!r} names no source (`source:file`), and the dataset has no `path` to look for it in")
    path = Path(own) / place
    if not path.is_file():
        raise EncoreError(f"{path} is missing; put it there, or name another file or `path`")
    return path


def refuse_uncounted(expected: Iterable[str], counted: Collection[str]) -> None:
    """Raise a ValueError if an entry expects a number of something that is not counted."""
    if strange := sorted(set(expected) - set(counted)):
        raise ValueError(f"expected has {strange[0]!r}, which is not counted; known are {', '.join(sorted(counted))}")


def refuse_other_counts(counts: Mapping[str, int], expected: Mapping[str, int], source: str) -> None:
    """Raise an EncoreError if other counts were read than are published."""
    for what, published in expected.items():
        if (found := counts.get(what, 0)) != published:
            raise EncoreError(
                f"{source}: {found} {what} were read, {published} are published; fetch the files again, or correct "
                "`expected:`"
            )


def chosen_to_validate(judged: Iterable[str], queries: int) -> set[str]:
    """This number of training queries, chosen to be held out for validation."""
    return set(smallest(judged, queries, "valid"))


def hold_out(qrels: dict[str, list[Judgment]], source: str, split: str, queries: int) -> dict[str, list[Judgment]]:
    """Training judgments as those that stay and those of the ``queries`` held out for validation.

    For collections that have no judgments to validate with, or report on the only ones.
    """
    judged = dict.fromkeys(judgment.query for judgment in qrels[source])
    if queries >= len(judged):
        last = qrels[source][-1].place if judged else ""
        raise EncoreError(
            f"{last + ': ' if last else ''}valid_queries is {queries}, but {source} ends with query {len(judged)}, and "
            "some must stay to train on; hold out fewer"
        )
    held_out = chosen_to_validate(judged, queries)
    return {
        source: [judgment for judgment in qrels[source] if judgment.query not in held_out],
        split: [judgment for judgment in qrels[source] if judgment.query in held_out],
    }


READ = 16 * 2**20  # bytes of text that are counted; the rest of a larger file is taken to be alike


def estimated(path: Path, count: Callable[[Any], Mapping[str, int]]) -> dict[str, float]:
    """The sums of what each row of a file of JSON lines counts, packed or not.

    Raises:
        OSError, EOFError, ValueError: the file cannot be read, or a row of it is no JSON.
    """
    total, size, seen = Counter[str](), path.stat().st_size, 0
    with path.open("rb") as packed, unpacked(packed, path.suffix) as lines:
        for line in lines:
            total.update(count(json.loads(line)) if line.strip() else {})
            seen += len(line)
            if seen > READ and packed.tell() < size:
                break
        share = packed.tell() / size
    return {name: number / share for name, number in total.items()}

"""Vectors on the disk while jobs need them: ``execution: keep_vectors: false`` removes them afterwards.

A shard without vectors keeps its ids and its manifest, and its ``index`` is an empty file. So Snakemake, which looks
whether a file is there, makes nothing again; who needs the vectors later encodes them again and compares their digest.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

from encore.errors import EncoreError
from encore.storage import environment
from encore.storage.files import sha256, write_bytes
from encore.storage.lock import locked
from encore.storage.manifest import MANIFEST, VECTORS, describe, has_no_vectors, read_manifest, state_of, verify

Planned = Callable[[], Mapping[str, dict[str, Any]]]
Encode = Callable[[dict[str, Any], dict[str, Path], Path, Path], Any]


@contextmanager
def vectors_of(shards: Sequence[Path], planned: Planned, encode: Encode) -> Iterator[None]:
    """Have the vectors of shards on the disk for the body; after it, remove them if the plan makes no more of them.

    Args:
        shards: folders that ``encode`` made.
        planned: reads which folders the plan makes, each with its ``inputs``.
        encode: makes a shard by its spec and its inputs, by role, in a folder, and is given one for unfinished state.
    """
    keeps = environment.number(environment.KEEP_VECTORS)
    for shard in shards:
        if has_no_vectors(shard):
            with locked(shard, patience=math.inf):  # others wait for them too
                _encode_again(shard, encode)
    yield
    if not keeps:
        _remove_where_all_is_made(shards, planned())


def _encode_again(shard: Path, encode: Encode) -> None:
    if not has_no_vectors(shard):  # another job has just encoded them
        return
    made = read_manifest(shard)
    sources = {Path(place).parts[1]: Path(place).parent for place in made["inputs"]}
    for folder in sources.values():
        verify(folder)
    print(f"the vectors of {shard} were removed: encoding again", flush=True)
    state = state_of(shard)
    encoded = state / "encoded" / shard.name
    encode(made["spec"], {"model": sources["models"], "tokens": sources["tokens"]}, encoded, state)
    if sha256(encoded / VECTORS) != made["outputs"][VECTORS]["sha256"]:
        rmtree(state)
        raise EncoreError(
            f"the vectors of {shard} were removed, and encoded again they have other bytes, as on another machine; "
            f"remove {shard.parent}, and Snakemake makes it and all that depends on it again"
        )
    (encoded / VECTORS).replace(shard / VECTORS)
    rmtree(state)


def _remove_where_all_is_made(shards: Sequence[Path], entries: Mapping[str, dict[str, Any]]) -> None:
    """Remove the vectors of those shards of which every run, index and measurement in the plan is finished."""
    for shard in shards:
        planned = [Path(folder) for folder, entry in entries.items() if str(shard) in entry["inputs"].values()]
        try:
            if planned and all(_is_made_of(folder, shard) for folder in planned):
                write_bytes(shard / VECTORS, b"")
        except (EncoreError, OSError) as error:  # the results are as good as before
            print(f"the vectors of {shard} stay: {error}", flush=True)


def _is_made_of(folder: Path, shard: Path) -> bool:
    """True if a folder is finished, and was built from this shard as it is now."""
    if not (folder / MANIFEST).is_file():
        return False
    name = shard / MANIFEST
    return bool(read_manifest(folder)["inputs"].get(str(name)) == describe(name))

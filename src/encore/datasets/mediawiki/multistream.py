"""A ``-multistream`` dump: blocks of a hundred pages, each packed by itself, so that processes can share the work.

Its index, ``<begin of the block>:<page id>:<title>`` a line, lies next to it under Wikimedia's name.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from encore.datasets.mediawiki.dump import Page, PageParser
from encore.errors import EncoreError

_READ = 2**20


class StreamBlock(NamedTuple):
    """Bytes ``begin`` to ``end`` of a dump, which hold ``pages`` pages."""

    path: Path
    begin: int
    end: int
    pages: int
    last: bool


def index_of(path: Path) -> Path | None:
    """The index next to a dump, packed or not; None where there is none."""
    if "-multistream" not in path.name or path.suffix != ".bz2":
        return None
    named = path.name.replace("-multistream", "-multistream-index", 1).replace(".xml", ".txt", 1)
    candidates = (path.with_name(name) for name in (named, named.removesuffix(".bz2")))
    return next((file for file in candidates if file.is_file()), None)


def read_blocks(path: Path, index: Path) -> Iterator[StreamBlock]:
    """The blocks of a dump in its order.

    Raises:
        EncoreError: the index is damaged, or speaks of another dump.
    """
    size = path.stat().st_size
    begin, count = -1, 0
    for place, offset in _offsets(index):
        if offset != begin:
            if not begin < offset < size:
                raise EncoreError(f"{place}: no block of {path} can begin at byte {offset}; fetch index and dump anew")
            if count:
                yield StreamBlock(path, begin, offset, count, last=False)
            elif _has_pages(path, offset):
                raise EncoreError(f"{place}: pages stand before the first block of {path}; fetch index and dump anew")
            begin, count = offset, 0
        count += 1
    if not count:
        raise EncoreError(f"{index} is empty; fetch it anew, or remove it to read the dump without it")
    yield StreamBlock(path, begin, size, count, last=True)


def read_pages(block: StreamBlock) -> list[Page]:
    """The pages of a block.

    Raises:
        EncoreError: with the block's place: damaged, or not what the index says.
    """
    parser = PageParser()
    place = f"{block.path}, block at byte {block.begin}"
    found: list[Page] = []
    parser.feed(b"<mediawiki>")
    try:
        for data in _unpacked(block):
            found += parser.feed(data)
            if len(found) > block.pages:
                break
        # The dump's own end stands in its last block; what is missing there was cut off.
        parser.feed(b"" if block.last else b"</mediawiki>", last=True)
    except EncoreError as error:
        if len(found) <= block.pages:
            raise EncoreError(f"{place}, {error}") from error
    except (OSError, EOFError) as error:
        raise EncoreError(f"{place}: cannot be read ({error}); replace the dump or its index") from error
    if len(found) != block.pages:
        more = "more" if len(found) > block.pages else f"{len(found)}"
        raise EncoreError(f"{place}: {more} pages where the index has {block.pages}; fetch index and dump anew")
    return found


def _offsets(index: Path) -> Iterator[tuple[str, int]]:
    number = 0
    try:
        with bz2.open(index) if index.suffix == ".bz2" else index.open("rb") as file:
            for number, line in enumerate(file, 1):
                offset = line.partition(b":")[0]
                if not offset.isdigit():
                    raise EncoreError(f"{index}, line {number}: begins with no byte number; fetch the index anew")
                yield f"{index}, line {number}", int(offset)
    except (OSError, EOFError) as error:
        raise EncoreError(f"{index}, after line {number}: cannot be read ({error}); fetch the index anew") from error


def _has_pages(path: Path, end: int) -> bool:
    """Whether a dump has pages before byte ``end``, where its first block should begin."""
    try:
        return any(b"<page>" in data for data in _unpacked(StreamBlock(path, 0, end, 0, last=False)))
    except (OSError, EOFError) as error:
        raise EncoreError(
            f"{path}, before byte {end}: cannot be read ({error}); replace the dump or its index"
        ) from error


def _unpacked(block: StreamBlock) -> Iterator[bytes]:
    """What the streams of a block hold; the last block has the dump's end as a stream of its own."""
    with block.path.open("rb") as file:
        file.seek(block.begin)
        left, data = block.end - block.begin, b""
        while data or left:
            stream = bz2.BZ2Decompressor()
            while not stream.eof:
                if stream.needs_input and not data:
                    data = file.read(min(_READ, left))
                    left -= len(data)
                    if not data:
                        raise EOFError("its end is missing")
                unpacked, data = stream.decompress(data, _READ), b""
                yield unpacked
            data = stream.unused_data

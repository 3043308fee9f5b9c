"""Pages of a MediaWiki export, one after another: the XML is parsed as it comes and nothing of it is kept.

A ``-multistream`` dump has blocks of a hundred pages, each compressed by itself, so processes can share the work. Its
index, ``<begin of the block>:<page id>:<title>`` a line, is stored next to it under Wikimedia's name.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from encore.errors import EncoreError

LARGEST = 2**22  # characters of a page; MediaWiki itself refuses more than 2 MiB
_READ = 2**20  # bytes at once
_ROOT, _PAGE, _OF_PAGE, _OF_REVISION = 1, 2, 3, 4  # depths of elements
_WANTED = {(_OF_PAGE, "title"), (_OF_PAGE, "ns"), (_OF_PAGE, "id"), (_OF_REVISION, "model"), (_OF_REVISION, "text")}


class Page(NamedTuple):
    """A page as the export has it; ``text`` is wiki markup, None if there was more than ``LARGEST`` of it."""

    title: str
    namespace: int
    id: str
    redirect: str | None
    model: str
    text: str | None


class PageParser:
    """Takes an export in pieces and gives the pages that they complete."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.buffer_size = _READ
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._depth = 0
        self._fields: dict[str, Any] = {}
        self._reading: list[str] | None = None  # what the wanted element holds so far
        self._length = 0
        self._done: list[Page] = []

    @property
    def line(self) -> int:
        """The line of the XML that the parser has reached."""
        return self._parser.CurrentLineNumber

    def feed(self, data: bytes, last: bool = False) -> list[Page]:
        """The pages that end within ``data``; ``last`` says that nothing follows.

        Raises:
            EncoreError: naming the line: no XML, not UTF-8, cut short, no export, or a page without title or id.
        """
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise EncoreError(f"line {error.lineno}: no XML in UTF-8 ({reason}); replace the file") from error
        done, self._done = self._done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == _ROOT and name != "mediawiki":
            raise EncoreError(f"line {self.line}: <{name}> is not a MediaWiki export; name a pages-articles dump")
        if self._depth == _PAGE:
            self._fields = {}
        elif self._depth == _OF_PAGE and name == "redirect":
            self._fields["redirect"] = attributes.get("title")
        elif (self._depth, name) in _WANTED:
            self._reading, self._length = [], 0

    def _characters(self, text: str) -> None:
        if self._reading is not None:
            self._length += len(text)
            if self._length <= LARGEST:
                self._reading.append(text)

    def _end(self, name: str) -> None:
        if self._reading is not None and (self._depth, name) in _WANTED:
            self._fields[name] = "".join(self._reading) if self._length <= LARGEST else None
            self._reading = None
        elif self._depth == _PAGE and name == "page":
            self._done.append(self._page())
        self._depth -= 1

    def _page(self) -> Page:
        title, number, space = (self._fields.get(name) or "" for name in ("title", "id", "ns"))
        if not (title.strip() and number.isdigit() and space.lstrip("-").isdigit()):
            raise EncoreError(
                f"line {self.line}: a page ends here that has no title, id or ns; make the export again with all three"
            )
        fields = self._fields
        return Page(
            title, int(space), number, fields.get("redirect"), fields.get("model") or "wikitext", fields.get("text", "")
        )


def dump_pages(path: Path) -> Iterator[Page]:
    """The pages of an ``.xml`` or ``.xml.bz2`` in file order.

    Raises:
        EncoreError: with file and line: the archive is damaged or cut short, or what ``PageParser.feed`` refuses.
    """
    parser = PageParser()
    try:
        for data in _pieces(path):
            yield from parser.feed(data)
        yield from parser.feed(b"", last=True)
    except EncoreError as error:
        raise EncoreError(f"{path}, {error}") from error
    except (OSError, EOFError) as error:
        raise EncoreError(f"{path}, after line {parser.line}: cannot be read ({error}); replace the file") from error


def batches(found: Iterable[Page], together: int = 100, characters: int = 2_000_000) -> Iterator[list[Page]]:
    """Pages in groups that are worth sending to another process, and no larger than memory should hold."""
    batch: list[Page] = []
    size = 0
    for page in found:
        batch.append(page)
        size += len(page.text or "")
        if len(batch) >= together or size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _pieces(path: Path) -> Iterator[bytes]:
    with bz2.open(path) if path.suffix == ".bz2" else path.open("rb") as file:
        while data := file.read(_READ):
            yield data


class StreamBlock(NamedTuple):
    """Bytes ``begin`` to ``end`` of a dump, which hold ``pages`` pages."""

    path: Path
    begin: int
    end: int
    pages: int
    last: bool


def index_of(path: Path) -> Path | None:
    """The index next to a dump, compressed or not, or None."""
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
                raise EncoreError(f"{place}: no block of {path} can begin at byte {offset}; fetch index and dump again")
            if count:
                yield StreamBlock(path, begin, offset, count, last=False)
            elif _has_pages(path, offset):
                raise EncoreError(f"{place}: pages come before the first block of {path}; fetch index and dump again")
            begin, count = offset, 0
        count += 1
    if not count:
        raise EncoreError(f"{index} is empty; fetch it again, or remove it to read the dump without it")
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
        # The last block has the end of the dump; what is missing there was cut off.
        parser.feed(b"" if block.last else b"</mediawiki>", last=True)
    except EncoreError as error:
        if len(found) <= block.pages:
            raise EncoreError(f"{place}, {error}") from error
    except (OSError, EOFError) as error:
        raise EncoreError(f"{place}: cannot be read ({error}); replace the dump or its index") from error
    if len(found) != block.pages:
        more = "more" if len(found) > block.pages else f"{len(found)}"
        raise EncoreError(f"{place}: {more} pages where the index has {block.pages}; fetch index and dump again")
    return found


def _offsets(index: Path) -> Iterator[tuple[str, int]]:
    number = 0
    try:
        with bz2.open(index) if index.suffix == ".bz2" else index.open("rb") as file:
            for number, line in enumerate(file, 1):
                offset = line.partition(b":")[0]
                if not offset.isdigit():
                    raise EncoreError(f"{index}, line {number}: begins with no byte number; fetch the index again")
                yield f"{index}, line {number}", int(offset)
    except (OSError, EOFError) as error:
        raise EncoreError(f"{index}, after line {number}: cannot be read ({error}); fetch the index again") from error


def _has_pages(path: Path, end: int) -> bool:
    """True if a dump has pages before byte ``end``, where its first block should begin."""
    try:
        return any(b"<page>" in data for data in _unpacked(StreamBlock(path, 0, end, 0, last=False)))
    except (OSError, EOFError) as error:
        raise EncoreError(
            f"{path}, before byte {end}: cannot be read ({error}); replace the dump or its index"
        ) from error


def _unpacked(block: StreamBlock) -> Iterator[bytes]:
    """The uncompressed streams of a block; the last block has the dump's end as a separate stream."""
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

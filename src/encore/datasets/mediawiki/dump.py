"""Pages of a MediaWiki export, one after another: the XML is parsed as it comes and nothing of it is kept.

A ``-multistream`` dump has blocks of a hundred pages, each compressed by itself, so processes can share the work. Where
each begins is seen from its first bytes.
"""

import bz2
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from encore.errors import EncoreError

LARGEST = 2**22  # characters of a page; MediaWiki itself refuses more than 2 MiB
_READ = 2**20  # bytes at once
_TOGETHER = 100  # pages that are worth sending to another process
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")  # how a compressed stream begins, with its first block
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
        """The pages that end within ``data``; ``last`` says that nothing follows."""
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
        if not (title.strip() and number.isdecimal() and space.removeprefix("-").isdecimal()):
            raise EncoreError(
                f"line {self.line}: a page ends here that has no title, id or ns; make the export again with all three"
            )
        fields = self._fields
        return Page(
            title, int(space), number, fields.get("redirect"), fields.get("model") or "wikitext", fields.get("text", "")
        )


def parts(path: Path) -> Iterator["StreamBlock | list[Page]"]:
    """What processes share, in file order: the streams of a multistream dump, or batches of the pages of any other."""
    begin, size = 0, path.stat().st_size
    if "-multistream" in path.name and path.suffix == ".bz2" and size:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            for found in _STREAM.finditer(data, 1):
                yield StreamBlock(path, begin, found.start(), last=False)
                begin = found.start()
    if begin:
        yield StreamBlock(path, begin, size, last=True)
    else:
        with bz2.open(path) if path.suffix == ".bz2" else path.open("rb") as export:
            pages = _parsed(iter(partial(export.read, _READ), b""), str(path))
            yield from iter(lambda: list(islice(pages, _TOGETHER)), [])


class StreamBlock(NamedTuple):
    """Bytes ``begin`` to ``end`` of a dump: one compressed stream; the first and the last have the ends of its XML."""

    path: Path
    begin: int
    end: int
    last: bool


def read_pages(block: StreamBlock) -> list[Page]:
    """The pages of a block."""
    opened, closed = b"<mediawiki>" if block.begin else b"", b"" if block.last else b"</mediawiki>"
    place = f"{block.path}, block at byte {block.begin}"
    return list(_parsed(chain([opened], _unpacked(block), [closed]), place))


def _parsed(pieces: Iterable[bytes], place: str) -> Iterator[Page]:
    parser = PageParser()
    try:
        for data in pieces:
            yield from parser.feed(data)
        yield from parser.feed(b"", last=True)
    except EncoreError as error:
        raise EncoreError(f"{place}, {error}") from error
    except (OSError, EOFError) as error:
        raise EncoreError(f"{place}, after line {parser.line}: cannot be read ({error}); replace the file") from error


def _unpacked(block: StreamBlock) -> Iterator[bytes]:
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

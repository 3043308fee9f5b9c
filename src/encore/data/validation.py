"""Documents and queries on their way into a collection: a bad one is named with its place, or left out."""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from encore.errors import EncoreError, quoted
from encore.storage.document_ids import Ids, twice
from encore.storage.files import read_jsonl, write_jsonl
from encore.storage.progress import Progress

Row = dict[str, Any]
_SAYS = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]")  # anything but white space and control characters
LONGEST_ID = 32_766  # bytes, of a term in Lucene's index
TOGETHER = 10_000  # rows between two looks at the clock
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Located:
    """Rows of a file with the numbers of their lines, which remember where each row was that they gave."""

    def __init__(self, path: Path | str, rows: Iterable[tuple[int, Row]], unit: str = "line") -> None:
        self.path = path
        self._rows, self._unit = rows, unit
        self._jumps = [(0, 0)]  # a row and its line, wherever lines without a row come between
        self.given = 0  # rows so far
        self._line = 0

    def place_of(self, row: int) -> str:
        """The place of a row that was given, counted from 1."""
        jump, line = self._jumps[bisect_right(self._jumps, row, key=lambda each: each[0]) - 1]
        return f"{self.path}, {self._unit} {line + row - jump}"

    def __iter__(self) -> Iterator[Row]:
        for line, row in self._rows:
            self.given += 1
            if line != self._line + 1:
                self._jumps.append((self.given, line))
            self._line = line
            yield row


class LocatedFiles(Located):
    """Rows of several files, one after another."""

    def __init__(self, files: Sequence[Located]) -> None:
        super().__init__(files[0].path, ())
        self._files = files

    def place_of(self, row: int) -> str:
        """The place of a row that was given, counted from 1 over all files."""
        for file in self._files:
            if row <= file.given:
                break
            row -= file.given
        return file.place_of(row)

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self._files)


def place_of(rows: Iterable[Row], number: int, what: str) -> str:
    """The place of row ``number``: in its file, if it has one."""
    return rows.place_of(number) if isinstance(rows, Located) else f"{what}, row {number}"


def write_rows(path: Path, rows: Iterable[Row], what: str) -> Ids:
    """Write documents or queries and return their ids; ``what`` they are, for messages about rows without a file."""
    ids = Ids()
    write_jsonl(path, _checked(rows, ids, what))
    suspects = ids.close()
    found = twice((row["_id"] for row in read_jsonl(path)), suspects) if suspects else None
    if found:
        path.unlink()
        place = place_of(rows, found[0], what)
        raise EncoreError(f"{place}: id {quoted(found[1])} occurs twice; remove one of the rows")
    return ids


def _checked(rows: Iterable[Row], ids: Ids, what: str) -> Iterator[Row]:
    progress = Progress(what, "rows")
    for number, row in enumerate(rows, 1):
        if number % TOGETHER == 0:
            progress.at(number)
        if reason := _fault(row, what):
            raise EncoreError(f"{place_of(rows, number, what)}: {reason}")
        ids.enter(row["_id"])
        yield row


def says_something(text: str) -> bool:
    """True if a text holds more than white space and control characters."""
    return _SAYS.search(text) is not None


def without_empty(path: Path, rows: Iterable[tuple[int, Row]], empty: set[str]) -> Iterator[tuple[int, Row]]:
    """The rows that say something; ids of the others go to ``empty``."""
    for number, row in rows:
        name = row["_id"]
        if any(says_something(value) for key, value in row.items() if key != "_id"):
            yield number, row
        elif name in empty:
            raise EncoreError(f"{path}, line {number}: id {quoted(name)} occurs twice; remove one of the rows")
        else:
            empty.add(name)


def asked(rows: Iterable[tuple[int, Row]], left_out: Counter[str]) -> Iterator[tuple[int, Row]]:
    """The queries that say something; others are counted."""
    for number, row in rows:
        if says_something(row["text"]):
            yield number, row
        else:
            left_out["empty_queries"] += 1


def once(rows: Iterable[tuple[int, Row]], left_out: Counter[str], seen: set[bytes]) -> Iterator[tuple[int, Row]]:
    """The rows, of which some are there again to the letter, or in ``seen``, which is filled; these are counted.

    Of each row 8 bytes of a digest are held, in a set: some 100 bytes.
    """
    for number, row in rows:
        digest = blake2b(json.dumps(row, sort_keys=True).encode(), digest_size=8).digest()
        if digest in seen:
            left_out["repeated_rows"] += 1
        else:
            seen.add(digest)
            yield number, row


def _fault(row: Row, what: str) -> str | None:
    name, texts = row["_id"], [value for key, value in row.items() if key != "_id" and isinstance(value, str)]
    searched = texts if what == "corpus" else [row["text"]]  # a query's title is not
    if name.split() != [name]:
        return f"id {quoted(name)} is empty or holds white space, which a TREC run cannot contain; rename it"
    if _CONTROL.search(name):
        return f"id {quoted(name)} holds a control character, which a TREC run cannot contain; rename it"
    if what == "queries" and name.startswith("#"):
        return f"id {quoted(name)} starts like a comment of a TREC run; rename it"
    if not any(map(says_something, searched)):
        where = "" if what == "corpus" or not any(map(says_something, texts)) else ", and its title is not searched"
        return f"{quoted(name)} has no text{where}; give it one or remove the row, or set `empty_documents: drop`"
    try:
        for text in (name, *texts):
            text.encode()
    except UnicodeEncodeError:
        return f"{quoted(name)} holds half of a surrogate pair, which UTF-8 cannot represent; fix its text"
    if len(name) > LONGEST_ID // 4 and len(name.encode()) > LONGEST_ID:
        return f"id {quoted(name)} has more than {LONGEST_ID:,} bytes, which no Lucene index can hold; shorten it"
    return None

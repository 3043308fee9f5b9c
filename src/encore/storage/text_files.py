"""Users' files, line by line: in bounded memory, and every fault an EncoreError with file and line.

What is read past: a UTF-8 byte order mark, ``CR LF`` at a line's end, and blank lines at the end of records. What is
refused: other encodings, a line that is longer than ``LONGEST``, damaged archives; of records also a NUL and a carriage
return alone; of JSON also a key that occurs twice in an object, half of a surrogate pair, NaN and infinities, nesting
that never ends.
"""

import codecs
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encore.errors import EncoreError, quoted

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
PACKED = ("", ".gz", ".xz", ".zst")  # ends of names that are read
DAMAGED = OSError, EOFError, zlib.error, lzma.LZMAError  # what reading a damaged archive raises
LONGEST = 32 * 2**20  # bytes of a line; the longest of MS MARCO's documents has two million


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text, plain or packed, without their ends. One at a time is held."""
    number = 0
    try:
        with opened(path) as file:
            while line := file.readline(LONGEST + 1):
                number += 1
                yield number, _text(line, f"{path}, line {number}", first=number == 1)
    except FileNotFoundError as error:
        raise EncoreError(f"{path} is missing; name a file that is there") from error
    except DAMAGED as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise EncoreError(f"{path}, after line {number}: cannot be read ({reason}); replace the file") from error


def numbered_records(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that are records, without characters that an editor would not show, or blank lines at the end."""
    blank = None  # the first of the blank lines since the last record
    for number, line in numbered_lines(path):
        if not line.strip(" \t"):
            blank = blank or number
            continue
        yield from ((empty, "") for empty in range(blank or number, number))
        blank = None
        if "\r" in line:
            raise EncoreError(
                f"{path}, line {number}: a carriage return within the line; end lines as Unix does, e.g. with "
                "tr '\\r' '\\n'"
            )
        if "\0" in line:
            raise EncoreError(
                f"{path}, line {number}: a NUL byte; if the file is UTF-16 convert it, e.g. with iconv, else replace it"
            )
        yield number, line


def numbered_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered rows of a file of JSON lines, each an object; other rows are refused."""
    for number, line in numbered_records(path):
        try:
            row = json.loads(line, object_pairs_hook=_once, parse_constant=_no_number)
            if _HALF.search(line):  # only an escape can contain half of a pair
                json.dumps(row, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            reason = f"{error.msg} at character {error.pos + 1}"
        except UnicodeEncodeError:
            reason = "half of a surrogate pair, which UTF-8 cannot represent"
        except RecursionError:
            reason = "nested too deeply"
        except ValueError as error:  # a key twice, a number of thousands of digits
            reason = str(error)
        else:
            if not isinstance(row, dict):
                raise EncoreError(f"{path}, line {number}: needs an object, {{...}}; fix or remove the line")
            yield number, row
            continue
        raise EncoreError(f"{path}, line {number}: not JSON that can be read ({reason}); fix or remove the line")


def _text(line: bytes, place: str, first: bool) -> str:
    """A line without its end, and without the byte order mark of the first one."""
    if len(line) > LONGEST:
        raise EncoreError(f"{place}: longer than {LONGEST // 2**20} MiB; write one record a line, or shorten it")
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return line.removeprefix(codecs.BOM_UTF8 if first else b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise EncoreError(f"{place}: not UTF-8 ({error.reason}); convert it, e.g. with iconv, or unpack it") from error


def _no_number(constant: str) -> float:
    raise ValueError(f"{constant} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {quoted(next(key for key in keys if keys.count(key) > 1))} occurs twice")
    return row


def opened(path: Path) -> io.BufferedReader:
    """A user's file, plain or packed by gzip, xz or zstd."""
    return unpacked(path.open("rb"), path.suffix)


def unpacked(file: io.BufferedReader, packing: str) -> io.BufferedReader:
    """The content of a file, unpacked if ``packing``, the end of its name, is ``.gz``, ``.xz`` or ``.zst``."""
    if packing == ".zst":
        import pyarrow as pa  # planning imports this module and does without

        return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(file), "zstd"))
    if packing == ".xz":
        read: Any = lzma.open(file)  # noqa: SIM115  # for the caller to close
        read._buffer.raw._trailing_error = ()  # Python takes a damaged stream behind a whole one for the end
        return io.BufferedReader(read)
    return io.BufferedReader(gzip.open(file)) if packing == ".gz" else file

"""Lucene's segment information without what differs from run to run, so that equal documents give equal files.

A ``.si`` file (Lucene90SegmentInfoFormat) holds the time, the machine, and two lists in an order that Java draws anew
in each process. Everything else that Lucene writes is a function of the documents and the seed.
"""

import io
import struct
import zlib
from pathlib import Path

from encore.errors import EncoreError

_START = 76  # index header (45 bytes), two versions (25), number of documents (4), two flags (2)
_FOOTER = 16  # magic, algorithm, and the CRC-32 of all before it as 8 big-endian bytes (CodecUtil.writeFooter)
_KEPT = {"lucene.version", "source"}


def make_reproducible(index: Path) -> None:
    """Rewrite the information of the one segment in an index folder, and drop the lock file.

    Raises:
        EncoreError: the file is not laid out as expected.
    """
    (index / "write.lock").unlink(missing_ok=True)
    for path in index.glob("*.si"):
        try:
            path.write_bytes(canonical(path.read_bytes()))
        except (IndexError, ValueError) as error:
            raise EncoreError(f"{path} is not of Lucene 9's layout; install the locked version of pyserini") from error


def canonical(info: bytes) -> bytes:
    """Keep Lucene's version and the segment's source of the diagnostics; sort them, the files and the attributes."""
    body = io.BytesIO(info[_START:-_FOOTER])
    diagnostics, files, attributes = _read(body, 2), _read(body, 1), _read(body, 2)
    kept = [pair for pair in diagnostics if pair[0].decode() in _KEPT]
    text = info[:_START] + _written(kept) + _written(files) + _written(attributes) + body.read()
    text += info[-_FOOTER:-8]
    return text + struct.pack(">Q", zlib.crc32(text))


def _read(body: io.BytesIO, width: int) -> list[tuple[bytes, ...]]:
    """A counted list of strings (``width`` 1) or of names with values (2)."""
    return [tuple(_string(body) for _ in range(width)) for _ in range(_number(body))]


def _string(body: io.BytesIO) -> bytes:
    length = _number(body)
    text = body.read(length)
    if len(text) < length:
        raise ValueError("cut short")
    return text


def _number(body: io.BytesIO) -> int:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    value, shift = 0, 0
    while (byte := body.read(1)[0]) & 0x80:
        value, shift = value | (byte & 0x7F) << shift, shift + 7
    return value | byte << shift


def _written(rows: list[tuple[bytes, ...]]) -> bytes:
    return _packed(len(rows)) + b"".join(_packed(len(text)) + text for row in sorted(rows) for text in row)


def _packed(value: int) -> bytes:
    low = bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
    return low + (_packed(value >> 7) if value > 0x7F else b"")

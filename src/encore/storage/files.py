"""Bytes on disk: canonical JSON, digests, deterministic gzip, and writing that is never half done."""

import errno
import gzip
import hashlib
import io
import json
import os
import platform
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, cast

from isal import igzip

from encore.errors import EncoreError

DIGEST_LENGTH = 8
CUT = 8192  # bytes that are packed at once
GZIP_LEVEL = 1  # of ISA-L: a sixteenth of the time of zlib's usual 6, for a fifth more bytes
REMEMBERED = 64 * 2**20  # bytes of a file; a larger one is not read at each start of Snakemake
MEMORY = Path("results/plan/digests.json")
_ROW = '{"_id":"'  # how our rows begin


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text, whatever their order was."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """The 8 hexadecimal digits that end a folder name: sha256 of the canonical JSON."""
    return full_digest(value)[:DIGEST_LENGTH]


def full_digest(value: Any) -> str:
    """All 64 digits, for where length does not matter."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def sha256(path: Path) -> str:
    """Digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def contents(paths: Mapping[str, Path], digest_of: Callable[[Path], str] = sha256) -> dict[str, str]:
    """Digests of the user's own files by name."""
    try:
        return {name: digest_of(path) for name, path in paths.items()}
    except OSError as error:
        raise EncoreError(f"{error.filename}: {error.strerror}; give a file that can be read") from error


def remembered_contents(paths: Mapping[str, Path]) -> dict[str, str]:
    """The same digests, cheaply, for whenever the workflow is parsed.

    A file above 64 MiB is read again only if its size or its time of change is another than when it was read last,
    which ``results/plan/digests.json`` remembers.
    """
    return contents(paths, _remembered)


def _remembered(path: Path) -> str:
    about = path.stat()
    if about.st_size <= REMEMBERED:
        return sha256(path)
    name, state = str(path.resolve()), [about.st_size, about.st_mtime_ns]
    known = readable_object(MEMORY)
    match known.get(name):
        case [size, changed, str(found)] if [size, changed] == state:
            return found
    found = sha256(path)
    with suppress(EncoreError):  # where it cannot be remembered it is read each time
        write_json(MEMORY, {**known, name: [*state, found]})
    return found


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name next to ``path`` and rename it at the end; after an error nothing is left."""
    temporary = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.tmp")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.unlink(missing_ok=True)  # it could be a link
            yield temporary
            temporary.replace(path)
    finally:
        with suppress(NotADirectoryError):
            temporary.unlink(missing_ok=True)


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """Give a folder to write to, which gets its name at the end; after an error nothing is left."""
    if folder.exists():
        raise EncoreError(f"{folder} is there already; take it as it is, or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=folder.parent) as place:
        made = Path(place) / folder.name
        made.mkdir()
        yield made
        made.rename(folder)


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """As ``appearing``, but a folder that is there is kept where it has the same files, and refused where not."""
    if not folder.exists():
        with appearing(folder) as made:
            yield made
        return
    with TemporaryDirectory(prefix=".", dir=folder.parent) as place:
        yield Path(place)
        found, expected = ({path.relative_to(of): path for path in of.rglob("*")} for of in (folder, Path(place)))
        if found.keys() != expected.keys() or any(
            path.is_file() and path.read_bytes() != expected[name].read_bytes() for name, path in found.items()
        ):
            raise EncoreError(f"{folder} is there already, with other content; remove it, or name another folder")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one line, as an EncoreError, that a file cannot be written."""
    try:
        yield
    except EncoreError:
        raise
    except Exception as error:
        full = os.strerror(errno.ENOSPC)  # safetensors and FAISS raise their own exceptions
        if not isinstance(error, OSError) and full not in str(error):
            raise
        reason = (error.strerror or error) if isinstance(error, OSError) else full
        raise EncoreError(
            f"cannot write {path}: {reason}; make room or make the folder writable, then repeat"
        ) from error


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file that appears whole or not at all."""
    write_bytes(path, text.encode())


def write_array(path: Path, array: Any) -> None:
    """A NumPy array as ``.npy``."""
    import numpy as np  # planning imports this module and needs no arrays

    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array)


@contextmanager
def appending(path: Path, kind: str, shape: tuple[int, ...] = ()) -> Iterator[Callable[[Any], None]]:
    """Write a ``.npy`` of unknown length: the function appends rows of a shape; the bytes are those of ``np.save``."""
    import numpy as np

    rows = 0

    def head(file: IO[bytes]) -> None:
        about = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False}
        np.lib.format.write_array_header_1_0(file, {**about, "shape": (rows, *shape)})  # it leaves room to grow

    with replacing(path) as temporary, temporary.open("wb") as file:
        head(file)

        def append(array: Any) -> None:
            nonlocal rows
            rows += len(array)
            file.write(np.ascontiguousarray(array, dtype=kind).reshape(-1, *shape).tobytes())

        yield append
        file.seek(0)
        head(file)


def write_changed(path: Path, text: str) -> None:
    """Write a text unless the file has it already; its modification time then stays."""
    if not path.is_file() or path.read_bytes() != text.encode():
        write_text(path, text)


def json_text(value: Any) -> str:
    """JSON with sorted keys, so that equal values give equal text; NaN and infinities are refused."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write ``json_text`` to a file."""
    write_text(path, json_text(value))


class _Packed(io.TextIOBase):
    """Packs a text, cut as by Python 3.11: later ones collect otherwise, and ISA-L's bytes depend on the cuts."""

    def __init__(self, packer: igzip.IGzipFile) -> None:
        self._packer, self._pending = packer, bytearray()

    def write(self, text: str) -> int:
        piece = text.encode()
        if len(self._pending) + len(piece) > CUT:
            self.flush()
        self._pending += piece
        if len(self._pending) >= CUT:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self._pending:
            self._packer._write_raw(bytes(self._pending))
            self._pending.clear()


@contextmanager
def open_text_writer(path: Path) -> Iterator[IO[str]]:
    """A text file that appears whole; ``.gz`` is compressed without time and name, so equal text gives equal bytes."""
    with replacing(path) as temporary:
        if path.suffix != ".gz":
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                yield file
            return
        with (
            temporary.open("wb") as raw,
            igzip.IGzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=GZIP_LEVEL) as packed,
        ):
            text = _Packed(packed)
            yield cast(IO[str], text)
            text.flush()
            for _ in range(2):  # as flushing and leaving a TextIOWrapper does
                packed.flush()


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a plain or gzipped UTF-8 text for reading."""
    if not path.is_file():
        raise EncoreError(f"{path} is missing; run the command that makes it again")
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def read_object(path: Path, fix: str) -> dict[str, Any]:
    """The JSON object that a file holds; an empty one without the file.

    Args:
        fix: what to do where it holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if not isinstance(content, dict):
            raise TypeError(f"it holds {type(content).__name__}")
        return content
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise EncoreError(f"{path} is not a JSON object ({error}); {fix}") from error


def readable_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds; an empty one where it is missing or damaged, which does no harm."""
    with suppress(EncoreError):
        return read_object(path, "")
    return {}


def write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write one JSON object a line; ``.gz`` is compressed, and equal rows give equal bytes."""
    with open_text_writer(path) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a JSON-lines file; a broken line is refused with its number."""
    return _rows(path, json.loads)


def chosen_rows(path: Path, wanted: Container[str]) -> Iterator[dict[str, Any]]:
    """The rows of a JSON-lines file of ours whose ``_id`` is wanted, in file order; others are not parsed."""

    def chosen(line: str) -> dict[str, Any] | None:
        name = line[len(_ROW) : line.find('"', len(_ROW))] if line.startswith(_ROW) else ""
        if name and "\\" not in name and name not in wanted:
            return None
        row: dict[str, Any] = json.loads(line)
        return row if row["_id"] in wanted else None

    return _rows(path, chosen)


def _rows(path: Path, parse: Callable[[str], dict[str, Any] | None]) -> Iterator[dict[str, Any]]:
    with open_text(path) as file:
        number = 1
        try:
            for line in file:
                if (row := parse(line)) is not None:
                    yield row
                number += 1
        except (ValueError, EOFError, OSError) as error:
            raise EncoreError(
                f"{path}, line {number}: not readable as JSON lines ({error}); replace the file"
            ) from error

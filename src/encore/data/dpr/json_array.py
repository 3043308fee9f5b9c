"""A JSON array that is larger than the memory, one element after another."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from encore.errors import EncoreError
from encore.storage.files import open_text

CHUNK = 2**20
LARGEST = 2**26  # characters of an element; more is read of no file, however damaged


def elements(path: Path, chunk: int = CHUNK) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of an array, each with the line where it begins. No more is held than two of them, or chunks.

    Raises:
        EncoreError: with the line, something is no UTF-8, no JSON or no object, or the file is cut short or goes on.
    """
    with open_text(path) as file:
        text = _Text(path, file, chunk)
        if text.sign() != "[":
            raise text.fault("a JSON array is expected, which begins with `[`")
        text.drop(1)
        while text.sign() not in ("]", ""):
            line, element = text.line, text.value()
            if not isinstance(element, dict):
                raise text.fault("an object is expected")
            yield line, element
            if text.sign() == ",":
                text.drop(1)
            elif text.sign() != "]":
                break
        if text.sign() != "]":
            raise text.fault("the array is damaged or cut short")
        text.drop(1)
        if text.sign():
            raise text.fault("something follows the array")


class _Text:
    """A file's text from where reading stands, as much of it as was needed; ``line`` is that of its beginning."""

    def __init__(self, path: Path, file: IO[str], chunk: int) -> None:
        self._path, self._file, self._chunk = path, file, chunk
        self._text = ""
        self.line = 1

    def sign(self) -> str:
        """The next sign that is no white space; nothing at the end."""
        while True:
            rest = self._text.lstrip()
            self.drop(len(self._text) - len(rest))
            if rest or not self._more():
                return self._text[:1]

    def value(self) -> Any:
        """The JSON value that begins here."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text)
            except ValueError as error:
                if len(self._text) > LARGEST or not self._more():
                    raise self.fault(f"damaged or cut short ({error})") from error
            else:
                self.drop(end)
                return value

    def drop(self, count: int) -> None:
        """Go on behind ``count`` signs."""
        self.line += self._text.count("\n", 0, count)
        self._text = self._text[count:]

    def fault(self, reason: str) -> EncoreError:
        """An error with the file and the line, to be raised."""
        return EncoreError(f"{self._path}, line {self.line}: {reason}; replace the file")

    def _more(self) -> bool:
        """Read on; each time as much again, so that a long element is not tried often."""
        try:
            read = self._file.read(max(self._chunk, len(self._text)))
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise self.fault(f"cannot be read ({error})") from error
        self._text += read
        return bool(read)


_DECODER = json.JSONDecoder()

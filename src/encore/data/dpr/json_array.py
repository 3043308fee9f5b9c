"""A JSON array that is larger than the memory, one element after another."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ijson

from encore.errors import EncoreError
from encore.storage.files import open_text


def elements(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of an array in UTF-8, one after another; a file that ends in ``.gz`` is unpacked.

    Raises:
        EncoreError: with the number of the element, from 1: something is no UTF-8, no JSON or no object, or the file
            is cut short or goes on.
    """
    number = 1
    with open_text(path) as file:
        try:
            if not file.buffer.peek(1024).lstrip().startswith(b"["):  # type: ignore[attr-defined]
                raise EncoreError(f"{path}: a JSON array is expected, which begins with `[`; replace the file")
            for element in ijson.items(file.buffer, "item", use_float=True):
                if not isinstance(element, dict):
                    raise EncoreError(f"{path}, element {number}: an object is expected; replace the file")
                yield element
                number += 1
        except (ijson.JSONError, OSError, EOFError, zlib.error) as error:
            reason = str(error).partition("\n")[0].partition("\\n")[0]  # then come the text and a mark below it
            raise EncoreError(f"{path}, element {number}: damaged or cut short ({reason}); replace the file") from error

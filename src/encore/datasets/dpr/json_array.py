"""A JSON array that is larger than the memory, one element after another."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ijson

from encore.errors import EncoreError
from encore.storage.files import open_text

DEEPEST = 100  # brackets within brackets: what ijson's own ``items`` keeps grows with the square of the depth


def elements(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of an array in UTF-8, one after another; a file that ends in ``.gz`` is unpacked.

    Raises:
        EncoreError: with the number of the element, from 1: something is no UTF-8, no JSON or no object, is nested too
            deeply, or the file is cut short or goes on.
    """
    number = 1
    with open_text(path) as file:
        try:
            if not file.buffer.peek(1024).lstrip().startswith(b"["):  # type: ignore[attr-defined]
                raise EncoreError(f"{path}: a JSON array is expected, which begins with `[`; replace the file")
            for element in _items(file.buffer):
                if not isinstance(element, dict):
                    raise EncoreError(f"{path}, element {number}: an object is expected; replace the file")
                yield element
                number += 1
        except (ijson.JSONError, OSError, EOFError, zlib.error) as error:
            reason = str(error).partition("\n")[0].partition("\\n")[0]  # then come the text and a mark below it
            raise EncoreError(f"{path}, element {number}: damaged or cut short ({reason}); replace the file") from error


def _items(file: Any) -> Iterator[Any]:
    """What the array of a binary file holds, one after another."""
    events = ijson.basic_parse(file, use_float=True)
    next(events)  # where the array begins
    depth, builder = 0, ijson.ObjectBuilder()
    for event, value in events:
        depth += (event in ("start_map", "start_array")) - (event in ("end_map", "end_array"))
        if depth > DEEPEST:
            raise ijson.JSONError(f"nested more than {DEEPEST} deep")
        if depth >= 0:  # below is where the array ends
            builder.event(event, value)
        if depth == 0:
            yield builder.value
            builder = ijson.ObjectBuilder()

"""What a cell of a table's slice is made of: itself, and the cells that a mean or a gain is made of."""

from collections.abc import Iterator, Mapping
from typing import Any


def upstream_cells(content: Mapping[str, Any], setting: str, row: str, column: str) -> Iterator[dict[str, Any]]:
    """The cell, then those that its value is made of, and what these are made of."""
    rows = {(each["setting"], each["id"]): each["cells"] for each in content["rows"]}
    return (rows[setting, row][column] for row, column in upstream_places(content, setting, row, column))


def upstream_places(content: Mapping[str, Any], setting: str, row: str, column: str) -> Iterator[tuple[str, str]]:
    """The rows and columns of these cells."""
    columns = {each["id"]: each for each in content["columns"]}
    rows = {each["id"] for each in content["rows"] if each["setting"] == setting}
    waiting = [(row, column)]
    while waiting:
        row, column = waiting.pop(0)
        if row not in rows:  # a gain over a row that the run leaves out
            continue
        yield row, column
        waiting += [(row, part) for part in columns[column]["mean_of"]]
        gain = columns[column].get("gain")
        if gain and gain["over"] != row:
            waiting += [(each, gain["of"]) for each in (row, gain["over"])]

"""A table, a figure or the claims, made again in a temporary folder and compared with what lies in results, as data.

The numbers of a CSV are compared cell by cell, so that what was altered is named. Pictures are compared where the same
version of matplotlib drew them.
"""

import csv
import json
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.products.catalogue import CATALOGUE
from encore.products.claims.entries import CLAIMS, PRINTED
from encore.products.kinds import FILES
from encore.storage.files import canonical

NAMED = 3  # what differs is named up to so many times
PICTURES = (".png", ".svg")
KEYS = ("id", "label", "setting", "column", "panel")  # columns of a CSV that tell whose a line is


def differences(rule: str, place: Path, content: dict[str, Any], catalogue: Catalogue) -> list[str]:
    """What of a product does not come out again, in words.

    Args:
        rule: the rule that makes it.
        place: its manifest.
        content: its slice of the plan.
    """
    stem, content = place.name.removesuffix(".manifest.json"), json.loads(canonical(content))  # in its file's order
    with TemporaryDirectory() as folder:
        try:
            _maker(rule, content, place.parent, catalogue)(Path(folder))
        except EncoreError as error:
            return [f"{place.with_name(stem)} cannot be made again: {error}"]
        files = [f"{stem}.{ending}" for ending in FILES[rule] if same_pictures(place) or f".{ending}" not in PICTURES]
        return [reason for file in files for reason in _of_file(place.with_name(file), Path(folder) / file)]


def same_pictures(place: Path) -> bool:
    """Whether the matplotlib of today drew a product's pictures, or it has none."""
    drawn = json.loads(place.read_text()).get("results") or {}
    return "matplotlib" not in drawn or bool(drawn["matplotlib"] == version("matplotlib"))


def _maker(rule: str, content: dict[str, Any], folder: Path, catalogue: Catalogue) -> Callable[[Path], object]:
    """What writes the files of a product into a given folder; only what it needs is imported.

    Args:
        folder: where the product lies, and what else it reads.
    """
    if rule in ("table", "figure"):
        from encore.products.tables.layout import Layout

        layout = Layout.model_validate(content)
        if rule == "table":
            from encore.products.tables import formats, reproduction

            return lambda to: formats.write_formats(to, layout, folder / f"{layout.name}.{reproduction.FILE}")
        from encore.products.figures.forest import draw_forest
        from encore.products.tables.compute import compute_table

        return lambda to: draw_forest(to, compute_table(layout))
    if rule == "draw":
        from encore.products.figures.kinds import KINDS

        kind = KINDS[content["kind"]]
        return lambda to: kind.write(to, kind.slice.model_validate(content))
    if rule == "curves":
        from encore.products.figures.learning import draw_learning
        from encore.products.loss_curves import StepsSlice

        return lambda to: draw_learning(to, StepsSlice.model_validate(content))
    if rule == CLAIMS:
        from encore.products.claims import run_claims

        claims = run_claims.ClaimsSlice.model_validate(content)
        return lambda to: run_claims.write_run_claims(to / f"{CLAIMS}.csv", claims)
    from encore.products.claims import printed_claims

    return lambda to: printed_claims.write_printed(to / f"{PRINTED}.csv", CATALOGUE / "papers", catalogue)


def _of_file(made: Path, again: Path) -> Iterator[str]:
    """How a file differs from the one that was made again."""
    if made.read_bytes() == again.read_bytes() or (made.suffix == ".png" and _same_pixels(made, again)):
        return
    reasons = list(_of_lines(made, again)) if made.suffix == ".csv" else []
    yield from reasons[:NAMED] or [f"{made} is not what comes out again"]
    if len(reasons) > NAMED:
        yield f"{made}: {len(reasons) - NAMED} more lines differ"


def _of_lines(made: Path, again: Path) -> Iterator[str]:
    """The lines of a CSV that differ, each by the first column that does."""
    (header, *lines), (expected_header, *expected) = ([*csv.reader(_text(path))] or [[]] for path in (made, again))
    if header != expected_header or len(lines) != len(expected):
        yield f"{made} has other lines or columns than come out again"
        return
    for number, (line, right) in enumerate(zip(lines, expected, strict=True), 2):
        for column, found, wanted in zip_longest(header, line, right, fillvalue=""):
            if found != wanted:
                known = dict(zip(header, right, strict=False))
                name = ", ".join(known[key] for key in KEYS if known.get(key)) or f"line {number}"
                yield f"{made}: {name}: {column} is {found!r}, comes out again as {wanted!r}"
                break


def _text(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)


def _same_pixels(made: Path, again: Path) -> bool:
    """Whether two pictures differ in nothing but how they are compressed."""
    import matplotlib.image
    import numpy as np

    try:
        return bool(np.array_equal(matplotlib.image.imread(made), matplotlib.image.imread(again)))
    except (OSError, ValueError, SyntaxError):  # what a damaged picture raises
        return False

"""The values of a figure's points, as the claims' slice of the plan names them."""

import json
from collections.abc import Sequence
from pathlib import Path

from encore.errors import EncoreError
from encore.products.claims.estimates import WeightedValues
from encore.products.slices import SlicePart as Entry
from encore.products.tables.entries import TESTED
from encore.products.tables.layout import CellSlice
from encore.products.tables.sources import SOURCES, CellValues

INSPECTION = "inspection.json"
Place = tuple[str, str, str]  # panel, line, place


class FigurePoint(Entry):
    """A point, and what it is the mean of: a measure of a split, or without one a share that an inspection found."""

    panel: str
    line: str
    place: str
    parts: list[CellSlice]


def point_folders(points: Sequence[FigurePoint]) -> dict[Path, Sequence[str] | None]:
    """What points read: all of a folder of scores, and of an inspection's what it found."""
    parts = [part for point in points for part in point.parts]
    return {Path(read.folder): None if part.split else (INSPECTION,) for part in parts for read in part.reads}


def point_values(points: Sequence[FigurePoint]) -> dict[Place, list[WeightedValues]]:
    """What each point is made of: samples of training queries count alike.

    Raises:
        EncoreError: what it reads is missing or damaged.
    """
    return {
        (point.panel, point.line, point.place): [
            WeightedValues(1 / len(point.parts), values)
            for request in point.parts
            if (values := _values(request, point.place))
        ]
        for point in points
    }


def _values(request: CellSlice, place: str) -> CellValues | None:
    if request.split:
        return SOURCES[TESTED].values(request, {})
    return CellValues(
        [read.seed for read in request.reads], [_share(Path(read.folder), request, place) for read in request.reads]
    )


def _share(folder: Path, request: CellSlice, k: str) -> float:
    """A share that an inspection found, a mean over texts; without values per text only seeds vary."""
    path = folder / INSPECTION
    try:
        return next(float(one[request.value]) for one in json.loads(path.read_text())["values"] if str(one["k"]) == k)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise EncoreError(
            f"{path} has no {request.value} of the first {k} ({error!r}); run snakemake for it"
        ) from error

"""Scores on disk: one parquet row per split, measure and judged query. Tables and tests read only these."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from encore.errors import EncoreError
from encore.storage.files import replacing

FILE = "scores.parquet"
RELEVANT, TEXT = 1, 2
Floats = NDArray[np.float64]

_SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("cluster", pa.string()),
        ("split", pa.string()),
        ("measure", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("answered", pa.bool_()),
        ("shared", pa.int8()),
    ]
)


@dataclass(frozen=True)
class Scored:
    """One measure on one split: a value for each judged query, all arrays [queries].

    ``low`` and ``high`` are the ends over all orders of tied scores; ``answered`` is true if the run has the query;
    ``clusters`` are the units whose queries may err together. ``shared`` is what a query shares with training: the sum
    of ``RELEVANT`` (a relevant document that answers a training query) and ``TEXT`` (the text of one), 0 for nothing.
    """

    queries: list[str]
    clusters: list[str]
    values: Floats
    low: Floats
    high: Floats
    answered: NDArray[np.bool_]
    shared: NDArray[np.int8]

    def only(self, chosen: NDArray[np.bool_]) -> "Scored":
        """The chosen ones of its queries."""
        places = np.flatnonzero(chosen)
        return Scored(
            queries=[self.queries[place] for place in places],
            clusters=[self.clusters[place] for place in places],
            **{name: getattr(self, name)[places] for name in ("values", "low", "high", "answered", "shared")},
        )


Scores = dict[tuple[str, str], Scored]  # by split and measure's short name


def write_scores(folder: Path, scores: Scores) -> None:
    """Write ``scores.parquet``, a row for each split, measure and query; equal scores give equal bytes."""
    tables = [_table(split, measure, scored) for (split, measure), scored in sorted(scores.items())]
    with replacing(folder / FILE) as temporary:
        pq.write_table(pa.concat_tables(tables), temporary, compression="zstd")


def read_scores(folder: Path) -> Scores:
    """Read a folder's scores."""
    path = folder / FILE
    try:
        table = pq.read_table(path, schema=_SCHEMA)
    except FileNotFoundError as error:
        raise EncoreError(f"{path} is missing; run the command that makes it again") from error
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise EncoreError(f"{path} is not readable as scores ({reason}); delete it and evaluate again") from error
    split, measure = (np.array(table[name].to_pylist(), dtype=object) for name in ("split", "measure"))
    pairs = dict.fromkeys(zip(split.tolist(), measure.tolist(), strict=True))
    return {pair: _scored(table, (split == pair[0]) & (measure == pair[1])) for pair in pairs}


def _table(split: str, measure: str, scored: Scored) -> pa.Table:
    count = len(scored.queries)
    names = [scored.queries, scored.clusters, [split] * count, [measure] * count]
    columns = [*names, scored.values, scored.low, scored.high, scored.answered, scored.shared]
    return pa.table(dict(zip(_SCHEMA.names, columns, strict=True)), schema=_SCHEMA)


def _scored(table: pa.Table, mask: NDArray[np.bool_]) -> Scored:
    chosen = table.filter(pa.array(mask))
    arrays = (chosen[name].to_numpy() for name in ("value", "low", "high", "answered", "shared"))
    return Scored(chosen["query"].to_pylist(), chosen["cluster"].to_pylist(), *arrays)


def paired_seeds(ours: Sequence[int | None], theirs: Sequence[int | None]) -> list[tuple[int, int]]:
    """The places of each seed that two systems share; a system without seeds is paired with each of the other's."""
    if theirs == [None]:
        return [(place, 0) for place in range(len(ours))]
    if ours == [None]:
        return [(0, place) for place in range(len(theirs))]
    return [(ours.index(seed), theirs.index(seed)) for seed in ours if seed in theirs]


def exact_mean(values: Sequence[float] | Floats) -> float:
    """The mean, exactly rounded, so that the order of values cannot change it."""
    return math.fsum(values) / len(values)

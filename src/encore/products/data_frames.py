"""What a run has made, as pandas data frames.

``import encore`` offers these functions (``encore.read_table``); they import pandas only when they are used.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from encore.data import runs, trec_runs
from encore.evaluation import scores
from encore.products.tables.table import read_table as read_cells
from encore.products.tables.tidy import tidy_frame


def read_table(path: str | Path) -> pd.DataFrame:
    """The cells of a finished table, one a row, with intervals, p-values and verdicts.

    Args:
        path: any file of the table, such as ``results/tables/table1.csv``; its JSON file next to it is read.
    """
    return tidy_frame(read_cells(Path(path).with_suffix(".json")))


def read_run(path: str | Path) -> pd.DataFrame:
    """The results of a run, best first within each query: columns query, document, rank (from 1) and score (float32).

    Args:
        path: a folder below ``results/runs``, or a TREC run of any program, gzipped or not.
    """
    place = Path(path)
    run = runs.read_run(place) if place.is_dir() else trec_runs.read_trec(place)
    query, rank = np.nonzero(run.rows >= 0)
    documents = run.documents.texts().take(run.rows[query, rank]).to_pandas()
    return pd.DataFrame(
        {
            "query": np.array(run.queries, dtype=object)[query],
            "document": documents,
            "rank": rank + 1,
            "score": run.scores[query, rank],
        }
    )


def read_scores(path: str | Path) -> pd.DataFrame:
    """Every measure of every judged query: columns split, measure, query, value, and what tests of significance need.

    ``low`` and ``high`` are the values under the worst and best order of tied scores; ``cluster`` groups queries that
    are not independent; ``shared`` is above 0 for queries that training has met.

    Args:
        path: a folder below ``results/scores``.
    """
    folder = Path(path)
    scores.read_scores(folder)  # refuses damage with a message
    return pq.read_table(folder / scores.FILE).to_pandas()

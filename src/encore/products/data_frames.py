"""What a run has made, and what anybody's runs are worth, as pandas data frames.

``import encore`` offers these functions (``encore.read_table``); they import pandas only when they are used.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from encore.config.validation import nearest
from encore.data import in_memory
from encore.errors import EncoreError
from encore.evaluation import experiments, scores
from encore.evaluation.scores import exact_mean
from encore.products.tables.table import read_table as read_cells
from encore.products.tables.tidy import tidy_frame


def read_table(path: str | Path) -> pd.DataFrame:
    """The cells of a finished table, one a row, with intervals, p-values and verdicts.

    Args:
        path: any file of the table, such as ``results/tables/table1.csv``; its JSON file next to it is read.
    """
    return tidy_frame(read_cells(Path(path).with_suffix(".json")))


NAMES: Mapping[str, tuple[str, str, str, int]] = {  # of query, document and score, and the first rank
    "encore": ("query", "document", "score", 1),
    "pyterrier": ("qid", "docno", "score", 0),
    "ranx": ("q_id", "doc_id", "score", 1),
    "ir_measures": ("query_id", "doc_id", "score", 1),
    "trectools": ("query", "docid", "score", 1),
}
MEASURES = ("nDCG@10", "RR@10", "R@1000")


class Evaluation(NamedTuple):
    """A run's measures: of each judged query, and their means.

    Attributes:
        queries: columns query, measure, value, low and high (under the worst and best order of tied scores), answered.
        means: by measure.
    """

    queries: pd.DataFrame
    means: pd.Series


def read_run(path: str | Path, names: str = "encore") -> pd.DataFrame:
    """The results of a run, best first within each query: columns query, document, rank (from 1) and score (float32).

    Args:
        path: a folder below ``results/runs``, or a TREC run of any program, gzipped or not.
        names: whose columns: encore, or pyterrier, ranx, ir_measures or trectools, with scores in float64.
    """
    if names not in NAMES:
        raise EncoreError(f"names {names!r} are unknown{nearest(names, NAMES)}")
    of_query, of_document, of_score, first = NAMES[names]
    run = in_memory.run_of(path)
    if not len(run):
        warnings.warn(f"{path} has no line: the run answers no query", stacklevel=2)
    query, rank = np.nonzero(run.rows >= 0)
    scores = run.scores[query, rank]
    documents = run.documents.texts().take(run.rows[query, rank]).to_pandas()
    return pd.DataFrame(
        {
            of_query: np.array(run.queries, dtype=object)[query],
            of_document: documents if names == "encore" else documents.astype(object),
            "rank": rank + first,
            of_score: scores if names == "encore" else scores.astype(np.float64),
        }
    ).astype({} if names == "encore" else {of_query: object})


def evaluate(run: Any, judgments: Any, measures: str | Sequence[str] = MEASURES, split: str = "test") -> Evaluation:
    """Judge a run of anybody, by Encore and (of large ones 200 queries) ir-measures' trec_eval, which must agree.

    A judged query that the run does not answer counts as 0.

    Args:
        run: scores by query and document as a dictionary, rows of these three, a frame (columns of PyTerrier, ranx,
            ir_measures, trectools or Encore), a TREC run's file, or a folder below ``results/runs``.
        judgments: a collection or its folder, or grades in any of these forms.
        measures: in ir-measures' spelling: ``nDCG@10``, ``RR@10``, ``R(rel=2)@100``, ``AP``.
        split: of a collection.
    """
    grades, clusters = in_memory.judgments_of(judgments, split)
    found = experiments.evaluated(in_memory.run_of(run), grades, _listed(measures), clusters)
    frames = [
        pd.DataFrame({"query": one.queries, "measure": name, "value": one.values}).assign(
            low=one.low, high=one.high, answered=one.answered
        )
        for name, one in found.items()
    ]
    means = pd.Series({name: exact_mean(one.values) for name, one in found.items()}, name="mean")
    return Evaluation(pd.concat(frames, ignore_index=True), means)


def compare(
    runs: Mapping[str, Any],
    judgments: Any,
    measures: str | Sequence[str] = MEASURES,
    baseline: str | None = None,
    split: str = "test",
) -> pd.DataFrame:
    """Compare runs with a baseline: a row for each measure and run, tested as rows of tables are.

    Columns: measure, run, mean; ``difference`` to the baseline with its 95 % interval ``low``, ``high``; ``p`` of the
    cluster-robust test, ``p_holm`` corrected over the runs under one measure, ``verdict`` (above, below, not
    distinguishable, not testable here); ``rmse``, the root mean square difference over queries; queries ``judged`` and
    ``answered`` (under every seed); ``seeds``, how many runs the mean is over.

    Args:
        runs: by name, in any form that ``evaluate`` takes, as are the judgments. A list of runs is of one system, a run
            for each seed: the test is then over queries and seeds.
        baseline: the name of one; the first without.
    """
    if not runs:
        raise EncoreError("there is no run to compare; give some by name")
    grades, clusters = in_memory.judgments_of(judgments, split)
    read = {name: in_memory.runs_of(run, name) for name, run in runs.items()}
    base = next(iter(read)) if baseline is None else baseline
    listed = _listed(measures)
    found = experiments.experiment(read, grades, listed, clusters, base)
    return pd.DataFrame([_compared(found, name, measure, base) for measure in listed for name in read])


def _compared(found: experiments.Experiment, name: str, measure: str, base: str) -> dict[str, Any]:
    """A row of ``compare``; what is about a difference is missing for the baseline."""
    own, test = found.scores[name, measure], found.tests.get((name, measure))
    apart = found.differences.get((name, measure))
    mean, other = (exact_mean([exact_mean(one.values) for one in each]) for each in (own, found.scores[base, measure]))
    low, high = test.difference.interval() if test else (np.nan, np.nan)
    return {
        "measure": measure,
        "run": name,
        "mean": mean,
        "difference": np.nan if apart is None else mean - other,
        "low": low,
        "high": high,
        "p": test.difference.p if test else np.nan,
        "p_holm": test.p_holm if test else np.nan,
        "verdict": "" if apart is None else found.verdict(name, measure),
        "rmse": np.nan if apart is None else math.sqrt(exact_mean(apart.ravel() ** 2)),
        "judged": len(own[0].queries),
        "answered": int(np.logical_and.reduce([one.answered for one in own]).sum()),
        "seeds": len(own),
    }


def _listed(measures: str | Sequence[str]) -> list[str]:
    """The measures as texts; those of ir-measures are objects whose text is their name."""
    return [measures] if isinstance(measures, str) else list(dict.fromkeys(map(str, measures)))


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

"""Collections of pandas data frames: for notebooks, which have texts and judgments in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from encore.config.validation import DATASET, refuse_odd_name
from encore.data import collection
from encore.data.columns import Meaning, What, expected, meaning, refuse_twice, taken
from encore.data.in_memory import is_by_query, judgments_in
from encore.data.validation import Located, Row
from encore.errors import EncoreError
from encore.storage.files import filling, writing

if TYPE_CHECKING:
    import pandas as pd


class Collection(collection.Collection):
    """A collection's folder: texts, queries and judgments. ``encore new NAME --beir FOLDER`` takes one."""

    @classmethod
    def from_dataframes(
        cls,
        corpus: pd.DataFrame,
        queries: pd.DataFrame,
        qrels: Any,
        folder: str | Path,
    ) -> Collection:
        """Write data frames into a folder in BEIR's layout, which is taken as it is if it has the same already.

        Columns are known by the names that BEIR, ir_datasets, Pyserini and PyTerrier give them (``data/columns.py``):
        ``docid``, ``docno`` or ``_id`` with ``text`` and perhaps ``title``; ``qid`` or ``query_id`` with ``query`` or
        ``text``; ``qid``, ``docno`` and ``label``, and so on. Ids are texts, and stay as they are.

        Args:
            qrels: judgments to test on, or those of each split: ``{"train": …, "test": …}``; a frame, a dictionary of
                grades by query and document, or rows of these three.
            folder: where it is written.
        """
        by_split = qrels if isinstance(qrels, Mapping) and not is_by_query(qrels) else {"test": qrels}
        texts, asked = _known(corpus, "corpus", "passages"), _known(queries, "queries", "queries")
        judged = {}
        for split, given in by_split.items():
            refuse_odd_name(split, "a split", DATASET)
            judged[split] = list(judgments_in(given, f"qrels of {split}"))
        with writing(Path(folder)), filling(Path(folder)) as made:
            collection.write_collection(
                made,
                Located("corpus", taken(_rows(corpus), texts.passage, "corpus, row"), "row"),
                Located("queries", taken(_rows(queries), asked.query, "queries, row"), "row"),
                judged,
            )
        return cls(Path(folder))


def _known(frame: pd.DataFrame, name: str, what: What) -> Meaning:
    columns = list(map(str, frame.columns))
    refuse_twice(columns, name)
    known = meaning(columns, name)
    if known is None or known.what != what:
        there = f"{', '.join(columns) or 'none'} (an index is none, see `reset_index`)"
        raise EncoreError(f"{name} has the columns {there}; give it {expected(what)}")
    return known


def _rows(frame: pd.DataFrame) -> Iterator[tuple[int, Row]]:
    whole = frame.rename(columns=str).astype(object)
    return enumerate(whole.where(whole.notna(), None).to_dict("records"), 1)

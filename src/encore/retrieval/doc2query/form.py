"""Predicted queries in the common form: ``predicted_queries.jsonl.gz``, a line ``{"_id", "queries"}`` for each passage.

The lines are in the corpus' order, so that texts and queries are read together and neither is kept in memory.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from encore.data.collection import Collection
from encore.errors import EncoreError
from encore.storage.files import read_jsonl, write_jsonl

NAME = "predicted_queries.jsonl.gz"


def write_predicted_queries(folder: Path, predicted: Iterable[tuple[str, list[str]]]) -> dict[str, int]:
    """Write the queries of each passage, by id, and give their counts."""
    counts = {"passages": 0, "queries": 0, "empty": 0}

    def counted() -> Iterator[dict[str, object]]:
        for name, queries in predicted:
            kept = [query for query in queries if query]
            counts["passages"] += 1
            counts["queries"] += len(kept)
            counts["empty"] += len(queries) - len(kept)
            yield {"_id": name, "queries": kept}

    write_jsonl(folder / NAME, counted())
    return counts


def expanded(collection: Collection, folder: Path) -> Iterator[tuple[str, str]]:
    """Each passage's id, and its text with its predicted queries behind it."""
    for text, row in zip_longest(collection.texts(), read_jsonl(folder / NAME)):
        if text is None or row is None or text[0] != row["_id"]:
            raise EncoreError(f"{folder / NAME} has other passages than {collection.folder}; predict the queries again")
        yield text[0], " ".join([*text[1], *row["queries"]])

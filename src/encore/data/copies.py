"""Texts that a collection has more than once, under other ids: counted, and listed, so that training leaves them out.

And what tested queries share with training: the text of a training query, or a document that answers one.

Texts are equal if their normal forms are. Only 64 bits of a digest are kept of each text: one collection of ten million
texts in 300,000 has two different texts that are taken for equal. Texts are read once, and twice if there are copies:
12 µs of a processor and at most 40 bytes per passage, measured on 50,000 and 200,000 passages of 55 words, a fifth of
them copies.
"""

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from encore.config.datasets import role_of, same_draw
from encore.data.collection import Collection
from encore.data.judgments import highest_graded
from encore.storage.files import open_text, open_text_writer, write_json

COPIES = "copies.tsv.gz"  # a passage that repeats another's text, and the first that has it
STATISTICS = "statistics.json"
_ENDS = " .?!:;"  # which change no question


def count_copies(folder: Path) -> dict[str, Any]:
    """Look for equal texts in a collection that is written; returns what there is, also in ``statistics.json``.

    These are ``repeated_passages`` and ``repeated_queries``, which have the text of an earlier one, and by split
    ``texts_of_training``, tested queries with the text of one that trains. A folder without passages, or without equal
    texts, stays as it is.
    """
    if not (folder / "corpus.jsonl.gz").is_file():
        return {}
    collection = Collection(folder)
    queries = _digests(row["text"] for row in collection.query_rows())
    repeated = len(queries) - len(np.unique(queries))
    found: dict[str, Any] = {
        "repeated_passages": _list_copies(collection),
        "repeated_queries": repeated,
        "texts_of_training": _texts_of_training(collection, queries) if repeated else {},
    }
    found = {name: count for name, count in found.items() if count}
    if found:
        path = folder / STATISTICS
        write_json(path, {**json.loads(path.read_text(encoding="utf-8")), **found})
    return found


def copies_of(collection: Collection, wanted: Container[str]) -> dict[str, set[str]]:
    """All passages with the text of a wanted one, itself among them, by its id; of those that have copies."""
    firsts = {first for own, first in _pairs(collection) if own in wanted or first in wanted}
    groups = {first: {first} for first in firsts}
    for own, first in _pairs(collection):
        if first in groups:
            groups[first].add(own)
    return {name: group for group in groups.values() for name in group if name in wanted}


def _pairs(collection: Collection) -> Iterator[tuple[str, str]]:
    """Each copy with the first passage of equal text; found again if no file lists them, as in earlier versions."""
    path = collection.folder / COPIES
    if not path.is_file():
        yield from _found(collection)
        return
    with open_text(path) as file:
        for line in file:
            own, _, first = line.rstrip("\n").partition("\t")
            yield own, first


def _texts_of_training(collection: Collection, digests: np.ndarray) -> dict[str, int]:
    """Queries of each split that does not train with the text of one that does, where there are any."""
    texts = dict(zip((row["_id"] for row in collection.query_rows()), digests.tolist(), strict=True))
    asked = {split: [texts[query] for query in collection.query_ids(split)] for split in collection.splits()}
    found = Counter[str]()
    for split in (each for each in asked if role_of(each) != "train"):
        training = {
            text for each in asked if role_of(each) == "train" and same_draw(each, split) for text in asked[each]
        }
        found[split] = sum(text in training for text in asked[split])
    return dict(+found)


def _list_copies(collection: Collection) -> int:
    """Write the file of copies if there are any, in file order; returns how many."""
    count = 0
    with open_text_writer(collection.folder / COPIES) as file:
        for pair in _found(collection):
            file.write("\t".join(pair) + "\n")
            count += 1
    if not count:
        (collection.folder / COPIES).unlink()
    return count


def _found(collection: Collection) -> Iterator[tuple[str, str]]:
    digests = _digests(" ".join(texts) for _, texts in collection.texts())
    ordered = np.sort(digests)
    several = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(several):
        return
    among = several[np.searchsorted(several, digests).clip(max=len(several) - 1)] == digests
    firsts: dict[int, str] = {}
    ids = compress((row["_id"] for row in collection.corpus()), among)
    for name, digest in zip(ids, digests[among], strict=True):
        if (first := firsts.setdefault(digest, name)) is not name:
            yield name, first


def _digests(texts: Iterable[str]) -> np.ndarray:
    """64 bits of a digest of each text's normal form, or of the text where that is empty, uint64 [n]."""
    forms = ((normal_form(text) or text).encode() for text in texts)
    return np.fromiter((int.from_bytes(hashlib.blake2b(form, digest_size=8).digest()) for form in forms), np.uint64)


@dataclass(frozen=True)
class Overlap:
    """Tested queries that training has met.

    ``texts`` are those with the text of a training query. ``grades`` has, for those that judge a document relevant
    which is an answer to a training query, the highest grade that they give such a document.
    """

    texts: frozenset[str]
    grades: dict[str, int]

    def relevant(self, least: int = 1) -> set[str]:
        """Queries with such a document of that grade or a higher one."""
        return {query for query, grade in self.grades.items() if grade >= least}


def overlap_with_training(collection: Collection, split: str, held_out: Container[str] = ()) -> Overlap:
    """The overlap of a split's queries with the training of its draw (``config.datasets.same_draw``), if there is any.

    The answers to a training query are its documents of its highest grade, as in fine-tuning. Texts are compared in
    their ``normal_form``. Queries ``held_out`` from training do not count as training queries.
    """
    texts = {query: normal_form(text) for query, text in collection.queries().items()}
    answers, asked = set[str](), set[str]()
    for training in collection.splits():
        if role_of(training) != "train" or not same_draw(training, split):
            continue
        for query, judged in collection.qrels(training).items():
            if query not in held_out:
                asked.add(texts[query])
                answers |= highest_graded(judged)
    queries = collection.query_ids(split)
    grades = collection.qrels(split) if collection.is_judged(split) else {}
    shared = {
        query: max((grade for name, grade in grades.get(query, {}).items() if name in answers), default=0)
        for query in queries
    }
    return Overlap(
        frozenset(query for query in queries if texts[query] in asked),
        {query: grade for query, grade in shared.items() if grade > 0},
    )


def own_documents(collection: Collection) -> int:
    """The number of queries that are documents, too: of the same id, and with the document's text or title and text."""
    queries = collection.queries()
    return sum(
        normal_form(queries[row["_id"]]) in {normal_form(row["text"]), normal_form(f"{row['title']} {row['text']}")}
        for row in collection.documents(queries)
    )


def normal_form(text: str) -> str:
    """A text in Unicode's form NFKC, without case, with one blank between words and without what ends a sentence."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(_ENDS)

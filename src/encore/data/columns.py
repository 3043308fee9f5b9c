"""What columns of other people's rows mean, by their names: passages, queries, judgments, or all three in each row."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, TypeVar

from encore.data.judgments import Judgment, whole_grade
from encore.data.validation import Row
from encore.errors import EncoreError, quoted

Taken = TypeVar("Taken")
What = Literal["training", "judgments", "passages", "queries"]
Names = Mapping[str, Sequence[str]]  # theirs for each of ours, the first that is there
_ANY = ("_id", "id")  # of a passage or of a query
# Where several are there, the first: PyTerrier's `docid` is a number in its index, and its `query` the text of one.
PASSAGE = ("docno", "docid", "doc_id", "pid", "passage_id", "psg_id", "document_id", "corpus-id", "corpus_id")
QUERY = ("qid", "query_id", "query-id", "q_id", "topic_id", "topic", "number", "num")
_CERTAIN = {*PASSAGE, *QUERY, "contents", "positive_passages", "positive_ctxs"}  # say what the row is
NEEDED: Mapping[What, Names] = {
    "training": {"text": ("query", "question"), "positives": ("positive_passages", "positive_ctxs")},
    "judgments": {
        "query": QUERY,
        "document": PASSAGE,
        "grade": ("relevance", "rel", "label", "grade", "judgment", "score"),
    },
    "passages": {"_id": (*PASSAGE, *_ANY), "text": ("text", "contents", "content", "body", "passage", "document")},
    "queries": {"_id": (*QUERY, *_ANY), "text": ("query", "text", "title", "question", "contents", "description")},
}
OPTIONAL: Mapping[What, Names] = {
    "training": {
        "_id": (*QUERY, *_ANY),
        "negatives": ("negative_passages", "hard_negative_ctxs"),
        "answers": ("answers",),
    },
    "passages": {"title": ("title", "headline", "ttl", "hl", "head")},
}
HEADERLESS: Mapping[tuple[What, int], Sequence[str]] = {  # by the number of columns, as in MS MARCO's files
    ("passages", 2): ("id", "text"),
    ("passages", 3): ("id", "title", "text"),
    ("passages", 4): ("id", "url", "title", "text"),
    ("queries", 2): ("id", "text"),
    ("judgments", 3): ("qid", "docid", "score"),
}
HINTS: Mapping[What, str] = {  # in the name of a file or folder; the first one that is found
    "judgments": r"qrel|judg",
    "queries": r"quer|topic|question",
    "passages": r"corpus|collection|doc|passage|psg",
}
IDS = {*_ANY, *PASSAGE, *QUERY}
_KNOWN = {name for kind in (*NEEDED.values(), *OPTIONAL.values()) for names in kind.values() for name in names}


class Asked(NamedTuple):
    """A training row: its query (without ``_id`` if it has none), positive and negative passages, and answers."""

    query: Row
    positives: list[Row]
    negatives: list[Row]
    answers: list[str]


@dataclass(frozen=True)
class Meaning:
    """The kind of rows, the column of theirs behind each name of ours, and the columns that are not read.

    Its methods take a row, and raise an EncoreError without a place for a wrong id, text or grade.
    """

    what: What
    columns: Mapping[str, str]
    others: Sequence[str]

    def passage(self, row: Row) -> Row:
        """``_id``, ``title`` and ``text``."""
        return {"_id": self._id(row, "_id"), "title": self._text(row, "title") or "", "text": self._said(row)}

    def query(self, row: Row) -> Row:
        """``_id`` and ``text``."""
        return {"_id": self._id(row, "_id"), "text": self._said(row)}

    def judgment(self, row: Row) -> Judgment:
        """A query's id, a passage's id and a grade."""
        grade = whole_grade(str(row.get(self.columns["grade"])))
        return Judgment(self._id(row, "query"), self._id(row, "document"), grade)

    def asked(self, row: Row) -> Asked:
        """A query with its passages."""
        own = {"_id": self._id(row, "_id")} if "_id" in self.columns else {}
        positives, negatives = (list(_passages(self._value(row, name))) for name in ("positives", "negatives"))
        return Asked({**own, "text": self._said(row)}, positives, negatives, self._answers(row))

    def _id(self, row: Row, name: str) -> str:
        found = row.get(self.columns[name])
        if not isinstance(found, str | int) or isinstance(found, bool):
            raise EncoreError(
                f"{self.columns[name]} is {quoted(found)}, no id; give ids as texts (pandas: `dtype=str`)"
            )
        return str(found)

    def _value(self, row: Row, name: str) -> Any:
        """The value of a field in a row; an optional field may first occur in a later row."""
        column = self.columns.get(name)
        column = column if column in row else _optional(self.what, tuple(row)).get(name)
        return None if column is None else row.get(column)

    def _answers(self, row: Row) -> list[str]:
        """The answers, given as one text or as a list of texts; empty ones are left out."""
        found = self._value(row, "answers")
        listed = [found] if isinstance(found, str) else found or []
        if not isinstance(listed, list) or not all(isinstance(each, str | None) for each in listed):
            raise EncoreError(f"answers are {quoted(found)}; give a text or a list of texts")
        return [each for each in listed if each and each.strip()]

    def _text(self, row: Row, name: str) -> str | None:
        found = self._value(row, name)
        if not isinstance(found, str | None):
            raise EncoreError(f"{self.columns.get(name, name)} is {quoted(found)} and not text; put it in quotes")
        return found

    def _said(self, row: Row) -> str:
        found = self._text(row, "text")
        if found is None:
            raise EncoreError(f"{self.columns['text']} is missing or null; add it, or remove the row")
        return found


def meaning(columns: Iterable[str], path: str = "") -> Meaning | None:
    """The kind of rows with these columns; None if that is not known.

    Args:
        columns: their names, in any case; 1, 2, … where a file has no header.
        path: of the file; its name, or else that of a folder, says what an id with a text is.
    """
    theirs, hint = list(columns), hinted(path)
    names = HEADERLESS.get((hint, len(theirs)), ()) if hint and theirs[:1] == ["1"] else map(str.lower, theirs)
    there = dict(zip(names, theirs, strict=False))
    found = {what: each for what, wanted in NEEDED.items() if len(each := chosen(wanted, there)) == len(wanted)}
    certain = (
        what for what, each in found.items() if _CERTAIN & {name for name in there if there[name] in each.values()}
    )
    what = hint if hint in found else next(certain, None)
    if what is None or (what == "judgments" and "rank" in there):  # a run, whose scores are not grades
        return None
    taken = found[what] | chosen(OPTIONAL.get(what, {}), there)
    return Meaning(what, taken, [name for name in theirs if name not in taken.values()])


def taken(rows: Iterable[tuple[int, Row]], take: Callable[[Row], Taken], place: str) -> Iterator[tuple[int, Taken]]:
    """The results of ``take`` for numbered rows, with their numbers; an error names the row's place."""
    for number, row in rows:
        try:
            found = take(row)
        except EncoreError as error:
            raise EncoreError(f"{place} {number}: {error}") from error
        yield number, found


def is_header(names: Sequence[str]) -> bool:
    """True if a first line names columns and is not a row: two at least are known."""
    return sum(name.strip().lower() in _KNOWN for name in names) > 1


def refuse_twice(names: Iterable[str], place: str) -> None:
    """Refuse two columns of one name, of which only the last would be read."""
    counts = Counter(map(str.lower, names))
    if twice := [name for name, count in counts.items() if name and count > 1]:
        raise EncoreError(f"{place}: two columns are called {quoted(twice[0])}; rename or remove one")


def expected(what: What) -> str:
    """The columns that rows need to be this, in words."""
    return in_words(NEEDED[what])


def in_words(wanted: Names) -> str:
    """The columns that rows need."""
    return " and ".join(f"one of {', '.join(names)}" for names in wanted.values())


def hinted(path: str) -> What | None:
    """The kind of rows that a file's name, or else a folder's, suggests."""
    parts = (part.lower() for part in reversed(PurePath(path).parts))
    return next((what for part in parts for what, pattern in HINTS.items() if re.search(pattern, part)), None)


@lru_cache
def _optional(what: What, columns: tuple[str, ...]) -> dict[str, str]:
    return chosen(OPTIONAL.get(what, {}), {name.lower(): name for name in columns})


def chosen(wanted: Names, there: Mapping[str, str]) -> dict[str, str]:
    """Their column, by its lower-case name in ``there``, for each name of ours that has one."""
    found = {ours: next((there[name] for name in names if name in there), None) for ours, names in wanted.items()}
    return {ours: name for ours, name in found.items() if name is not None}


def _passages(listed: Any) -> Iterator[Row]:
    """Passages of a list of objects, or, as Arrow may have it, of an object of lists."""
    given, columns = listed or [], list(listed.values()) if isinstance(listed, dict) else []
    if columns and all(isinstance(each, list) for each in columns) and len(set(map(len, columns))) == 1:
        given = [dict(zip(listed, values, strict=True)) for values in zip(*columns, strict=True)]
    if not isinstance(given, list):
        raise EncoreError(f"{quoted(listed)} is no list of passages; give one, or lists of equal length by field")
    for each in given:
        known = _of_passages(tuple(each)) if isinstance(each, dict) else None
        if known is None:
            raise EncoreError(f"{quoted(each)} is listed as a passage; give it {expected('passages')}")
        yield known.passage(each)


@cache
def _of_passages(columns: tuple[str, ...]) -> Meaning | None:
    return meaning(columns, "passages")

"""Judgments on their way into a collection: held against its queries and documents, and counted."""

import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field

from encore.data.text_fields import FormFields, FormSpec
from encore.errors import EncoreError, quoted

Grades = dict[str, dict[str, int]]  # by query and document
Unknown = Literal["refuse", "drop", "keep"]
# trec_eval's own are C's long; these are enough and fit everywhere. pandas writes 1.0 where a column had a gap.
_GRADE = re.compile(r"(-?[0-9]{1,6})(\.0+)?")


class Judgment(NamedTuple):
    """One line of a qrels file; ``place`` says where it was read, for messages."""

    query: str
    document: str
    grade: int
    place: str = ""


class JudgedFields(FormFields):
    """Fields of kinds of collections whose judgments come from elsewhere."""

    unknown_judgments: Unknown = Field(
        "refuse",
        description="of queries or documents that do not exist; `drop` leaves them out and counts them, `keep` leaves "
        "out those of queries, and has the documents never found, as trec_eval",
    )
    listed_negatives: bool = Field(
        False,
        description="in place of negatives from BM25's run, steps take passages that are judged 0 in training or, for "
        "kind beir, listed in `negatives/<split>.tsv`",
    )

    @property
    def listed_negatives_used(self) -> Literal["never", "always"]:
        """Whether steps use listed negatives: all do, where the collection lists them."""
        return "always" if self.listed_negatives else "never"

    def to_spec(self) -> dict[str, Any]:
        """The fields that a collection's spec gets, without defaults, so that folders keep their names."""
        unknown = {} if self.unknown_judgments == "refuse" else {"unknown_judgments": self.unknown_judgments}
        return unknown | ({"listed_negatives": True} if self.listed_negatives else {})


class JudgedSpec(FormSpec):
    """The same fields, resolved."""

    unknown_judgments: Unknown = "refuse"
    listed_negatives: bool = False


class Judging:
    """The queries and documents that judgments are checked against."""

    def __init__(
        self, queries: Container[str], documents: Container[str], empty: Container[str] = (), unknown: str | None = None
    ) -> None:
        """Args: ``empty`` documents were left out because they say nothing; a kind without a choice refuses unknown."""
        self._queries, self._documents = queries, documents
        self._empty, self._refuses, self._keeps = empty, unknown in (None, "refuse"), unknown == "keep"
        self._fix = (
            "or remove the judgment" if unknown is None else "remove the judgment, or set `unknown_judgments: drop`"
        )

    def judged(self, split: str, judgments: Iterable[Judgment]) -> tuple[Grades, dict[str, int]]:
        """Grades in the order of their queries' first mention, and what there is to count.

        Always ``queries`` and ``judgments``; and if there are any, judgments ``repeated``, ``of_empty_documents``,
        ``of_unknown_queries`` and ``of_unknown_documents``, and ``queries_without_relevant`` (no grade above 0).
        """
        grades: Grades = {}
        left_out: Counter[str] = Counter()
        for judgment in judgments:
            reason = self._left_out(judgment) or ("repeated" if is_entered(judgment, grades) else None)
            if reason:
                left_out[reason] += 1
        if left_out and not grades:  # a kind that makes its own judgments may have none of a split (pydocs' graded)
            raise EncoreError(f"split {split!r} judges nothing that the collection has; name its own judgments")
        barren = sum(not any(grade > 0 for grade in given.values()) for given in grades.values())
        counts = {"queries": len(grades), "judgments": sum(map(len, grades.values()))}
        others = {**left_out, "queries_without_relevant": barren}
        return grades, counts | {name: count for name, count in others.items() if count}

    def known(self, listed: Iterable[Judgment], left_out: Counter[str]) -> Iterator[Judgment]:
        """Judgments of queries and documents that exist; others are counted."""
        for each in listed:
            if reason := self._left_out(each):
                left_out[reason] += 1
            else:
                yield each

    def _left_out(self, judgment: Judgment) -> str | None:
        """Why a judgment is left out, if it is."""
        if judgment.query not in self._queries:
            return self._unknown(judgment, "query", "among the queries", judgment.query, self._queries)
        if judgment.document in self._documents or self._keeps:
            return None
        if judgment.document in self._empty:
            return "of_empty_documents"
        return self._unknown(judgment, "document", "in the corpus", judgment.document, self._documents)

    def _unknown(self, judgment: Judgment, what: str, where: str, name: str, known: Container[str]) -> str:
        if not self._refuses:
            return f"of_unknown_{'queries' if what == 'query' else 'documents'}"
        other = _otherwise_spelled(name, known)
        raise EncoreError(f"{_place(judgment)}{what} {quoted(name)} is not {where}{other}; add it there, {self._fix}")


def whole_grade(grade: str, before: str = "") -> int:
    """The whole number that a grade's text says.

    Args:
        before: the place, for the message.
    """
    if (whole := _GRADE.fullmatch(grade)) is None:
        raise EncoreError(f"{before}grade {quoted(grade)} is not a whole number; give one, such as 1")
    return int(whole[1])


def not_relevant(judgments: Iterable[Judgment]) -> list[Judgment]:
    """The judgments of passages that are not relevant (0 or less), as negatives of rank 0."""
    return [each._replace(grade=0) for each in judgments if each.grade <= 0]


def highest_graded(judged: Mapping[str, int]) -> set[str]:
    """The documents of a query's highest grade, which answer it; none if nothing is relevant.

    Known-item collections grade the own passage above those that are merely related: only the first is the answer.
    """
    best = max(judged.values(), default=0)
    return {document for document, grade in judged.items() if grade == best > 0}


def is_entered(judgment: Judgment, grades: Grades) -> bool:
    """Enter a judgment; true if it was there before."""
    given = grades.setdefault(judgment.query, {})
    if judgment.document not in given:
        given[judgment.document] = judgment.grade
        return False
    if given[judgment.document] != judgment.grade:
        raise EncoreError(
            f"{_place(judgment)}{quoted(judgment.query)} and {quoted(judgment.document)} are judged twice, with other "
            "grades; keep one of them"
        )
    return True


def _otherwise_spelled(name: str, known: Container[str]) -> str:
    """Ids are compared code point by code point; a look at the usual reason why equal-looking ones differ."""
    forms = (unicodedata.normalize(form, name) for form in ("NFC", "NFD"))
    return " (but is, in another Unicode normal form)" if any(form != name and form in known for form in forms) else ""


def _place(judgment: Judgment) -> str:
    return f"{judgment.place}: " if judgment.place else ""

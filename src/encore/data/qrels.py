"""Judgments in a file of the user's: BEIR's three columns with their header, or TREC's four without."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from encore.data.collection import NEGATIVES_HEADER, QRELS_HEADER
from encore.data.judgments import Judgment, whole_grade
from encore.errors import EncoreError
from encore.storage.text_files import numbered_records


def read_qrels(path: Path, grades: Mapping[int, int], left_out: Counter[str], split: str) -> Iterator[Judgment]:
    """The judgments of a split's file.

    Args:
        grades: the grades that are kept, and as which; all as they are without any.
        left_out: counts the judgments of other grades, by split.
    """
    judgment, is_relevant = None, False
    for judgment in lines(path):
        if grades and judgment.grade not in grades:
            left_out[split] += 1
            continue
        grade = grades[judgment.grade] if grades else judgment.grade
        is_relevant = is_relevant or grade > 0
        yield judgment._replace(grade=grade)
    if judgment is None:
        raise EncoreError(f"{path} has no judgment; give it some, or leave the split out of `splits:`")
    if not is_relevant:
        raise EncoreError(f"{path} has no grade above 0, so nothing is relevant; correct its grades, or see `grades:`")


def read_negatives(path: Path) -> Iterator[Judgment]:
    """The passages that a file of ``query-id``, ``corpus-id`` and ``rank`` lists, with their rank as grade."""
    for number, line in numbered_records(path):
        place, fields = f"{path}, line {number}", line.split("\t")
        if number == 1 and line != NEGATIVES_HEADER:
            raise EncoreError(f"{place}: the header must be query-id, corpus-id and rank, tab-separated; add it")
        if number > 1:
            query, document, rank = _columns(place, fields, 3, "tabs")
            yield Judgment(query, document, whole_grade(rank, f"{place}, rank: "), place)


def lines(path: Path) -> Iterator[Judgment]:
    """The judgments of a file, as they are."""
    trec = False
    for number, line in numbered_records(path):
        place = f"{path}, line {number}"
        if number == 1:
            trec = line != QRELS_HEADER and len(line.split()) == 4
        if trec:
            query, _, document, grade = _columns(place, line.split(), 4, "blanks")
        elif number > 1:
            query, document, grade = _columns(place, line.split("\t"), 3, "tabs")
        elif line == QRELS_HEADER:
            continue
        else:
            raise EncoreError(
                f"{place}: the header must be query-id, corpus-id and score, tab-separated; add it, or give TREC's "
                "four columns, which have none; `encore new NAME --from FOLDER` knows other names of columns, too"
            )
        yield Judgment(query, document, whole_grade(grade, f"{place}: "), place)


def _columns(place: str, fields: list[str], count: int, between: str) -> list[str]:
    if len(fields) != count:
        raise EncoreError(
            f"{place}: {len(fields)} fields, {count} separated by {between} are expected; fix or remove the line"
        )
    return fields

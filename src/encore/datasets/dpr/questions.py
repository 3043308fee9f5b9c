"""Questions of DPR's form: with answers alone (a row a line), or with passages as well (a JSON array)."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.datasets.dpr.json_array import elements
from encore.datasets.dpr.lines import columns
from encore.errors import EncoreError

BY_PEOPLE = 1000  # the score that DPR gives to the passage that people had marked
IDS = ("passage_id", "psg_id")  # of a passage: in files of Natural Questions, in those of TriviaQA


@dataclass
class DprQuestion:
    """A question, where it stands, and the passages that its file lists, by id."""

    text: str
    answers: list[str]
    place: str
    positives: dict[str, int] = field(default_factory=dict)  # 2: marked by people, 1: retrieved with an answer in it
    negatives: list[str] = field(default_factory=list)  # retrieved by BM25, without an answer, best first


def with_answers(path: Path) -> Iterator[DprQuestion]:
    """Rows ``question<TAB>['answer', …]``, the answers as a Python list.

    Raises:
        EncoreError: with its line, a row is not that.
    """
    for number, row in columns(path):
        place = f"{path}, line {number}"
        if len(row) != 2:
            raise EncoreError(f"{place}: {len(row)} columns, a question and its answers parted by a tab are expected")
        try:
            answers = ast.literal_eval(row[1])
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise EncoreError(f"{place}: {row[1][:60]!r} is no Python list of answers; fix or remove it") from error
        yield _question(row[0], answers, place)


def with_passages(path: Path) -> Iterator[DprQuestion]:
    """Elements ``{"question", "answers", "positive_ctxs", "hard_negative_ctxs", …}`` of a JSON array.

    A passage that is listed twice counts where it stands first, positives before negatives.

    Raises:
        EncoreError: with its number, an element is not that.
    """
    for number, element in enumerate(elements(path), 1):
        place = f"{path}, element {number}"
        try:
            question = _question(element["question"], element["answers"], place)
            for each in element["positive_ctxs"]:
                question.positives.setdefault(_id(each), 2 if float(each.get("score", 0)) == BY_PEOPLE else 1)
            listed = dict.fromkeys(map(_id, element.get("hard_negative_ctxs", ())))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EncoreError(
                f'{place}: needs "question", "answers", "positive_ctxs" and passages with "passage_id" ({error!r}); '
                "fix or remove it"
            ) from error
        question.negatives = [name for name in listed if name not in question.positives]
        yield question


def _question(text: Any, answers: Any, place: str) -> DprQuestion:
    """A question as DPR reads it, with straight apostrophes."""
    if not isinstance(text, str) or not text.strip():
        raise EncoreError(f"{place}: the question is empty; fix or remove it")
    if not isinstance(answers, list | tuple) or not all(isinstance(each, str) for each in answers):
        raise EncoreError(f"{place}: the answers of {text!r} are no list of texts; fix or remove it")
    kept = [each for each in answers if each.strip()]
    if not kept:
        raise EncoreError(f"{place}: {text!r} has no answer, so nothing can be right; add one or remove it")
    return DprQuestion(text.replace("\u2019", "'"), kept, place)


def _id(passage: dict[str, Any]) -> str:
    return str(passage[IDS[0]] if IDS[0] in passage else passage[IDS[1]])

"""Which bodies become passages, which summaries become queries (rules 4 to 6 of the cleaning)."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tools.pydocs.markup import CUT
from tools.pydocs.objects import Object, words

LEAD_WORDS = 90
LEAST_WORDS = 12
LEAST_LETTERS = 0.8
SHINGLE = 6
_QUERY_WORDS = range(3, 41)
_LEAST_CONTENT_WORDS = 3
_UNSUITABLE = re.compile(
    r"(?i)\b(copyright|licen[cs]e[sd]?|deprecated|deprecation|obsolete|alias (for|of|to)|no longer (used|supported)"
    r"|all rights reserved|do not use|see docstring|see documentation|not implemented)\b"
    r"|^(see|same as|like|todo|fixme)\b|:$"
)
_STOP_WORD = re.compile(
    "a|an|and|any|are|as|at|be|been|but|by|can|do|does|for|from|has|have|if|in|into|is|it|its|no|not|of|on|only|or|other|out"
    "|so|such|than|that|the|their|them|then|there|these|they|this|to|use|used|using|was|we|when|where|which|while|will|with"
    "|you|your"
)


def lead(sentences: Sequence[str]) -> str:
    """The first sentences that together hold at most 90 words; a longer first sentence is cut there."""
    taken: list[str] = []
    for sentence in sentences:
        taken += sentence.split()
        if len(taken) > LEAD_WORDS:
            return " ".join(taken[: -len(sentence.split())] or taken[:LEAD_WORDS])
    return " ".join(taken)


def queries(objects: Iterable[Object]) -> dict[str, str]:
    """Query text by object id: summaries that ask for one thing, are unique over all objects, and not in the body."""
    objects = list(objects)
    summaries = Counter(_normal(each.summary) for each in objects)
    return {
        each.id: each.summary.rstrip(".")
        for each in objects
        if _is_question(each.summary)
        and summaries[_normal(each.summary)] == 1
        and f" {_normal(each.summary)} " not in f" {_normal(' '.join(each.sentences))} "
    }


def passages(objects: Iterable[Object]) -> dict[str, str]:
    """Lead text by object id, without bodies that are short, no prose, or (nearly) repeat an earlier one."""
    kept: dict[str, str] = {}
    seen: set[str] = set()
    for each in objects:
        text = lead(each.sentences)
        if _is_prose(text) and not _is_repeated(own := shingles(words(text)), seen):
            seen |= own
            kept[each.id] = text
    return kept


def shingles(text: list[str]) -> set[str]:
    """Runs of six words; a shorter text is one run."""
    return {" ".join(text[start : start + SHINGLE]) for start in range(max(1, len(text) - SHINGLE + 1))}


def _is_repeated(own: set[str], seen: set[str]) -> bool:
    return 2 * len(own & seen) > len(own)


def _is_prose(text: str) -> bool:
    dense = text.replace(" ", "")
    return len(text.split()) >= LEAST_WORDS and sum(map(str.isalpha, dense)) >= LEAST_LETTERS * len(dense)


def _is_question(summary: str) -> bool:
    if CUT in summary or _UNSUITABLE.search(summary) or "\\" in summary or len(summary.split()) not in _QUERY_WORDS:
        return False
    content = {word for word in words(summary) if len(word) > 1 and not (word.isdigit() or _STOP_WORD.fullmatch(word))}
    return len(content) >= _LEAST_CONTENT_WORDS


def _normal(text: str) -> str:
    return " ".join(words(text))

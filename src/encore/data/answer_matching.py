"""Documents that contain an answer to the questions that they were retrieved for, as DPR decides it.

Texts are normalised to NFD and split into tokens: runs of letters, digits and marks, and every other visible sign by
itself; case does not count. A passage contains an answer if the answer's tokens are in it next to each other
(Karpukhin et al. 2020; Chen et al. 2017). The corpus is read once, one passage at a time, and each passage is
normalised once, however many questions retrieved it.
"""

import unicodedata
from collections.abc import Iterable, Mapping

from encore.data.collection import Collection
from encore.errors import EncoreError

WORD, NOTHING = frozenset("LNM"), frozenset("ZC")  # general categories: letters, numbers, marks; separators, controls


class _Separated(dict[int, str]):
    """The text that replaces a character, by its number, so that blanks separate tokens; filled as characters come."""

    def __missing__(self, number: int) -> str:
        sign = chr(number)
        category = unicodedata.category(sign)[0]
        self[number] = separated = sign if category in WORD else " " if category in NOTHING else f" {sign} "
        return separated


_SEPARATED = _Separated()


def spread(text: str) -> str:
    """The tokens of a text, separated by single blanks and with one at either end, so tokens compare as texts."""
    return f" {' '.join(unicodedata.normalize('NFD', text).translate(_SEPARATED).lower().split())} "


def contains(passage: str, answers: Iterable[str]) -> bool:
    """True if any of the answers is in a passage; both as ``spread`` returns them. An empty text is not an answer."""
    return any(answer.strip() and answer in passage for answer in answers)


def answering(retrieved: Mapping[str, Iterable[str]], collection: Collection) -> dict[str, set[str]]:
    """The documents of each question whose text (not title) has an answer to it."""
    known = collection.answers()
    if unanswered := sorted(query for query in retrieved if query not in known):
        raise EncoreError(f"{len(unanswered)} questions have no answers, such as {unanswered[0]!r}; give them some")
    answers = {query: [spread(answer) for answer in known[query]] for query in retrieved}
    queries_of: dict[str, list[str]] = {}
    for query, documents in retrieved.items():
        for document in documents:
            queries_of.setdefault(document, []).append(query)
    found: dict[str, set[str]] = {query: set() for query in retrieved}
    missing = len(queries_of)
    for row in collection.documents(queries_of):
        text = spread(row["text"])
        for query in queries_of[row["_id"]]:
            if contains(text, answers[query]):
                found[query].add(row["_id"])
        queries_of[row["_id"]], missing = [], missing - 1
    if missing:
        lost = min(document for document, queries in queries_of.items() if queries)
        raise EncoreError(f"document {lost!r} of the run is not in {collection.folder}; search it again")
    return found

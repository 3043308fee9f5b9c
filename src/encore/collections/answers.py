"""Whether a passage contains an answer to a question, as open-domain question answering decides it (DPR).

Texts are normalised to NFD and parted into tokens: runs of letters, digits and marks, and every other visible sign for
itself; case does not count. A passage contains an answer if the answer's tokens stand in it next to each other
(Karpukhin et al. 2020; Chen et al. 2017).
"""

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby

WORD, NOTHING = frozenset("LNM"), frozenset("ZC")  # general categories: letters, numbers, marks; separators, controls


def spread(text: str) -> str:
    """The tokens of a text, parted by single blanks and with one at either end, so that tokens compare as texts."""
    return f" {' '.join(_tokens(unicodedata.normalize('NFD', text)))} "


def contains(passage: str, answers: Iterable[str]) -> bool:
    """Whether any of the answers stands in a passage; both as ``spread`` gives them. Nothing is no answer."""
    return any(answer.strip() and answer in passage for answer in answers)


def _tokens(text: str) -> Iterator[str]:
    for kind, signs in groupby(text, _kind):
        if kind == "word":
            yield "".join(signs).lower()
        elif kind == "sign":
            yield from (sign.lower() for sign in signs)


def _kind(sign: str) -> str:
    category = unicodedata.category(sign)[0]
    return "word" if category in WORD else "nothing" if category in NOTHING else "sign"

"""Whether a passage contains an answer to a question, as open-domain question answering decides it (DPR).

Texts are normalised to NFD and parted into tokens: runs of letters, digits and marks, and every other visible sign for
itself; case does not count. A passage contains an answer if the answer's tokens stand in it next to each other
(Karpukhin et al. 2020; Chen et al. 2017).
"""

import unicodedata
from collections.abc import Iterable

WORD, NOTHING = frozenset("LNM"), frozenset("ZC")  # general categories: letters, numbers, marks; separators, controls


class _Parted(dict[int, str]):
    """What a sign becomes so that blanks part the tokens, by its number; filled as signs are met."""

    def __missing__(self, number: int) -> str:
        sign = chr(number)
        category = unicodedata.category(sign)[0]
        self[number] = parted = sign if category in WORD else " " if category in NOTHING else f" {sign} "
        return parted


_PARTED = _Parted()


def spread(text: str) -> str:
    """The tokens of a text, parted by single blanks and with one at either end, so that tokens compare as texts."""
    return f" {' '.join(unicodedata.normalize('NFD', text).translate(_PARTED).lower().split())} "


def contains(passage: str, answers: Iterable[str]) -> bool:
    """Whether any of the answers stands in a passage; both as ``spread`` gives them. Nothing is no answer."""
    return any(answer.strip() and answer in passage for answer in answers)

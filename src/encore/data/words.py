"""Where the words of a text in pieces begin, for masks of whole words.

A piece of the vocabulary says whether it continues the word before it. In Chinese, where each character is a piece, a
segmenter finds the words, as for BERT-wwm (Cui et al. 2019, with LTP's); here it is jieba's, without a model to fetch.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from encore.data.vocabulary import CONTINUES


def word_starts(ids: np.ndarray, continues: np.ndarray) -> np.ndarray:
    """First positions of the words of a text; a text that begins inside a word begins with a (cut) word.

    Args:
        ids: [n] pieces.
        continues: [vocabulary] bool, whether a piece continues the word before it.
    """
    return np.flatnonzero(~(continues[ids] & (np.arange(len(ids)) > 0)))


def segmented_word_starts(ids: np.ndarray, continues: np.ndarray, pieces: Sequence[str]) -> np.ndarray:
    """The same where words of several characters that are a piece each have to be found.

    Args:
        pieces: [vocabulary], the strings of the pieces.
    """
    import rjieba

    starts, text, follows = word_starts(ids, continues), "", False
    begins: list[int] = []
    for part in np.split(ids, starts[1:]):
        word = "".join(pieces[piece].removeprefix(CONTINUES) for piece in part)
        is_one = len(word) == 1 and _is_ideograph(word)
        text += "" if follows and is_one else " "  # a blank, which the segmenter joins with nothing
        begins.append(len(text))
        text, follows = text + word, is_one
    found = {*accumulate(map(len, rjieba.cut(text)))}
    return starts[[begin in found for begin in begins[: len(starts)]]]


def _is_ideograph(character: str) -> bool:
    """Of the blocks that BERT's tokenizer parts into characters and Chinese is written in."""
    return "\u4e00" <= character <= "\u9fff" or "\u3400" <= character <= "\u4dbf" or character >= "\U00020000"

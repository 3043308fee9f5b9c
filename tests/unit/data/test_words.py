"""Where words begin: by the pieces, and in Chinese by a segmenter."""

import numpy as np

from encore.data.tokens import segmented_word_starts, word_starts

CONTINUES = np.arange(100) >= 50


def test_words_start_where_a_piece_does_not_continue() -> None:
    assert word_starts(np.array([60, 10, 61, 62, 11, 12]), CONTINUES).tolist() == [0, 1, 4, 5]


def starts(*pieces: str) -> list[int]:
    continues = np.array([piece.startswith("##") for piece in pieces], dtype=bool)
    return segmented_word_starts(np.arange(len(pieces)), continues, pieces).tolist()


def test_chinese_characters_are_joined_as_dictionaries_do() -> None:
    """The segmenter's own example: I | came to | Peking | Tsinghua University."""
    assert starts(*"我来到北京清华大学") == [0, 1, 3, 5]


def test_nothing_else_is_joined() -> None:
    assert starts("deep", "learn", "##ing", "[UNK]", "模", "型", ",", "模", "型", "gp", "##t") == [0, 1, 3, 4, 6, 7, 9]
    assert starts("北", "[UNK]", "京") == [0, 1, 2]
    assert starts("1", "2") == [0, 1]
    assert starts() == []

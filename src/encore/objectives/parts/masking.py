"""Masking of pieces for masked language modelling, by piece or by whole word (Devlin et al. 2019)."""

from typing import NamedTuple

import numpy as np

MASKED, REPLACED = 0.8, 0.1  # of the chosen pieces; the rest stay as they are


class Masked(NamedTuple):
    """A text after masking: its pieces [n], the chosen positions [m] ascending, and the original pieces [m]."""

    ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


def choose_pieces(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` of ``n`` positions, all sets alike."""
    return np.sort(rng.choice(n, size=min(count, n), replace=False))


def choose_words(starts: np.ndarray, n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Whole words in random order until ``count`` pieces are chosen; a word that would overshoot is passed over.

    A text whose words are all longer than ``count`` gives its shortest word, so that something is always masked.
    """
    lengths = np.diff(np.append(starts, n))
    words, left = rng.permutation(len(starts)), count
    chosen = np.zeros(len(starts), dtype=bool)
    while len(words):  # each turn takes all words up to the first that overshoots; few turns are needed
        total = np.cumsum(lengths[words])
        fit = int(np.searchsorted(total, left, side="right"))
        chosen[words[:fit]] = True
        left -= int(total[fit - 1]) if fit else 0
        words = words[fit + 1 :]
        words = words[lengths[words] <= left]
    if n and not chosen.any():
        chosen[np.argmin(lengths)] = True
    return np.flatnonzero(np.repeat(chosen, lengths))


def count_to_mask(n: int, ratio: float) -> int:
    """Pieces to mask in a text of ``n`` pieces, at least one; the ratio counts [CLS] and [SEP] in, as BERT's does."""
    return max(1, round(ratio * (n + 2)))


def corrupt(ids: np.ndarray, positions: np.ndarray, vocabulary: int, mask: int, rng: np.random.Generator) -> Masked:
    """Put [MASK] at 80 % of the chosen positions, a piece drawn from the whole vocabulary at 10 %, and leave 10 %.

    Args:
        ids: [n] pieces without special tokens, which can therefore never be chosen.
        positions: [m] chosen positions.
        vocabulary: pieces to draw from.
        mask: id of [MASK].
    """
    fate = rng.random(len(positions))
    drawn = rng.integers(vocabulary, size=len(positions))
    labels = ids[positions].astype(np.int64)
    changed = ids.astype(np.int64)
    changed[positions] = np.where(fate < MASKED, mask, np.where(fate < MASKED + REPLACED, drawn, labels))
    return Masked(changed, positions, labels)


def places(texts: list[Masked], width: int) -> dict[str, np.ndarray]:
    """Places and original pieces of the masked pieces of padded texts.

    Args:
        texts: B masked texts, each behind a [CLS] when it is padded.
        width: L, tokens of the padded texts.

    Returns:
        ``masked`` [M] int64, positions in the flattened [B * L]; ``labels`` [M].
    """
    rows = [row * width + 1 + text.positions for row, text in enumerate(texts)]  # 1: [CLS]
    return {"masked": np.concatenate(rows), "labels": np.concatenate([text.labels for text in texts])}

"""Id sequences as the rectangular arrays that an encoder reads, without torch."""

from collections.abc import Iterable, Sequence

import numpy as np

from encore.data.tokens import Sequences
from encore.data.vocabulary import SpecialTokens
from encore.models.config import EncoderConfig

Special = EncoderConfig | SpecialTokens  # what knows the ids of [CLS], [SEP] and padding
PARTS = 4  # that texts of a batch come in, from short to long, each padded to its own longest


def in_parts(texts: np.ndarray) -> list[np.ndarray]:
    """Texts [n], ordered from short to long by the caller, as ``PARTS`` arrays of like size, or n where n is less."""
    return np.array_split(texts, min(PARTS, len(texts)))


def parts_by_length(mask: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """The parts of a batch of texts in any order: the rows of each, int64 [n], and tokens of its longest text.

    Args:
        mask: bool [B, L], true at real tokens.
    """
    lengths = mask.sum(axis=1)
    return [(rows, int(lengths[rows[-1]])) for rows in in_parts(np.argsort(lengths, kind="stable"))]


def wrap(sequence: np.ndarray, length: int, special: Special) -> np.ndarray:
    """[CLS] sequence [SEP], the sequence cut from the right so that all is at most ``length`` tokens; int64 [n]."""
    kept = sequence[: max(length - 2, 0)]
    wrapped = np.empty(len(kept) + 2, dtype=np.int64)
    wrapped[0], wrapped[-1] = special.cls, special.sep
    wrapped[1:-1] = kept
    return wrapped


def pad(sequences: Sequence[np.ndarray], length: int, special: Special) -> tuple[np.ndarray, np.ndarray]:
    """Wrap sequences without special tokens and pad them to the longest: ids int64 [B, L], mask bool [B, L]."""
    most = max(length - 2, 0)
    kept = [sequence[:most] for sequence in sequences]
    lengths = np.fromiter(map(len, kept), np.int64, len(kept))
    columns = np.arange(lengths.max(initial=-2) + 2)
    mask = columns < lengths[:, None] + 2
    ids = np.full(mask.shape, special.pad, dtype=np.int64)
    ids[:, :1], ids[np.arange(len(kept)), lengths + 1] = special.cls, special.sep
    if kept:
        ids[:, 1:-1][mask[:, 2:]] = np.concatenate(kept)
    return ids, mask


def read_inputs(
    sequences: Sequences, rows: Iterable[int], length: int, special: Special
) -> tuple[np.ndarray, np.ndarray]:
    """Texts of a store as a model reads them, padded to the longest: ids int64 [B, L], mask bool [B, L].

    Args:
        special: the model's shape, or where no model is known its special tokens.
    """
    return framed([sequences[row] for row in rows], length, special, sequences.name == "queries")


def framed(
    texts: Sequence[np.ndarray], length: int, special: Special, of_queries: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The same of any token sequences; passages, unless they are ``of_queries``."""
    if not isinstance(special, EncoderConfig) or special.plain:
        return pad(texts, length, special)
    return stack([frame(text, length, special, of_queries) for text in texts], special.pad)


def frame(sequence: np.ndarray, length: int, config: EncoderConfig, of_query: bool) -> np.ndarray:
    """[CLS] marker sequence [SEP] [MASK] ..., as the config has it (TCT-ColBERT's released code); int64 [n].

    The sequence is cut from the right so that all is at most ``length`` tokens; a query that is augmented has as many.
    """
    before = [config.cls, *(config.query_marker if of_query else config.passage_marker)]
    after = [config.sep] if config.separator else []
    kept = sequence[: max(length - len(before) - len(after), 0)].tolist()
    row = [*before, *kept, *after]
    filled = [config.mask] * (length - len(row)) if of_query and config.augment else []
    return np.array(row + filled, dtype=np.int64)


def stack(sequences: Sequence[np.ndarray], padding: int) -> tuple[np.ndarray, np.ndarray]:
    """Pad sequences as they are to the longest: ids int64 [B, L], mask bool [B, L]."""
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    ids = np.full(mask.shape, padding, dtype=np.int64)
    ids[mask] = np.concatenate(sequences) if len(sequences) else 0
    return ids, mask

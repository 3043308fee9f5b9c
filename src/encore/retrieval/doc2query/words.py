"""Texts as a T5's token ids and back: a WordPiece vocabulary of ours, or a T5 checkpoint's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from encore.data import vocabulary
from encore.errors import EncoreError

FILE = "tokenizer.json"


@dataclass(frozen=True)
class Doc2QueryTokenizer:
    """A tokenizer, and the ids that fill up a row and end a text."""

    tokenizer: Tokenizer
    pad: int
    end: int

    @classmethod
    def of_vocabulary(cls, folder: Path) -> Doc2QueryTokenizer:
        """A WordPiece vocabulary; [SEP] ends a text."""
        tokenizer = vocabulary.load_tokenizer(folder)
        special = vocabulary.special_tokens(tokenizer, folder)
        return cls(tokenizer, special.pad, special.sep)

    @classmethod
    def of_model(cls, folder: Path, pad: int, end: int) -> Doc2QueryTokenizer:
        """The vocabulary in a model's folder."""
        path = folder / FILE
        if not path.is_file():
            raise EncoreError(f"{path} is missing; take a T5 with a `tokenizer.json`")
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return cls(tokenizer, pad, end)

    @property
    def size(self) -> int:
        """Pieces of the vocabulary."""
        return int(self.tokenizer.get_vocab_size())

    def rows(self, texts: Sequence[str], length: int) -> list[list[int]]:
        """Each text's ids, cut to ``length`` with the end."""
        encoded = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [[*each.ids[: length - 1], self.end] for each in encoded]

    def texts(self, rows: Tensor) -> list[str]:
        """What rows of ids, [n, length], say up to their end."""
        found = []
        for row in rows.tolist():
            ids = row[: row.index(self.end)] if self.end in row else row
            found.append(self.tokenizer.decode([i for i in ids if i != self.pad], skip_special_tokens=True).strip())
        return found

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` to a folder."""
        self.tokenizer.save(str(folder / FILE))


def filled(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Rows of different lengths as one int64 tensor [n, longest], filled up with ``value``."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows], dtype=torch.int64)

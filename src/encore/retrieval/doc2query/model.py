"""The T5 that writes queries, new or from a checkpoint, and its tokenizer (docTTTTTquery; Nogueira and Lin 2019).

Hugging Face's implementation, and the only use of ``transformers`` here: importing it takes seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from encore.config import checkpoints
from encore.config.adapters import ADAPTER_FOLDER, MERGE
from encore.config.systems import T5
from encore.data import vocabulary
from encore.errors import EncoreError
from encore.training.randomness import number

FILE = "tokenizer.json"


@dataclass(frozen=True)
class Doc2QueryTokenizer:
    """A tokenizer, and the ids that fill up a row and end a text."""

    tokenizer: Tokenizer
    pad: int
    end: int

    @classmethod
    def of_vocabulary(cls, folder: Path) -> "Doc2QueryTokenizer":
        """A WordPiece vocabulary; [SEP] ends a text."""
        tokenizer = vocabulary.load_tokenizer(folder)
        special = vocabulary.special_tokens(tokenizer, folder)
        return cls(tokenizer, special.pad, special.sep)

    @classmethod
    def of_model(cls, folder: Path, pad: int, end: int) -> "Doc2QueryTokenizer":
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
        """The texts of rows of ids, [n, length], up to their end."""
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


def create(expansion: T5, tokenizer: Path | None, begun: Path | None = None) -> tuple[Any, Doc2QueryTokenizer]:
    """The model that training begins with, and its vocabulary.

    Args:
        tokenizer: folder of the WordPiece vocabulary of a model without a checkpoint.
        begun: folder of the checkpoint.
    """
    if begun is not None:
        if (begun / ADAPTER_FOLDER).is_dir():
            raise EncoreError(f"{begun} is an adapter (LoRA) of a T5; {MERGE}")
        return load_model(checkpoints.inside(begun))
    if tokenizer is None:
        raise EncoreError("a T5 without a checkpoint needs a vocabulary; give --tokenizer")
    from transformers import T5Config, T5ForConditionalGeneration

    words = Doc2QueryTokenizer.of_vocabulary(tokenizer)
    config = T5Config(
        vocab_size=words.size,
        d_model=expansion.hidden,
        d_kv=expansion.hidden // expansion.heads,
        d_ff=expansion.intermediate,
        num_layers=expansion.layers,
        num_heads=expansion.heads,
        dropout_rate=expansion.dropout,
        pad_token_id=words.pad,
        eos_token_id=words.end,
    )
    config.decoder_start_token_id = words.pad
    torch.manual_seed(number(expansion.seed, "weights"))
    return T5ForConditionalGeneration(config), words


def load_model(folder: Path) -> tuple[Any, Doc2QueryTokenizer]:
    """A T5 and its vocabulary from a folder."""
    from transformers import AutoConfig, T5ForConditionalGeneration
    from transformers.utils import logging

    logging.disable_progress_bar()
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    if config.model_type != "t5":
        raise EncoreError(f"{folder} holds a {config.model_type!r}, no T5; correct the expansion's `checkpoint`")
    # Otherwise a checkpoint that is stored in half precision would also be trained in it.
    model = T5ForConditionalGeneration.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    return model, Doc2QueryTokenizer.of_model(folder, config.pad_token_id, config.eos_token_id)


def save_model(folder: Path, model: Any, words: Doc2QueryTokenizer) -> None:
    """Write a folder that ``load_model`` and Hugging Face's ``from_pretrained`` open."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    words.save(folder)

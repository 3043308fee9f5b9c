"""The T5 that writes queries (docTTTTTquery; Nogueira and Lin 2019): a new small one, or a checkpoint's.

Hugging Face's implementation, and the only use of ``transformers`` here: importing it takes seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from encore.config import checkpoints
from encore.errors import EncoreError
from encore.retrieval.doc2query.words import Doc2QueryTokenizer
from encore.training.randomness import number


def create(
    expansion: dict[str, Any], seed: int, tokenizer: Path | None, begun: Path | None = None
) -> tuple[Any, Doc2QueryTokenizer]:
    """The model that training begins with, and its vocabulary.

    Args:
        expansion: fields of ``doc2query.T5``.
        tokenizer: folder of the WordPiece vocabulary of a model without a checkpoint.
        begun: folder of the checkpoint.

    Raises:
        EncoreError: there is neither, or the checkpoint is no T5.
    """
    if begun is not None:
        return load_model(checkpoints.inside(begun))
    if tokenizer is None:
        raise EncoreError("a T5 without a checkpoint needs a vocabulary; give --tokenizer")
    from transformers import T5Config, T5ForConditionalGeneration

    words = Doc2QueryTokenizer.of_vocabulary(tokenizer)
    config = T5Config(
        vocab_size=words.size,
        d_model=expansion["hidden"],
        d_kv=expansion["hidden"] // expansion["heads"],
        d_ff=expansion["intermediate"],
        num_layers=expansion["layers"],
        num_heads=expansion["heads"],
        dropout_rate=expansion["dropout"],
        pad_token_id=words.pad,
        eos_token_id=words.end,
    )
    config.decoder_start_token_id = words.pad
    torch.manual_seed(number(seed, "weights"))
    return T5ForConditionalGeneration(config), words


def load_model(folder: Path) -> tuple[Any, Doc2QueryTokenizer]:
    """A T5 and its vocabulary from a folder.

    Raises:
        EncoreError: there is no T5 in it.
    """
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

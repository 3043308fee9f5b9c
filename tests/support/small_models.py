"""A tokenizer and an encoder small enough for tests, drawn so that differences show."""

from pathlib import Path
from typing import Any

import torch

from encore.data import vocabulary
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder

TEXTS = ["A stack holds calls.", "Sorting a list takes time, and some memory!", "list", "Résumé: the end of time 42."]


def tokenizer_folder(folder: Path) -> Path:
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(vocabulary.train(TEXTS * 3, 96)), folder)
    return folder


def random_encoder(seed: int = 0, **changes: Any) -> Encoder:
    """Weights large enough that a mistake in any part changes the output visibly."""
    values: dict[str, Any] = {"vocabulary": 96, "layers": 2, "hidden": 16, "heads": 4, "intermediate": 24}
    encoder = Encoder(EncoderConfig(**values | {"max_length": 20, "dropout": 0.0} | changes))
    generator = torch.Generator().manual_seed(seed)
    for parameter in encoder.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3
    return encoder


def random_batch(shape: EncoderConfig, lengths: list[int], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """ids and mask of texts of these lengths, [CLS] and [SEP] included."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, shape.vocabulary, (len(lengths), max(lengths)), generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids[:, 0] = shape.cls
    ids[torch.arange(len(lengths)), torch.tensor(lengths) - 1] = shape.sep
    return ids.masked_fill(~mask, shape.pad), mask

"""Reading BERT checkpoints as Hugging Face keeps them, today's and those of 2018."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from encore.config import Backbone
from encore.errors import EncoreError
from encore.modeling.folder import OUR_NAME, USUAL_NAME, WEIGHTS, read_tensors

# The backbone's fields that a checkpoint decides, and what its configuration calls them.
FIELDS = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "intermediate": "intermediate_size",
    "max_length": "max_position_embeddings",
}
# Weights that we do not use: the pooler, the next-sentence head, and the decoder that repeats the word embeddings.
UNUSED = ("pooler.", "cls.seq_relationship.", "cls.predictions.decoder.", "embeddings.position_ids")
PER_PIECE = {"embeddings.word_embeddings.weight", "cls.predictions.bias"}


def check(folder: Path, backbone: Backbone) -> dict[str, Any]:
    """The checkpoint's configuration, known to be a BERT of the shape that the backbone says.

    Raises:
        EncoreError: it is missing, another kind of model, or of another shape.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise EncoreError(f"{path} is missing; name a Hugging Face checkpoint")
    config: dict[str, Any] = json.loads(path.read_text())
    kind, activation = config.get("model_type", "bert"), config.get("hidden_act", "gelu")
    if (kind, activation) != ("bert", "gelu") or config.get("position_embedding_type", "absolute") != "absolute":
        raise EncoreError(f"{path} describes a {kind} with {activation}; only BERT itself is supported, choose a BERT")
    for field, name in FIELDS.items():
        if config[name] != getattr(backbone, field):
            raise EncoreError(
                f"{path} has {name} {config[name]}, but the backbone says {field}: {getattr(backbone, field)}; "
                f"write {field}: {config[name]}"
            )
    return config


def weights(folder: Path, vocabulary: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """A checkpoint's tensors for the encoder and, by our names, for the vocabulary head (none without one).

    Some checkpoints have more embeddings than pieces, up to a round number; only those of the ``vocabulary`` are kept.
    """
    tensors = {_modern(name): tensor for name, tensor in _stored(folder).items()}
    used = {name: tensor.float() for name, tensor in tensors.items() if not name.startswith(UNUSED)}
    for name in PER_PIECE & used.keys():
        used[name] = used[name][:vocabulary]
    head = {name: tensor for name, tensor in used.items() if name.startswith(USUAL_NAME)}
    encoder = {name: tensor for name, tensor in used.items() if name not in head}
    return encoder, {OUR_NAME + name.removeprefix(USUAL_NAME): tensor for name, tensor in head.items()}


def _stored(folder: Path) -> dict[str, Tensor]:
    path = folder / "pytorch_model.bin"
    if (folder / WEIGHTS).is_file() or not path.is_file():
        return read_tensors(folder / WEIGHTS)
    try:
        tensors: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise EncoreError(f"{path} is damaged ({str(error).splitlines()[0]}); fetch the checkpoint again") from error
    return tensors


def _modern(name: str) -> str:
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")

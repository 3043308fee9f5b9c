"""Reading checkpoints of BERT's architecture as others keep them: today's, those of 2018, and SEED-Encoder's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from encore.config.checkpoints import WEIGHTS, is_seed_encoder
from encore.config.entries import Backbone
from encore.errors import EncoreError
from encore.models import seed_encoder
from encore.models.checkpoint import OUR_NAME, USUAL_NAME, read_tensors

# The backbone's fields that a checkpoint decides, and what its configuration calls them.
FIELDS = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "intermediate": "intermediate_size",
    "max_length": "max_position_embeddings",
}
WORDS = "embeddings.word_embeddings.weight"
ENCODER = ("embeddings.", "encoder.")  # how names of an encoder's own parameters begin
REPEATED = ("cls.predictions.decoder.", "embeddings.position_ids")  # stored elsewhere too, or not a weight
PER_PIECE = {WORDS, "cls.predictions.bias"}


class Weights(NamedTuple):
    """Tensors of a checkpoint: the encoder's, the vocabulary head's by our names, and what was not used by its own."""

    encoder: dict[str, Tensor]
    head: dict[str, Tensor]
    left_out: list[str]


def check_checkpoint(folder: Path, backbone: Backbone) -> dict[str, Any]:
    """The checkpoint's configuration in BERT's terms, known to be of the shape that the backbone says.

    Raises:
        EncoreError: it is missing, another kind of model, or of another shape.
    """
    path = folder / "config.json"
    stored_config = _configuration(path)
    config = seed_encoder.described(stored_config) if is_seed_encoder(stored_config) else stored_config
    kind, activation = config.get("model_type", "bert"), config.get("hidden_act", "gelu")
    if (kind, activation) != ("bert", "gelu") or config.get("position_embedding_type", "absolute") != "absolute":
        raise EncoreError(f"{path} describes a {kind} with {activation}; only BERT itself is supported, choose a BERT")
    for field, name in FIELDS.items():
        if config.get(name) != getattr(backbone, field):
            raise EncoreError(
                f"{path} has {name} {config.get(name)}, but the backbone says {field}: {getattr(backbone, field)}; "
                f"write {field}: {config.get(name)}"
            )
    return config


def read_weights(folder: Path, vocabulary: int) -> Weights:
    """A checkpoint's tensors, whatever the prefix of its encoder.

    Some checkpoints have more embeddings than pieces, up to a round number; only those of the ``vocabulary`` are kept.

    Raises:
        EncoreError: a damaged file, no encoder in it, or several.
    """
    stored, stored_config = _stored(folder), _configuration(folder / "config.json")
    if is_seed_encoder(stored_config):
        stored = seed_encoder.renamed(stored, stored_config.get("pad_token_id", seed_encoder.PADDING))
    prefix = _prefix(stored, folder)
    found = {_our_name(name, prefix): tensor for name, tensor in stored.items()}
    for name in PER_PIECE & found.keys():
        found[name] = found[name][:vocabulary]
    used = {name: tensor.float() for name, tensor in found.items() if not name.startswith(REPEATED)}
    encoder = {name: tensor for name, tensor in used.items() if name.startswith(ENCODER)}
    head = {name: tensor for name, tensor in used.items() if name.startswith(USUAL_NAME)}
    left_out = sorted(used.keys() - encoder.keys() - head.keys())
    return Weights(encoder, {OUR_NAME + name.removeprefix(USUAL_NAME): head[name] for name in head}, left_out)


def refuse_misfit(given: dict[str, Tensor], wanted: dict[str, Tensor], source: Path) -> None:
    """Refuse weights of a checkpoint that are not those of the encoder that its configuration describes.

    Raises:
        EncoreError: one is missing, unknown, or of another shape.
    """
    reasons = {
        "lacks": [name for name in wanted if name not in given],
        "has the unknown": [name for name in given if name not in wanted],
        "has another shape of": [
            f"{name} ({_shape(given[name])}, not {_shape(wanted[name])})"
            for name in wanted
            if name in given and given[name].shape != wanted[name].shape
        ],
    }
    for reason, names in reasons.items():
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise EncoreError(
                f"{source}: the checkpoint {reason} {names[0]}{more}, so it is not the model that its config.json "
                "describes; fetch it again, or name another"
            )


def _configuration(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise EncoreError(f"{path} is missing; name a Hugging Face checkpoint")
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise EncoreError(f"{path} is not a JSON object ({error}); fetch the checkpoint again") from error


def _stored(folder: Path) -> dict[str, Tensor]:
    """Tensors by name, of either kind of file; one that would run code is refused."""
    safe, path = (folder / name for name in WEIGHTS)
    if safe.is_file() or not path.is_file():
        return read_tensors(safe)
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
        return {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Tensor)}
    except Exception as error:  # a damaged pickle can raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EncoreError(f"{path} is damaged or holds no weights ({reason}); fetch the checkpoint again") from error


def _prefix(tensors: dict[str, Tensor], folder: Path) -> str:
    """The prefix of the names of the encoder's parameters, such as ``bert.``."""
    prefixes = [name.removesuffix(WORDS) for name in tensors if name == WORDS or name.endswith(f".{WORDS}")]
    if len(prefixes) != 1:
        found = f"several encoders ({', '.join(sorted(prefixes))})" if prefixes else f"no {WORDS}"
        raise EncoreError(f"{folder}: the checkpoint has {found}; name one with a single BERT")
    return prefixes[0]


def _our_name(name: str, prefix: str) -> str:
    """A parameter's name in our encoder or its vocabulary head, which is stored next to the encoder."""
    inner = name.removeprefix(prefix if name.startswith(prefix) else prefix.removesuffix("bert."))
    return inner.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _shape(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape))

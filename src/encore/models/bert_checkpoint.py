"""Reading checkpoints of BERT's architecture as others keep them: today's, those of 2018, and SEED-Encoder's."""

from pathlib import Path
from pickle import UnpicklingError
from typing import NamedTuple

import torch
from torch import Tensor

from encore.config.checkpoints import CONFIG, PADDING, WEIGHTS, is_seed_encoder
from encore.config.published import read_json
from encore.errors import EncoreError
from encore.models import seed_encoder
from encore.models.checkpoint import OUR_NAME, USUAL_NAME, read_tensors

WORDS = "embeddings.word_embeddings.weight"
ENCODER = ("embeddings.", "encoder.")  # how names of an encoder's own parameters begin
DECODER = "cls.predictions.decoder."  # of the head: the word embeddings once more, and the head's bias
REPEATED = (DECODER, "embeddings.position_ids")  # stored elsewhere too, or not a weight
PER_PIECE = {WORDS, "cls.predictions.bias"}


class Weights(NamedTuple):
    """Tensors of a checkpoint: the encoder's, the vocabulary head's by our names, and what was not used by its own."""

    encoder: dict[str, Tensor]
    head: dict[str, Tensor]
    left_out: list[str]


def read_weights(folder: Path, vocabulary: int) -> Weights:
    """A checkpoint's tensors, whatever the prefix of its encoder.

    Some checkpoints have more embeddings than pieces, up to a round number; only those of the ``vocabulary`` are kept.
    """
    stored, stored_config = _stored(folder), read_json(folder / CONFIG)
    if is_seed_encoder(stored_config):
        stored = seed_encoder.renamed(stored, stored_config.get("pad_token_id", seed_encoder.PADDING))
    prefix = _prefix(stored, folder)
    found = {_our_name(name, prefix): tensor for name, tensor in stored.items()}
    if DECODER + "bias" in found:
        found.setdefault("cls.predictions.bias", found[DECODER + "bias"])
    untied = found.get(DECODER + "weight")
    if untied is not None and not torch.equal(untied, found[WORDS]):
        name = next(name for name in stored if name.endswith(f"{DECODER}weight"))
        raise EncoreError(
            f"{folder}: the vocabulary head does not share the word embeddings (tie_word_embeddings: false), which is "
            f"not supported; name another checkpoint, or take {name} out of its weights"
        )
    for name in PER_PIECE & found.keys():
        if len(found[name]) > vocabulary + PADDING:
            raise EncoreError(
                f"{folder}: weights for {len(found[name]):,} pieces, and its tokenizer has {vocabulary:,}; they do not "
                "belong together, so put the checkpoint's own tokenizer there"
            )
        found[name] = found[name][:vocabulary]
    used = {name: tensor.float() for name, tensor in found.items() if not name.startswith(REPEATED)}
    encoder = {name: tensor for name, tensor in used.items() if name.startswith(ENCODER)}
    head = {name: tensor for name, tensor in used.items() if name.startswith(USUAL_NAME)}
    left_out = sorted(used.keys() - encoder.keys() - head.keys())
    return Weights(encoder, {OUR_NAME + name.removeprefix(USUAL_NAME): head[name] for name in head}, left_out)


def refuse_misfit(given: dict[str, Tensor], wanted: dict[str, Tensor], source: Path) -> None:
    """Refuse weights of a checkpoint that are not those of the encoder that its configuration describes."""
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


def _stored(folder: Path) -> dict[str, Tensor]:
    """Tensors by name, of any kind of file."""
    safe, index, path = (folder / name for name in WEIGHTS)
    if index.is_file() and not safe.is_file():
        parts = sorted(set(read_json(index).get("weight_map", {}).values()))
        return {name: tensor for part in parts for name, tensor in read_tensors(folder / part).items()}
    if safe.is_file() or not path.is_file():
        return read_tensors(safe)
    return read_pickle(path)


def read_pickle(path: Path) -> dict[str, Tensor]:
    """Tensors by name of a ``pytorch_model.bin``; one that would run code is refused."""
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
        found = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Tensor)}
        for name, tensor in found.items():
            if tensor.nbytes > tensor.untyped_storage().nbytes():  # one value may be told to stand for billions
                raise ValueError(f"{name[:80]} of {_shape(tensor)} values is larger than what is stored")
        return found
    except Exception as error:  # a damaged pickle can raise anything
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        reason = "it is not weights alone" if isinstance(error, UnpicklingError) else said  # PyTorch says how to run it
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

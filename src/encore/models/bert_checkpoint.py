"""Reading checkpoints of BERT's architecture as others keep them: today's, those of 2018, and SEED-Encoder's."""

import re
from pathlib import Path
from pickle import UnpicklingError
from typing import NamedTuple

import torch
from torch import Tensor

from encore.config.checkpoints import CONFIG, PADDING, WEIGHTS, is_seed_encoder
from encore.config.published import read_json
from encore.errors import EncoreError
from encore.models.adapters import merged
from encore.models.checkpoint import OUR_NAME, USUAL_NAME, read_tensors

WORDS = "embeddings.word_embeddings.weight"
ENCODER = ("embeddings.", "encoder.")  # how names of an encoder's own parameters begin
DECODER = "cls.predictions.decoder."  # of the head: the word embeddings once more, and the head's bias
REPEATED = (DECODER, "embeddings.position_ids")  # stored elsewhere too, or not a weight
PER_PIECE = {WORDS, "cls.predictions.bias"}
SEED_ENCODER = "sentence_encoder."  # in SEED-Encoder's parameters' names, after a prefix
SEED_HEAD = "lm_head."
SEED_PADDING = 1  # the id of its [PAD], where its configuration does not say it
SEED_PARTS = {
    "embed_tokens.": "embeddings.word_embeddings.",
    "embed_positions.": "embeddings.position_embeddings.",
    "emb_layer_norm.": "embeddings.LayerNorm.",
}
SEED_LAYER = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}
SEED_HEADS = {
    "lm_head.dense.": "cls.predictions.transform.dense.",
    "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
    "lm_head.bias": "cls.predictions.bias",
}


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
        stored = in_berts_terms(stored, stored_config.get("pad_token_id", SEED_PADDING))
    prefix = _prefix(stored, folder)
    found = {_our_name(name, prefix): tensor for name, tensor in stored.items()}
    found |= merged(found, folder)
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
    if integers := [name for name in used if not found[name].is_floating_point()]:
        raise EncoreError(f"{folder}: {integers[0]} is of integers; name the checkpoint before it was quantized")
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
        reason = "it is not only weights" if isinstance(error, UnpicklingError) else said  # PyTorch says how to run it
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


def in_berts_terms(tensors: dict[str, Tensor], padding: int) -> dict[str, Tensor]:
    """SEED-Encoder's tensors under the names of BERT's (Lu et al. 2021; microsoft/SEED-Encoder, model/SEED_Encoder).

    It is fairseq's encoder: the same layers under other names, except that there are no segments, positions begin after
    the padding's id, and LayerNorm's epsilon is PyTorch's. Segments are added that add nothing, its decoder is left
    out, and tensors of no part keep their own name.
    """
    found = {_seed_name(name): tensor for name, tensor in tensors.items()}
    positions = "embeddings.position_embeddings.weight"
    if positions in found:
        found[positions] = found[positions][padding + 1 :]
    words = found.get("embeddings.word_embeddings.weight")
    if words is not None:
        found["embeddings.token_type_embeddings.weight"] = torch.zeros(2, words.shape[1])
    return found


def _seed_name(name: str) -> str:
    inside, head = name.find(SEED_ENCODER), name.find(SEED_HEAD)
    if head >= 0:
        return _begun(name[head:], SEED_HEADS) or name
    if inside < 0:
        return name
    own = name[inside + len(SEED_ENCODER) :]
    layer = re.fullmatch(r"layers\.(\d+)\.(.+)\.(weight|bias)", own)
    if layer and layer[2] in SEED_LAYER:
        return f"encoder.layer.{layer[1]}.{SEED_LAYER[layer[2]]}.{layer[3]}"
    return _begun(own, SEED_PARTS) or name


def _begun(name: str, beginnings: dict[str, str]) -> str | None:
    """The name with another beginning, if it has a known one."""
    return next((new + name.removeprefix(old) for old, new in beginnings.items() if name.startswith(old)), None)

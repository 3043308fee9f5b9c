"""Model folders: Hugging Face's files, which ``AutoModel`` and ``SentenceTransformer`` load, written without them.

Besides those a folder holds ``encoder.json`` (the shape, and the lengths that the model was trained with) and, after
pre-training, ``heads.safetensors``: modules trained besides the encoder, BERT's vocabulary head under its usual name
``cls.predictions``. Of two towers the folder is that of passages, and holds that of queries as a complete folder in it.
A model that gives texts no single vector (``finetuning/scoring.py``) says so in ``encoder.json`` and keeps what it
scores with among the heads. Such a model, one that does not read plain texts (``EncoderConfig.plain``), and a bag of
words have no files for ``SentenceTransformer``, which could not express them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from encore.config.checkpoints import NO_HEAD
from encore.data import vocabulary
from encore.errors import EncoreError
from encore.models import sentence_transformer, towers
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.transformers_encoder import PREFIX, TransformersEncoder, model_config, open_published
from encore.storage import manifest
from encore.storage.files import read_object, replacing, write_json

LONGEST_LIST = 2**20  # bytes; of empty tensors the list can be the file, and takes half a minute where it is 12 MB long
WEIGHTS, HEADS, SHAPE = "model.safetensors", "heads.safetensors", "encoder.json"
QUERY = "query"  # the folder of the query tower
LINEAR = "linear."  # how the parameters of a dense layer begin
OUR_NAME, USUAL_NAME = "mlm.", "cls.predictions."  # how the parameters of the vocabulary head begin
BAG = {"model_type": "bow-mlp"}  # what ``AutoModel`` cannot load
VECTOR = MappingProxyType({"kind": "vector"})  # how a model scores unless its folder says otherwise


def save_model(
    encoder: Encoder,
    heads: nn.ModuleDict | Mapping[str, Tensor],
    folder: Path,
    tokenizer_folder: Path,
    length: int | None = None,
    query_length: int | None = None,
    scorer: Mapping[str, Any] = VECTOR,
) -> None:
    """Write a model folder; equal weights give equal bytes.

    Args:
        heads: modules trained besides the encoder, or their tensors by name.
        tokenizer_folder: the tokenizer of the encoder's vocabulary, which is copied.
        length: tokens of a passage that the model was trained with, special ones included, where
            ``SentenceTransformer`` cuts; without it, as many as the encoder has positions.
        query_length: the same of a query; ``SentenceTransformer`` knows one length only, so this is information.
        scorer: how the model scores: its ``kind`` and what belongs to that (``finetuning/scoring.py``).
    """
    _save_tower(encoder, folder, tokenizer_folder, length, query_length, scorer)
    if encoder.query_tower is not encoder:
        _save_tower(encoder.query_tower, folder / QUERY, tokenizer_folder, query_length or length, query_length, scorer)
    tensors = heads.state_dict() if isinstance(heads, nn.Module) else heads
    (folder / HEADS).unlink(missing_ok=True)
    if tensors:
        named = {_renamed(name, OUR_NAME, USUAL_NAME): tensor for name, tensor in tensors.items()}
        write_tensors(folder / HEADS, named)


def load_encoder(folder: Path) -> Encoder:
    """The encoder of a model folder, on the CPU, in training mode as new modules are."""
    config = load_config(folder)
    if config.architecture == "transformers":
        published = open_published(folder, config)
        fill_weights(published, published.state_dict() | _dense(folder, config), folder)
        return published
    tensors = read_tensors(folder / WEIGHTS) | _dense(folder, config)
    if config.encoders == "separate":
        of_queries = read_tensors(folder / QUERY / WEIGHTS) | _dense(folder / QUERY, config)
        tensors |= {towers.QUERY + name: tensor for name, tensor in of_queries.items()}
    with torch.device("meta"):  # no time and no chance spent on weights that are replaced
        encoder = towers.build_encoder(config)
    fill_weights(encoder, tensors, folder)
    return encoder


def load_config(folder: Path) -> EncoderConfig:
    """The shape of a model folder's encoder."""
    try:
        return EncoderConfig.from_json(_description(folder)["shape"])
    except (KeyError, TypeError) as error:
        raise EncoreError(f"{folder / SHAPE} is damaged ({error}); make the model again") from error


@dataclass(frozen=True)
class ModelUse:
    """The use of a model: tokens of a passage and of a query, special ones included, and its scorer."""

    length: int
    query_length: int
    scorer: Mapping[str, Any]


def load_use(folder: Path) -> ModelUse:
    """The use of a model folder; a model that was never fine-tuned reads as much as it has positions."""
    description, longest = _description(folder), load_config(folder).max_length
    return ModelUse(
        description.get("length") or longest,
        description.get("query_length") or longest,
        description.get("scorer", VECTOR),
    )


def _description(folder: Path) -> dict[str, Any]:
    path = folder / SHAPE
    if not path.is_file():
        raise EncoreError(f"{path} is missing: {folder} is not a model folder of ours; make the model again")
    return read_object(path, "make the model again")


def without_head(model: Path) -> dict[str, float]:
    """The entry in the manifests of a model without a trained vocabulary head, and of models made from it."""
    made = (model / manifest.MANIFEST).is_file()
    return {NO_HEAD: 1} if made and NO_HEAD in manifest.read_results(str(model)) else {}


def load_heads(folder: Path) -> dict[str, Tensor]:
    """Tensors of modules that were trained besides the encoder, by our names (``mlm.bias``); none without a file."""
    path = folder / HEADS
    tensors = read_tensors(path) if path.is_file() else {}
    return {_renamed(name, USUAL_NAME, OUR_NAME): tensor for name, tensor in tensors.items()}


def restore_heads(heads: nn.ModuleDict, folder: Path) -> list[str]:
    """Set the modules of ``heads`` that ``folder`` holds with the same parameters; returns the names of these.

    A module of another kind under the same name gives nothing, though some of its parameters might fit. The vocabulary
    head alone is restored in part, since a start may give its bias only.
    """
    saved, own = load_heads(folder), heads.state_dict()
    fits = {name for name in own if name in saved and saved[name].shape == own[name].shape}
    foreign = {owner(name) for name in {*own, *saved} - fits} - {owner(OUR_NAME)}
    found = {name: saved[name] for name in fits if owner(name) not in foreign}
    heads.load_state_dict(own | found)
    return sorted(found)


def owner(name: str) -> str:
    """The module besides the encoder that a parameter belongs to."""
    return name.partition(".")[0]


def fill_weights(encoder: Encoder, tensors: dict[str, Tensor], source: Path) -> None:
    """Give an encoder its weights."""
    try:
        encoder.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split()[:40])
        raise EncoreError(
            f"the weights in {source} do not fit its shape ({reason} ...); make the model again"
        ) from error


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write safetensors with the metadata that Hugging Face asks for."""
    packed = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        safetensors.torch.save_file(packed, temporary, metadata={"format": "pt"})


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors by name."""
    if not path.is_file():
        raise EncoreError(f"{path} is missing; make the model again")
    try:
        with path.open("rb") as file:
            listed = int.from_bytes(file.read(8), "little")  # the bytes of the list, of some 100 for a tensor
        if LONGEST_LIST < listed < path.stat().st_size:
            raise EncoreError(f"{path} lists its tensors in {listed:,} bytes, which no model needs; take another file")
        tensors: dict[str, Tensor] = safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise EncoreError(f"{path} is damaged ({error}); make the model again") from error
    return tensors


def _save_tower(
    encoder: Encoder,
    folder: Path,
    tokenizer_folder: Path,
    length: int | None,
    query_length: int | None,
    scorer: Mapping[str, Any],
) -> None:
    config = encoder.config
    length = length or config.max_length
    tensors = towers.passage_weights(encoder)
    for layer in sentence_transformer.dense_layers(config):
        linear = {LINEAR + name: tensors.pop(layer.prefix + name) for name in ("weight", "bias")}
        write_tensors(folder / layer.folder / WEIGHTS, linear)
    write_tensors(folder / WEIGHTS, {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()})
    vocabulary.copy_tokenizer(tokenizer_folder, folder)
    write_json(folder / "config.json", _hugging_face(encoder))
    description = {"shape": config.to_json(), "length": length, "query_length": query_length}
    write_json(folder / SHAPE, description | ({} if scorer == VECTOR else {"scorer": dict(scorer)}))
    if scorer == VECTOR and config.plain and config.architecture != "bow-mlp":
        sentence_transformer.write_sentence_transformer(folder, config, length)


def _dense(folder: Path, config: EncoderConfig) -> dict[str, Tensor]:
    """The tensors of a tower's dense layers, by our names."""
    return {
        _renamed(name, LINEAR, layer.prefix): tensor
        for layer in sentence_transformer.dense_layers(config)
        for name, tensor in read_tensors(folder / layer.folder / WEIGHTS).items()
    }


def _hugging_face(encoder: Encoder) -> dict[str, Any]:
    """The content of ``config.json`` for a tower."""
    if isinstance(encoder, TransformersEncoder):
        return model_config(encoder)
    return bert_config(encoder.config) if encoder.config.architecture == "bert" else BAG


def _renamed(name: str, old: str, new: str) -> str:
    return new + name.removeprefix(old) if name.startswith(old) else name


def bert_config(config: EncoderConfig) -> dict[str, Any]:
    """Hugging Face's ``BertConfig`` of a shape, as ``config.json`` holds it."""
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "dtype": "float32",
        "vocab_size": config.vocabulary,
        "num_hidden_layers": config.layers,
        "hidden_size": config.hidden,
        "num_attention_heads": config.heads,
        "intermediate_size": config.intermediate,
        "hidden_act": "gelu",
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "max_position_embeddings": config.max_length,
        "type_vocab_size": config.segments,
        "layer_norm_eps": config.epsilon,
        "initializer_range": 0.02,
        "pad_token_id": config.pad,
        "position_embedding_type": "absolute",
    }

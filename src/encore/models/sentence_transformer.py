"""The files by which ``SentenceTransformer`` makes the same vectors from a model folder as we do.

Its modules in a row: the transformer; for ``content`` pooling word weights, 0 for special tokens; the pooling; our
projector and head as dense layers; and, if vectors are compared by cosine, their normalisation. The module names are
those of its versions 2 to 5, which later ones understand.
"""

from pathlib import Path
from typing import Any, NamedTuple

from encore.models.config import EncoderConfig
from encore.storage.files import write_json

WEIGHTS, POOLING, NORMALIZE = "1_WordWeights", "1_Pooling", "3_Normalize"
IDENTITY, GELU = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.GELU"


class Dense(NamedTuple):
    """A linear layer behind the pooling: its folder, and how its parameters begin in our encoder."""

    folder: str
    prefix: str
    outer: int
    activation: str = IDENTITY


def dense_layers(config: EncoderConfig) -> list[Dense]:
    """The layers of a config behind its pooling, in order; none of a bag of words, which it cannot express."""
    if config.architecture == "bow-mlp":
        return []
    projector = {
        "none": [],
        "linear": [Dense("2_Projector", "projector.", config.hidden)],
        "nonlinear": [
            Dense("2_ProjectorInner", "projector.0.", config.hidden, GELU),
            Dense("2_Projector", "projector.2.", config.hidden),
        ],
    }[config.projector]
    return [*projector, *([Dense("2_Dense", "head.", config.projection_dim)] if config.projection_dim else [])]


def write_sentence_transformer(folder: Path, config: EncoderConfig, length: int) -> None:
    """Write all but weights; texts are cut at ``length`` tokens, special ones included."""
    modules = [("", "Transformer"), (POOLING, "Pooling")]
    without_pooler = {"add_pooling_layer": False}  # BERT's own, which has no weights here: ours is a separate module
    use: dict[str, Any] = {"max_seq_length": length, "do_lower_case": False}
    use |= {"model_args": without_pooler} if config.architecture == "bert" else {}
    write_json(folder / "sentence_bert_config.json", use)
    write_json(folder / POOLING / "config.json", _pooling(config))
    if config.pooling == "content":
        modules.insert(1, (WEIGHTS, "WordWeights"))
        write_json(folder / WEIGHTS / "config.json", _content_weights(folder, config))
    for layer in dense_layers(config):
        modules.append((layer.folder, "Dense"))
        # Only a head, the last layer, changes the size: so what a layer is given has always the hidden size.
        shape = {"in_features": config.hidden, "out_features": layer.outer, "bias": True}
        write_json(folder / layer.folder / "config.json", {**shape, "activation_function": layer.activation})
    if config.similarity == "cosine":
        modules.append((NORMALIZE, "Normalize"))
        write_json(folder / NORMALIZE / "config.json", {})
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(modules)
    ]
    write_json(folder / "modules.json", listed)
    write_json(
        folder / "config_sentence_transformers.json",
        {"model_type": "SentenceTransformer", "prompts": {}, "similarity_fn_name": config.similarity},
    )


def _pooling(config: EncoderConfig) -> dict[str, Any]:
    return {
        "word_embedding_dimension": config.hidden,
        "pooling_mode_cls_token": config.pooling == "cls",
        "pooling_mode_mean_tokens": config.pooling != "cls",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }


def _content_weights(folder: Path, config: EncoderConfig) -> dict[str, Any]:
    """Weight 0 for [CLS], [SEP] and padding, 1 for all other pieces; those of ``vocab.txt``, by id."""
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    special = {pieces[number]: 0.0 for number in (config.cls, config.sep, config.pad)}
    return {"vocab": pieces, "word_weights": special, "unknown_word_weight": 1.0}

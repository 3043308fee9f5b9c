"""What a published checkpoint says of itself, in the fields of a backbone.

``config.json`` says its shape. One of sentence-transformers also says how a text becomes a vector: ``modules.json``
names the parts behind the encoder, each in a folder of its own (pooling, a dense layer, normalisation);
``sentence_bert_config.json`` has the length; ``config_sentence_transformers.json`` prompts and similarity. What a
backbone leaves open is taken from there; what it contradicts, and what Encore cannot express, is refused.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from encore.config import checkpoints
from encore.config.adapters import ADAPTER, MERGE
from encore.config.checkpoints import (
    CONFIG,
    FETCH_AGAIN,
    MODULES,
    OTHER_VOCABULARY,
    PADDING,
    PROMPTS,
    TOKENIZER,
    TOKENIZER_SETTINGS,
    USE,
    USES,
    VOCABULARY,
    is_seed_encoder,
)
from encore.config.entries import Backbone
from encore.config.validation import checked
from encore.errors import EncoreError
from encore.storage.files import read_object

# The fields of a shape, and what configurations call them.
SHAPE = {
    "layers": ("num_hidden_layers", "n_layers"),
    "hidden": ("hidden_size", "dim"),
    "heads": ("num_attention_heads", "n_heads"),
    "intermediate": ("intermediate_size", "hidden_dim"),
    "max_length": ("max_position_embeddings",),
}
DROPOUT = ("hidden_dropout_prob", "dropout", "mlp_dropout")
WORDPIECE = "WordPiece"
LENGTHS = ("length", "query_length")
AFTER_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet", "roberta-prelayernorm", "xlm-roberta-xl")
# How classes of models end that score pairs or label texts, and the file that a ColBERT has besides.
TASKS = (
    "SequenceClassification",
    "QuestionAnswering",
    "TokenClassification",
    "MultipleChoice",
    "NextSentencePrediction",
)
WITHOUT_VECTORS = tuple(f"For{task}" for task in TASKS)
COLBERTS = "artifact.metadata"
# Fields of sentence-transformers that change how a text is read, and those that change nothing in fp32.
CHANGES_TEXTS = (
    *("tokenizer_args", "processor_kwargs", "config_args", "config_kwargs", "processing_kwargs"),
    *("query_length", "document_length", "query_expansion"),
)
HARMLESS = ("add_pooling_layer", "torch_dtype", "dtype", "attn_implementation")
LFS = b"version https://git-lfs"
FLOATS = ("F16", "BF16", "F32", "F64")  # safetensors' names
LONGEST_LIST = 2**26  # bytes of a list of tensors
POOLING = {"cls": "cls", "mean": "mean"}  # sentence-transformers' names and ours
SIMILARITY = {"cosine": "cosine", "dot": "dot", "dot_product": "dot"}
# Which file says a similarity that none names: sentence-transformers then compares by cosine.
UNNAMED = f"{MODULES} (no similarity is named, and sentence-transformers' default is cosine)"
# SEED-Encoder's fields in BERT's terms (microsoft/SEED-Encoder), with the values that its configuration leaves out.
SEED_FIELDS: dict[str, tuple[str, Any]] = {
    "num_hidden_layers": ("encoder_layers", 12),
    "hidden_size": ("encoder_embed_dim", 768),
    "num_attention_heads": ("encoder_attention_heads", 12),
    "intermediate_size": ("encoder_ffn_embed_dim", 3072),
    "max_position_embeddings": ("max_positions", 512),
    "vocab_size": ("vocab_size", 32769),
    "hidden_act": ("activation_fn", "gelu"),
}


class Said(NamedTuple):
    """Values by field of a backbone, and the file that says each."""

    values: dict[str, Any]
    files: dict[str, str]


def said_by(folder: Path) -> Said:
    """What the files of a checkpoint say."""
    found = Said({}, {})

    def add(file: str, say: Callable[[Path], Mapping[str, Any]]) -> None:
        with _of_usual_kinds(folder / file):
            values = say(folder / file)
        found.values.update(values)
        found.files.update(dict.fromkeys(values, file))

    if folder.name.endswith("_Transformer") and (folder.parent / MODULES).is_file():
        raise EncoreError(f"{folder} is a part of {folder.parent}; name that, and {checkpoints.MOVE_UP}")
    if (folder / ADAPTER).is_file():
        raise EncoreError(f"{folder} has {ADAPTER}, an adapter (LoRA), and {CONFIG} next to it; {MERGE}")
    _refuse_weights(folder)
    with _of_usual_kinds(folder / TOKENIZER_SETTINGS[0]):
        _refuse_cut_on_the_left(folder)
    with _of_usual_kinds(folder / TOKENIZER):
        vocabulary = _kind_of_vocabulary(folder)
    add(CONFIG, lambda path: _shape(path.parent, vocabulary))
    if (folder / MODULES).is_file():
        modules = _modules(folder)
        add(modules.get("Pooling", "1_Pooling") + "/config.json", _pooling)
        if "Dense" in modules:
            add(modules["Dense"] + "/config.json", _dense)
        add(PROMPTS, _prompts)
        if "Normalize" in modules:
            add(MODULES, lambda _: {"similarity": "cosine"})
        if "similarity" not in found.values:
            found.values["similarity"], found.files["similarity"] = "cosine", UNNAMED
        add(_use(folder), lambda path: _length(path, found.values.get("max_length")))
    return found


@contextmanager
def _of_usual_kinds(path: Path) -> Iterator[None]:
    """Say in one line that a file of a checkpoint has a number where Hugging Face's have a text, or the like."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise EncoreError(f"{path} has a value of an unusual kind ({error}); {FETCH_AGAIN}, or correct it") from error


def completed(backbone: Backbone) -> Backbone:
    """A backbone with what the user's folder that it starts from says, where its entry leaves it open."""
    folder = Path(backbone.checkpoint or "")
    if backbone.checkpoint is None or not (folder / CONFIG).is_file():
        return backbone
    said = said_by(folder)
    written = {name: getattr(backbone, name) for name in backbone.model_fields_set}
    _refuse_other(folder, said, {**said.values, **written})
    values = backbone.model_dump(exclude_unset=True) | {"source": backbone.source}
    return checked(Backbone, {**said.values, **values}, str(folder))


def takes_default_similarity(backbone: Backbone) -> bool:
    """Whether a backbone compares by cosine because neither its entry nor the user's folder names a similarity."""
    folder = Path(backbone.checkpoint or "")
    if backbone.checkpoint is None or "similarity" in backbone.model_fields_set or not (folder / CONFIG).is_file():
        return False
    return said_by(folder).files.get("similarity") == UNNAMED


def check_use(backbone: Backbone, folder: Path) -> Said:
    """What a checkpoint says, known to be what a whole backbone says."""
    said = said_by(folder)
    if lacking := [theirs[0] for ours, theirs in SHAPE.items() if ours not in said.values]:
        raise EncoreError(f"{folder / CONFIG} does not say {lacking[0]}; name a Hugging Face checkpoint of an encoder")
    _refuse_other(folder, said, {name: getattr(backbone, name) for name in said.values})
    return said


def bert_config(folder: Path) -> dict[str, Any]:
    """The ``config.json`` of a checkpoint, SEED-Encoder's in BERT's terms."""
    config = read_json(folder / CONFIG)
    if not is_seed_encoder(config):
        return config
    own = {name: config.get(field, value) for name, (field, value) in SEED_FIELDS.items()}
    return own | {"model_type": "bert", "layer_norm_eps": 1e-5, "type_vocab_size": 2}


def read_json(path: Path) -> dict[str, Any]:
    """A file of a checkpoint."""
    if not path.is_file():
        raise EncoreError(f"{path} is missing; name a Hugging Face checkpoint")
    return read_object(path, FETCH_AGAIN)


def use_of(folder: Path) -> dict[str, Any]:
    """What sentence-transformers' file on lengths and case says."""
    return read_optional(folder / _use(folder))


def _use(folder: Path) -> str:
    """The first file on lengths and case that says anything."""
    return next((name for name in USES if read_optional(folder / name)), USE)


def read_optional(path: Path) -> dict[str, Any]:
    """A file of a checkpoint, empty where it has none."""
    return read_json(path) if path.is_file() else {}


def _kind_of_vocabulary(folder: Path) -> str:
    """WordPiece (BERT's), Unigram, BPE or another; refuses a vocabulary with far fewer pieces than the weights have."""
    path, size = folder / TOKENIZER, bert_config(folder).get("vocab_size", 0)
    said = read_optional(path)
    vocabulary = said.get("model", {}).get("vocab", ())
    pieces = {each if isinstance(each, str) else each[0] for each in vocabulary}
    pieces |= {each["content"] for each in said.get("added_tokens") or ()}
    if pieces and size > len(pieces) + PADDING:
        raise EncoreError(
            f"{folder}: weights for {size:,} pieces, and {path.name} has {len(pieces):,}; they do not belong together, "
            "so put the checkpoint's own tokenizer there"
        )
    usual, other = (any((folder / each).is_file() for each in names) for names in (VOCABULARY, OTHER_VOCABULARY))
    return str(said.get("model", {}).get("type") or ("another" if other and not usual else WORDPIECE))


def _refuse_other(folder: Path, said: Said, own: Mapping[str, Any]) -> None:
    """Refuse values that are not the checkpoint's.

    A user may read fewer tokens, or a BERT by Transformers, and name the similarity where the checkpoint does not.
    """

    def differs(name: str) -> bool:
        if name in LENGTHS:
            return own[name] is None or own[name] > (said.values.get("max_length") or own[name])
        if said.files[name] == UNNAMED:
            return False
        slower = name == "architecture" and own[name] == "transformers"
        return bool(own[name] != said.values[name]) and not slower

    if other := [name for name in said.values if differs(name)]:
        first = other[0]
        raise EncoreError(
            f"{folder / said.files[first]} says {first} {said.values[first]!r}, but the backbone says {own[first]!r}; "
            f"write {', '.join(f'{name}: {json.dumps(said.values[name])}' for name in other)}"
        )


def _shape(folder: Path, vocabulary: str) -> dict[str, Any]:
    config = bert_config(folder)
    kind = config.get("model_type", "bert")
    runs_by_ours = (kind, config.get("hidden_act", "gelu"), vocabulary) == ("bert", "gelu", WORDPIECE)
    _refuse_kind(folder, config, kind, runs_by_ours)
    found = {ours: next((config[each] for each in theirs if each in config), None) for ours, theirs in SHAPE.items()}
    if kind in AFTER_PADDING and found["max_length"]:
        found["max_length"] -= config.get("pad_token_id", 1) + 1  # positions are counted from there on
    if config and not runs_by_ours:
        rate = next((config[each] for each in DROPOUT if each in config), 0.0)
        found = {"architecture": "transformers", **found, "dropout": rate}
    return {name: value for name, value in found.items() if value is not None}


def _refuse_kind(folder: Path, config: Mapping[str, Any], kind: str, runs_by_ours: bool) -> None:
    """Refuse what ``config.json`` says to be no encoder of ours; types of models are looked up in the job."""
    names = [str(each) for each in config.get("architectures") or ()]
    decodes = any("CausalLM" in name or "LMHead" in name for name in names)
    positions = str(config.get("position_embedding_type", "absolute"))
    headed = any(name.endswith(("ForMaskedLM", "ForPreTraining")) for name in names)
    untied = runs_by_ours and headed and not config.get("tie_word_embeddings", True)
    heads = [] if (folder / MODULES).is_file() else [name for name in names if name.endswith(WITHOUT_VECTORS)]
    many = (folder / COLBERTS).is_file() or any("colbert" in name.lower() for name in names)
    reasons = {
        f"a model that scores or labels texts and gives them no vector ({', '.join(heads)})": heads,
        "a model with a vector for each token (ColBERT)": many,
        "weights of fewer bits (quantization_config)": config.get("quantization_config"),
        "a decoder, whose tokens do not see what follows": config.get("is_decoder") or decodes,
        "an encoder with a decoder": config.get("is_encoder_decoder"),
        "one of two encoders, of queries or of passages alone": kind == "dpr" or (folder / "query").is_dir(),
        f"positions of type {positions}": "relative" in positions or (kind == "bert" and positions != "absolute"),
        "a vocabulary head that does not share the word embeddings (tie_word_embeddings: false)": untied,
    }
    if reason := next((reason for reason, holds in reasons.items() if holds), None):
        raise EncoreError(
            f"{folder / CONFIG} describes {reason}, which is not supported; name another checkpoint "
            "(docs/checkpoints.md, What can be read)"
        )


def _refuse_weights(folder: Path) -> None:
    """Refuse pointers to files, which a clone without Git LFS has in their place, and weights that are no floats."""
    for name in checkpoints.names_in(folder):
        with (folder / name).open("rb") as file:
            if file.read(len(LFS)) == LFS:
                raise EncoreError(f"{folder / name} is a pointer of Git LFS and not the file; run `git lfs pull` there")
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file, suppress(ValueError, RecursionError, AttributeError, TypeError):
            listed = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), LONGEST_LIST)))
            kinds = {name: str(each.get("dtype", "F32")) for name, each in listed.items() if name.endswith("weight")}
            if other := next((name for name, kind in kinds.items() if kind not in FLOATS), ""):
                raise EncoreError(
                    f"{path}: {other} is of type {kinds[other]}, and weights are read as floats of 16 bits or more; "
                    "name the checkpoint before it was quantized"
                )


def _modules(folder: Path) -> dict[str, str]:
    """The folder of each module behind the encoder, by its type."""
    path = folder / MODULES
    try:
        listed = [(str(each["type"]).rpartition(".")[2], str(each["path"])) for each in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise EncoreError(f"{path} is not a list of modules ({error}); fetch the checkpoint again") from error
    if listed and listed[0] != ("Transformer", "") and listed[0][0] == "Transformer":
        raise EncoreError(f"{path} names {listed[0][1]} as the encoder's folder; {checkpoints.MOVE_UP}")
    kinds = [kind for kind, _ in listed]
    known = ["Transformer", "Pooling", *(kind for kind in ("Dense", "Normalize") if kind in kinds)]
    if kinds != known:
        raise EncoreError(
            f"{path} lists {', '.join(kinds)}; supported are Transformer, Pooling, at most one Dense, and Normalize, "
            "in this order"
        )
    return dict(listed[1:])


def _pooling(path: Path) -> dict[str, str]:
    said = read_json(path)
    legacy = [
        name.removeprefix("pooling_mode_") for name, on in said.items() if name.startswith("pooling_mode_") and on
    ]
    modes = said.get("pooling_mode", [name.removesuffix("_token").removesuffix("_tokens") for name in legacy])
    modes = [modes] if isinstance(modes, str) else list(modes)
    excludes = (
        not said.get("include_prompt", True)
        and {"query_marker", "passage_marker"} & _prompts(path.parents[1] / PROMPTS).keys()
    )
    if len(modes) != 1 or modes[0] not in POOLING or excludes:
        without = " without the prompt" if excludes else ""
        raise EncoreError(f"{path} pools {' and '.join(modes)}{without}; supported are cls and mean, of all tokens")
    return {"pooling": POOLING[modes[0]]}


def _dense(path: Path) -> dict[str, int]:
    said = read_json(path)
    if not str(said.get("activation_function", "")).endswith("Identity"):
        raise EncoreError(f"{path} is a dense layer with {said.get('activation_function')}; only Identity is supported")
    return {"projection_dim": int(said["out_features"])}


def _prompts(path: Path) -> dict[str, str]:
    """The prompts of queries and passages, of which an empty one is none, and the similarity, where they are said."""
    said = read_optional(path)
    prompts, usual = said.get("prompts") or {}, said.get("default_prompt_name")
    names = {"query_marker": ("query",), "passage_marker": ("document", "passage", "corpus")}
    found = {
        ours: next((prompts[each] for each in (*theirs, usual) if each in prompts), "")
        for ours, theirs in names.items()
    }
    similarity = said.get("similarity_fn_name")
    if said.get("truncate_dim"):
        raise EncoreError(f"{path} keeps some dimensions alone (truncate_dim), which is not supported")
    if similarity is not None and similarity not in SIMILARITY:
        raise EncoreError(f"{path} compares by {similarity}; supported are {' and '.join(SIMILARITY)}")
    found |= {"similarity": SIMILARITY[similarity]} if similarity else {}
    return {name: value for name, value in found.items() if value}


def _refuse_cut_on_the_left(folder: Path) -> None:
    cut = (read_optional(folder / TOKENIZER).get("truncation") or {}).get("direction", "right")
    if read_optional(folder / TOKENIZER_SETTINGS[0]).get("truncation_side", cut).lower() != "right":
        raise EncoreError(
            f"{folder}: the tokenizer keeps the end of a long text (truncation_side), which is not supported"
        )


def _length(path: Path, longest: int | None) -> dict[str, int]:
    said, tokenizer = read_optional(path), read_optional(path.with_name(TOKENIZER_SETTINGS[0]))
    given = {name for name in ("model_args", "model_kwargs") for name in said.get(name) or () if name not in HARMLESS}
    if other := [name for name in CHANGES_TEXTS if said.get(name)] + sorted(given):
        raise EncoreError(f"{path} sets {other[0]}, which is not supported; name another checkpoint, or take it out")
    usual = tokenizer.get("model_max_length", tokenizer.get("max_len"))
    length = said.get("max_seq_length") or usual or longest
    length = min(length or 0, longest or 512)
    return dict.fromkeys(LENGTHS, length) if length else {}

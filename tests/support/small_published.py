"""Published encoders of several kinds, small and random, as Transformers and sentence-transformers keep them."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.support.small_models import TEXTS, tokenizer_folder

SPECIAL = {"cls_token": "<s>", "pad_token": "<pad>", "sep_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}
LETTERS = "abcdefghijklmnopqrstuvwxyzASR.,!:é0123456789"
SHAPE = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
# The type of a model, its further settings, and its kind of vocabulary.
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "roberta": ({**SHAPE, "max_position_embeddings": 26}, "bytes"),
    "xlm-roberta": ({**SHAPE, "max_position_embeddings": 26}, "unigram"),
    "mpnet": ({**SHAPE, "max_position_embeddings": 26}, "bytes"),
    "distilbert": ({"dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 24}, "bert"),
    "modernbert": ({**SHAPE, "max_position_embeddings": 24}, "bytes"),
    "electra": ({**SHAPE, "embedding_size": 4, "max_position_embeddings": 24}, "bert"),
    "bert": ({**SHAPE, "hidden_act": "gelu_new", "max_position_embeddings": 24}, "bert"),
}


def published(
    place: Path, kind: str = "roberta", shards: bool = False, words: Sequence[str] = (), **others: Any
) -> torch.nn.Module:
    """A folder with a model of a kind and its tokenizer; returns the model.

    Args:
        words: of a multilingual vocabulary, whatever the kind's is.
        others: further settings.
    """
    from transformers import AutoConfig, AutoModel

    settings, vocabulary = KINDS[kind]
    settings, vocabulary = {**settings, **others}, "unigram" if words else vocabulary
    place.mkdir(parents=True)
    makers = {"bytes": _bytes, "unigram": partial(_unigram, words=words), "bert": _bert}
    tokenizer = makers[vocabulary](place)
    names = SPECIAL if vocabulary != "bert" else {}
    ids = {
        f"{role}_id": tokenizer.token_to_id(name) for role, name in names.items() if role[:3] in ("pad", "cls", "sep")
    }
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, vocab_size=tokenizer.get_vocab_size(), **settings)
    for name, value in ids.items():
        setattr(config, name, value)
    model = AutoModel.from_config(config).eval()
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape) * 0.3
    model.save_pretrained(place, **({"max_shard_size": "2KB"} if shards else {}))
    return model


def of_sentence_transformers(
    place: Path, pooling: str = "mean", dense: int = 0, normalize: bool = True, length: int = 12, **said: Any
) -> None:
    """Make a checkpoint one of sentence-transformers, as its versions 2 to 5 write it."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    modules += [("2_Dense", "Dense")] if dense else []
    modules += [("3_Normalize", "Normalize")] if normalize else []
    listed = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (path, kind) in enumerate(modules)
    ]
    _write(place / "modules.json", listed)
    _write(place / "sentence_bert_config.json", {"max_seq_length": length, "do_lower_case": False})
    modes = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "mean_sqrt_len_tokens": "sqrt"}
    _write(place / "1_Pooling/config.json", {f"pooling_mode_{name}": mode == pooling for name, mode in modes.items()})
    _write(place / "config_sentence_transformers.json", said)
    if dense:
        kind = "torch.nn.modules.linear.Identity"
        _write(
            place / "2_Dense/config.json",
            {"in_features": 8, "out_features": dense, "bias": True, "activation_function": kind},
        )
        linear = torch.nn.Linear(8, dense)
        torch.save(
            {f"linear.{name}": value for name, value in linear.state_dict().items()},
            place / "2_Dense/pytorch_model.bin",
        )


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def _bert(place: Path) -> Tokenizer:
    tokenizer_folder(place)
    return Tokenizer.from_file(str(place / "tokenizer.json"))


def _bytes(place: Path) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=list(SPECIAL.values()), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    return _framed(place, tokenizer)


def _unigram(place: Path, words: Sequence[str]) -> Tokenizer:
    """One of more pieces than 16 bits can number, the last of which are words of the texts."""
    last = dict.fromkeys(
        ["▁stack", "▁list", "▁time", "▁a", "▁", *LETTERS, *(f"▁{normalize('NFKC', word)}" for word in words)]
    )
    pieces = [*SPECIAL.values(), *(f"▁never{number}" for number in range(70_000)), *last]
    tokenizer = Tokenizer(models.Unigram([(piece, -10.0) for piece in pieces], unk_id=3, byte_fallback=False))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    return _framed(place, tokenizer)


def _framed(place: Path, tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    ends = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    tokenizer.save(str(place / "tokenizer.json"))
    _write(place / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **SPECIAL})
    return tokenizer

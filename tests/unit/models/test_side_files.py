"""Whatever a published encoder's side files say, its vectors are sentence-transformers', or it is refused.

Of random encoders of several kinds, by all texts that these files may read in another way: with capitals, accents,
ideographs, blanks in front, and longer than what is read.
"""

import json
import shutil
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
import torch

from encore.config import checkpoints
from encore.config.entries import Backbone
from encore.config.published import completed
from encore.data import checkpoint_vocabulary
from encore.data.vocabulary import load_tokenizer
from encore.errors import EncoreError
from encore.models.inputs import pad
from encore.models.start import start_model
from tests.support.small_published import of_sentence_transformers, published

TEXTS = [
    "List a Stack, STACK",
    "café Été in time",
    "a中文list",
    "  open the stack",
    "sort a list. Sort a list! sort the list of a file, and the time of a stack: it is sorted by time",
    "a",
]
SETTINGS, USE, POOLING = "tokenizer_config.json", "sentence_bert_config.json", "1_Pooling/config.json"
PROMPTS, TOKENIZER = "config_sentence_transformers.json", "tokenizer.json"
LEFT = {"direction": "Left", "max_length": 12, "strategy": "LongestFirst", "stride": 0}
MORE = "word embeddings for a tokenizer of"
FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}
NONE = {"max_seq_length": None, "do_lower_case": None}
# The files and what changes in them, and how that is refused; without it, the vectors are the same.
CHANGES: dict[str, tuple[dict[str, dict[str, Any]], str | None]] = {
    "nothing": ({}, None),
    "lower case": ({SETTINGS: {"do_lower_case": True}}, None),
    "case kept": ({SETTINGS: {"do_lower_case": False}}, None),
    "accents kept": ({SETTINGS: {"strip_accents": False}}, None),
    "accents stripped": ({SETTINGS: {"do_lower_case": False, "strip_accents": True}}, None),
    "ideographs together": ({SETTINGS: {"tokenize_chinese_chars": False}}, None),
    "prefix space": ({SETTINGS: {"add_prefix_space": True}}, None),
    "class of the kind": ({SETTINGS: {"tokenizer_class": None}}, None),
    "its prefix space": ({SETTINGS: {"tokenizer_class": None, "add_prefix_space": True}}, None),
    "its case kept": ({SETTINGS: {"tokenizer_class": None, "do_lower_case": False}}, None),
    "padded on the left": ({SETTINGS: {"padding_side": "left"}}, None),
    "cut on the left": ({SETTINGS: {"truncation_side": "left"}}, "keeps the end of a long text"),
    "cut there by itself": ({TOKENIZER: {"truncation": LEFT}}, "keeps the end of a long text"),
    "special pieces": ({SETTINGS: {"extra_special_tokens": ["list"]}}, None),
    "older special pieces": ({"special_tokens_map.json": {"additional_special_tokens": ["list"]}}, None),
    "added pieces": ({"added_tokens.json": {"open the": 10**6}}, None),
    "no frame": ({TOKENIZER: {"post_processor": None}, SETTINGS: FAST}, "does not put a text between"),
    "frame of the class": ({TOKENIZER: {"post_processor": None}, SETTINGS: {"tokenizer_class": None}}, None),
    "no length": ({USE: {"max_seq_length": None}}, None),
    "older length": ({USE: {"max_seq_length": None}, SETTINGS: {"model_max_length": None, "max_len": 9}}, None),
    "length": ({USE: {"max_seq_length": 7}}, None),
    "older name": ({USE: NONE, "sentence_distilbert_config.json": {"max_seq_length": 8}}, None),
    "lower case elsewhere": ({USE: {"do_lower_case": True}}, None),
    "arguments": ({USE: {"tokenizer_args": {"do_lower_case": False}}}, "sets tokenizer_args, which is not supported"),
    "without a prompt": ({POOLING: {"include_prompt": False}}, None),
    "prompt": ({PROMPTS: {"prompts": {"p": "A List "}, "default_prompt_name": "p"}}, None),
    "dimensions": ({PROMPTS: {"truncate_dim": 4}}, "keeps some dimensions alone"),
}
# The same where a file contradicts tokenizer.json: special tokens of other names, numbers of pieces, and vocab.txt.
MAP, ADDED, PIECES = "special_tokens_map.json", "added_tokens.json", "vocab.txt"
PIECE = {"content": "open the", "special": False, "normalized": True, "single_word": False}
DECODER = {"added_tokens_decoder": {"7": {**PIECE, "lstrip": False, "rstrip": False}}}
OWN_CLASS = {SETTINGS: {"tokenizer_class": None}}
CONFLICTS: dict[str, tuple[dict[str, dict[str, Any]], str | None]] = {
    "older cls": ({MAP: {"cls_token": "list"}}, None),
    "cls": ({SETTINGS: {"cls_token": "list"}}, None),
    "unknown": ({SETTINGS: {"unk_token": "list"}}, None),
    "pad": ({SETTINGS: {"pad_token": "list"}}, None),
    "new mask": ({MAP: {"mask_token": {"content": "<new>", "lstrip": True}}}, MORE),
    "taken number": ({ADDED: {"open the": 7}}, MORE),
    "newer taken number": ({SETTINGS: DECODER}, MORE),
    "words whole": ({SETTINGS: {"do_basic_tokenize": False}}, None),
    "no mask of padding": ({SETTINGS: {"model_input_names": ["input_ids"]}}, None),
    "another class": ({SETTINGS: {"tokenizer_class": "BertTokenizer"}}, None),
    "other order": ({PIECES: {"order": -1}, **OWN_CLASS}, None),
    "other size": ({PIECES: {"size": -3}, **OWN_CLASS}, None),
    "other case": ({PIECES: {"capitals": True}, **OWN_CLASS}, None),
}
KINDS = ("bert", "distilbert", "roberta", "mpnet", "modernbert", "xlm-roberta")


@cache
def encoder(kind: str) -> Path:
    """A random encoder of a kind, as sentence-transformers keeps it."""
    place = Path(mkdtemp()) / "place"
    model = published(place, kind, **({"hidden_act": "gelu"} if kind == "bert" else {}))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:  # random norms and biases would hide the texts
            torch.nn.init.constant_(parameter, float("weight" in name))
    model.save_pretrained(place)
    of_sentence_transformers(place, normalize=False)
    for file, values in ((SETTINGS, {"model_max_length": 10}), (POOLING, {"word_embedding_dimension": 8})):
        (place / file).write_text(json.dumps(json.loads((place / file).read_text()) | values))
    return place


def ours(place: Path, made: Path) -> np.ndarray:
    """The vectors of the texts as passages."""
    backbone = completed(Backbone.model_validate({"start": "checkpoint", "checkpoint": str(place)}))
    tokenizer = checkpoint_vocabulary.save_checkpoint_tokenizer(place, made)
    model, _ = start_model(backbone, 0, made, checkpoint=place)
    marked = [backbone.passage_marker + text for text in TEXTS]
    read = [np.array(each.ids) for each in tokenizer.encode_batch(marked, add_special_tokens=False)]
    ids, mask = pad(read, backbone.length or 0, model.config)
    with torch.no_grad():
        return model.eval().embed(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()


# Where a kind differs: a number of pieces that its weights lack, and a class that leaves texts without a frame.
OTHERWISE = {(kind, "added pieces"): MORE for kind in KINDS}
OTHERWISE |= {("xlm-roberta", name): MORE for name in ("special pieces", "older special pieces", "unknown", "pad")}
FRAMED = "does not put a text between"  # whose frame is in tokenizer.json, by number
OTHERWISE |= {(kind, name): FRAMED for kind in KINDS[2:] for name in ("cls", "older cls")}
OTHERWISE |= {("modernbert", "frame of the class"): "does not put a text between"}


def rows() -> Iterator[Any]:
    """Kinds and changes; those of a large vocabulary, and most conflicts of kinds that are read alike, are slow."""
    for kind, name in product(KINDS, {**CHANGES, **CONFLICTS}):
        slow = kind == "xlm-roberta" or (name in CONFLICTS and kind not in ("bert", "roberta"))
        yield pytest.param(kind, name, marks=pytest.mark.slow if slow else ())


def write(path: Path, values: dict[str, Any]) -> None:
    """Change fields of a file; None takes one away. Of a ``vocab.txt``, other pieces than those of tokenizer.json."""
    if path.name != PIECES:
        said = json.loads(path.read_text()) if path.is_file() else {}
        kept = {key: value for key, value in (said | values).items() if value is not None or key == "post_processor"}
        path.write_text(json.dumps(kept))
        return
    tokenizer = load_tokenizer(path.parent)
    pieces = [tokenizer.id_to_token(number) for number in range(tokenizer.get_vocab_size())]
    others = pieces[5 : values.get("size")][:: values.get("order", 1)]
    others = [piece.upper() for piece in others] if "capitals" in values else others
    path.write_text("\n".join(dict.fromkeys(pieces[:5] + others)) + "\n")


@pytest.mark.parametrize(("kind", "name"), rows())
def test_side_files_count_as_for_sentence_transformers_or_are_refused(kind: str, name: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from transformers import AutoTokenizer

    place, made = tmp_path / "place", tmp_path / "made"
    shutil.copytree(encoder(kind), place)
    changes, refused = {**CHANGES, **CONFLICTS}[name]
    for file, values in changes.items():
        write(place / file, values)
    if says := OTHERWISE.get((kind, name), refused):
        with pytest.raises(EncoreError, match=says) as caught:
            ours(place, made)
        assert "\n" not in str(caught.value)
        return
    found, theirs = ours(place, made), SentenceTransformer(str(place), device="cpu").encode(TEXTS, batch_size=1)
    cosines = (found * theirs).sum(1) / np.linalg.norm(theirs, axis=1) / np.linalg.norm(found, axis=1)
    assert cosines.min() > 1 - 1e-5
    written = AutoTokenizer.from_pretrained(made)
    assert written(TEXTS)["input_ids"] == [each.ids for each in load_tokenizer(made).encode_batch(TEXTS)]


def test_an_encoder_in_a_folder_below_is_refused_by_all_its_names(tmp_path: Path) -> None:
    place = tmp_path / "place"
    shutil.copytree(encoder("bert"), place)
    listed = json.loads((place / "modules.json").read_text())
    listed[0]["path"] = "0_Transformer"
    (place / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(EncoreError, match=r"names 0_Transformer as the encoder's folder; move its files one folder up"):
        ours(place, tmp_path / "made")
    (place / "0_Transformer").mkdir()
    for path in [each for each in place.iterdir() if each.is_file() and each.name not in ("modules.json", PROMPTS)]:
        path.rename(place / "0_Transformer" / path.name)
    with pytest.raises(EncoreError, match=r"0_Transformer has the encoder; move its files one folder up and write"):
        checkpoints.content(place)
    with pytest.raises(EncoreError, match=r"0_Transformer is a part of .*place; name that, and move its files"):
        ours(place / "0_Transformer", tmp_path / "made")

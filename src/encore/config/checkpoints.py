"""What a checkpoint is: files of a model that others made, on Hugging Face's hub, in a source, or in a user's folder.

Only fetching touches the network (``datasets/download/checkpoint.py``); everything else reads the folder that it gave.
"""

import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from encore.config.adapters import ADAPTER, ADAPTER_FOLDER, LORA, MERGE, read_adapter
from encore.errors import EncoreError
from encore.storage.files import remembered_contents, sha256

PLACE = "checkpoints"  # below data_root
CONFIG = "config.json"
FETCH_AGAIN = "fetch the checkpoint again"  # where a file of one is not what it is called
SHARDS = "model.safetensors.index.json"  # which of several files has which weight
WEIGHTS = ("model.safetensors", SHARDS, "pytorch_model.bin")  # the first that is there counts
TOKENIZER = "tokenizer.json"
VOCABULARY = (TOKENIZER, "vocab.txt")
PADDING = 128  # pieces that weights may be padded by, up to a round number
# What Transformers makes a tokenizer of, where there is no tokenizer.json.
OTHER_VOCABULARY = ("sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "vocab.json", "merges.txt")
# Case, names of special tokens, and pieces that were added later.
TOKENIZER_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
# How a text becomes a vector, as sentence-transformers keeps it, and the folders of its modules.
MODULES, USE, PROMPTS = "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"
MOVE_UP = f'move its files one folder up and write "path": "" for it in {MODULES}'
# The names of USE, of which sentence-transformers reads the first that is there and says anything.
OLDER = ("roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
USES = (USE, *(f"sentence_{kind}_config.json" for kind in OLDER))
# What manifests say of a start without a vocabulary head, and of a pre-training that needed one all the same.
NO_HEAD, RANDOM_HEAD = "no_vocabulary_head", "random_vocabulary_head"
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_MODULE = re.compile(r"\d+_\w+/(config\.json|model\.safetensors|pytorch_model\.bin)")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)?")


def is_folder(checkpoint: str) -> bool:
    """Whether a checkpoint is a folder of the user's, there already or not, and no id of the hub."""
    return Path(checkpoint).is_dir() or _ID.fullmatch(checkpoint) is None


def called(checkpoint: str) -> str:
    """A hub's id as part of a folder's name: ``castorini/tct`` -> ``castorini--tct``."""
    return checkpoint.replace("/", "--")


def folder_of(checkpoint: str, revision: str | None, data_root: Path) -> Path:
    """The folder below ``data_root`` that a checkpoint's files come to, or are put into by a user."""
    return data_root / PLACE / (called(checkpoint) + (f"@{revision}" if revision else ""))


def names_in(folder: Path) -> list[str]:
    """The names of a folder's own files, and of those in the folders of its modules; none if it is missing."""
    found = [*folder.glob("*"), *folder.glob("[0-9]*_*/*"), *folder.glob(f"{ADAPTER_FOLDER}/*")]
    return sorted(path.relative_to(folder).as_posix() for path in found if path.is_file())


def chosen(names: Collection[str], where: str) -> list[str]:
    """Which of a checkpoint's files are read: its configuration, weights, what makes its vocabulary, and its use."""
    if moved := [name for name in names if name.endswith((f"_Transformer/{CONFIG}", f"_Transformer/{ADAPTER}"))]:
        raise EncoreError(f"{where}: {moved[0].partition('/')[0]} has the encoder; {MOVE_UP}")
    weights = next((name for name in WEIGHTS if name in names), None)
    shards = [name for name in sorted(names) if weights == SHARDS and _SHARD.fullmatch(name)]
    vocabulary = [name for name in VOCABULARY if name in names]
    others = [name for name in OTHER_VOCABULARY if name in names and VOCABULARY[0] not in names]
    adapts = ADAPTER in names
    if adapts and (CONFIG in names or weights or LORA not in names):
        raise EncoreError(f"{where} has {ADAPTER}, an adapter (LoRA), but not {LORA} alone; {MERGE}")
    if not adapts and (CONFIG not in names or weights is None or not (vocabulary or others)):
        raise EncoreError(
            f"{where} lacks {_missing(names)}; name a checkpoint with {CONFIG}, {' or '.join(WEIGHTS[::2])}, and "
            f"{' or '.join(VOCABULARY)}"
        )
    described = [name for name in (*TOKENIZER_SETTINGS, MODULES, *USES, PROMPTS) if name in names]
    modules = [name for name in sorted(names) if MODULES in names and _MODULE.fullmatch(name)]
    whole = [ADAPTER, LORA] if adapts else [CONFIG, str(weights), *shards]
    kept = [f"{ADAPTER_FOLDER}/{name}" for name in (ADAPTER, LORA) if f"{ADAPTER_FOLDER}/{name}" in names]
    return [*whole, *vocabulary, *others, *described, *modules, *kept]


def joined(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The files of an adapter's base and its own by name: a tokenizer and modules of its own replace the base's."""
    if ADAPTER in base or f"{ADAPTER_FOLDER}/{ADAPTER}" in base:
        raise EncoreError(f"the adapter's base is an adapter (LoRA) too; {MERGE}")
    tokenizer = {*VOCABULARY, *OTHER_VOCABULARY}
    replaced = {*tokenizer, *TOKENIZER_SETTINGS} if tokenizer & own.keys() else set()
    replaced |= {MODULES, *USES, PROMPTS, *filter(_MODULE.fullmatch, base)} if MODULES in own else set()
    found = {name: each for name, each in base.items() if name not in replaced}
    return found | {f"{ADAPTER_FOLDER}/{name}" if name in (ADAPTER, LORA) else name: own[name] for name in own}


def with_base(adapter: Path, base: Path, place: Path) -> Path:
    """A new folder at ``place``, of links to the files of an adapter and its base."""
    files = joined(*({name: each / name for name in chosen(names_in(each), str(each))} for each in (base, adapter)))
    shutil.rmtree(place, ignore_errors=True)
    for name, path in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).symlink_to(path.resolve())
    return place


def content(folder: Path) -> dict[str, str]:
    """The identity of a user's folder: digests of what is read of it and of its base's; the name of a missing one."""
    if not folder.is_dir():
        return {"absent": folder.name}
    names = chosen(names_in(folder), str(folder))
    found = remembered_contents({name: folder / name for name in names})
    if ADAPTER in names and is_folder(base := read_adapter(folder).base):
        found |= {f"base/{name}": digest for name, digest in content(Path(base)).items()}
    return found


def refuse_changed(folder: Path, pinned: Mapping[str, str]) -> None:
    """Refuse a checkpoint with other files than a backbone pins.

    Args:
        pinned: the sha256 of files by name.
    """
    for name, digest in pinned.items():
        if not (folder / name).is_file():
            raise EncoreError(f"{folder} has no {name}, whose sha256 the backbone pins; fetch the checkpoint again")
        if (found := sha256(folder / name)) != digest:
            raise EncoreError(
                f"{folder / name} has the sha256 {found}, and the backbone pins {digest}; restore that file, or write "
                "the new digest if you mean to use it"
            )


def given(spec: dict[str, Any], fetched: Path | None, own: Path | None, place: Path) -> Path | None:
    """The folder of a checkpoint: fetched, the user's own, or an adapter's and its base's at ``place``; or None."""
    if own is not None and content(own) != spec.get("content"):
        raise EncoreError(
            f"{own} is not what was planned with: it has changed since, or is missing; run snakemake again"
        )
    found = own if fetched is None else inside(fetched)
    if own is not None and (own / ADAPTER).is_file():
        found = with_base(own, inside(fetched) if fetched else Path(read_adapter(own).base), place)
    if found is not None:
        refuse_changed(found, spec.get("sha256", {}))
    return found


def inside(folder: Path) -> Path:
    """The folder with the model: the given one, or the only one below it, as an archive may have packed it.

    The folders of a checkpoint's modules, such as ``1_Pooling``, are part of it.
    """
    if (folder / CONFIG).is_file():
        return folder
    holding = sorted(path.parent for path in folder.rglob(CONFIG))
    found = [each for each in holding if not any(other in each.parents for other in holding)]
    if len(found) != 1:
        many = f"more than one {CONFIG} ({found[0]}, {found[1]})" if found else f"no {CONFIG}"
        raise EncoreError(
            f"{folder} has {many}; name a folder or a source with one checkpoint, or choose its files with `members:`"
        )
    return found[0]


def is_seed_encoder(config: dict[str, Any]) -> bool:
    """Whether a ``config.json`` is that of SEED-Encoder, which has its own names and vocabulary."""
    return config.get("model_type") == "seed_encoder" or any(
        name.startswith("SEEDEncoder") for name in config.get("architectures") or ()
    )


def _missing(names: Collection[str]) -> str:
    if CONFIG not in names:
        return CONFIG
    if not any(name in names for name in WEIGHTS):
        sharded = any(name.endswith(".index.json") for name in names)
        onnx = any(name.endswith(".onnx") for name in names)
        return (
            "whole weights (they are in parts)" if sharded else "weights" + (" (it has ONNX's alone)" if onnx else "")
        )
    return "a vocabulary"

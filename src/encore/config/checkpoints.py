"""What a checkpoint is: files of a model that others made, on Hugging Face's hub, in a source, or in a user's folder.

Only fetching touches the network (``datasets/download/checkpoint.py``); everything else reads the folder that it gave.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.storage.files import contents

CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # the first that is there counts
VOCABULARY = ("tokenizer.json", "vocab.txt")
TOKENIZER_SETTINGS = ("tokenizer_config.json",)  # what says whether a vocabulary is lower-cased
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)?")


def is_folder(checkpoint: str) -> bool:
    """Whether a checkpoint is a folder of the user's, there already or not, and no id of the hub."""
    return Path(checkpoint).is_dir() or _ID.fullmatch(checkpoint) is None


def called(checkpoint: str) -> str:
    """A hub's id as part of a folder's name: ``castorini/tct`` -> ``castorini--tct``."""
    return checkpoint.replace("/", "--")


def chosen(names: Collection[str], where: str) -> list[str]:
    """Which of a checkpoint's files are read: its configuration, one file of weights, and what makes its vocabulary.

    Raises:
        EncoreError: the configuration, the weights or the vocabulary is missing.
    """
    weights = next((name for name in WEIGHTS if name in names), None)
    vocabulary = [name for name in VOCABULARY if name in names]
    if CONFIG not in names or weights is None or not vocabulary:
        raise EncoreError(
            f"{where} lacks {_missing(names)}; name a checkpoint with {CONFIG}, {' or '.join(WEIGHTS)}, and "
            f"{' or '.join(VOCABULARY)}"
        )
    return [CONFIG, weights, *vocabulary, *(name for name in TOKENIZER_SETTINGS if name in names)]


def content(folder: Path) -> dict[str, str]:
    """The identity of a user's folder: the digests of what is read of it; one that is not there yet counts by its name.

    Raises:
        EncoreError: it is there and lacks a file.
    """
    if not folder.is_dir():
        return {"absent": folder.name}
    files = chosen([path.name for path in folder.iterdir()], str(folder))
    return contents({name: folder / name for name in files})


def given(spec: dict[str, Any], fetched: Path | None, own: Path | None) -> Path | None:
    """The folder of a checkpoint that a job was given: fetched, or the user's own; None if there is neither.

    Raises:
        EncoreError: the user's is not the one that ``spec`` was planned with.
    """
    if own is not None and content(own) != spec.get("content"):
        raise EncoreError(
            f"{own} is not what was planned with: it has changed since, or is missing; run snakemake again"
        )
    return own if fetched is None else inside(fetched)


def inside(folder: Path) -> Path:
    """The folder with the configuration: the given one, or the only one below it, as an archive may have packed it.

    Raises:
        EncoreError: there is none, or more than one.
    """
    if (folder / CONFIG).is_file():
        return folder
    found = sorted(path.parent for path in folder.rglob(CONFIG))
    if len(found) != 1:
        many = f"more than one {CONFIG} ({found[0]}, {found[1]})" if found else f"no {CONFIG}"
        raise EncoreError(f"{folder} has {many}; name a folder or a source with one checkpoint")
    return found[0]


def is_seed_encoder(config: dict[str, Any]) -> bool:
    """Whether a ``config.json`` is that of SEED-Encoder, which has its own names and vocabulary."""
    return config.get("model_type") == "seed_encoder" or any(
        name.startswith("SEEDEncoder") for name in config.get("architectures") or ()
    )


def _missing(names: Collection[str]) -> str:
    if CONFIG not in names:
        return CONFIG
    sharded = [name for name in names if name.endswith(".index.json")]
    if not any(name in names for name in WEIGHTS):
        return "whole weights (they are in parts)" if sharded else "weights"
    return "a vocabulary"

"""Adapters (LoRA) as PEFT saves them, without the weights of their base."""

import math
from pathlib import Path
from typing import Any, NamedTuple

from encore.errors import EncoreError
from encore.storage.files import read_object

ADAPTER, LORA = "adapter_config.json", "adapter_model.safetensors"
ADAPTER_FOLDER = "encore-adapter"  # of both, next to the base's files; Transformers looks for none there
MERGE = "merge it by PEFT's merge_and_unload, save, and name that folder"
NEEDED = ("peft_type", "base_model_name_or_path", "r", "lora_alpha")
# Fields that change no vector (the weights name their layers) or are read; values of others. Any further one is off.
FREE = "auto_mapping exclude_modules inference_mode layers_pattern layers_to_transform lora_dropout megatron_core"
FREE += " peft_version qalora_group_size revision target_modules use_rslora"
PLAIN: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "task_type": (None, "FEATURE_EXTRACTION"),
    "bias": ("none",),
    "init_lora_weights": (True, False, "gaussian"),  # others change the base
}


class Adapter(NamedTuple):
    """A plain LoRA of a base, an id of the hub (and its revision) or a folder; the rank; the scale of B A."""

    base: str
    revision: str | None
    rank: int
    scale: float


def read_adapter(folder: Path) -> Adapter:
    """What ``adapter_config.json`` says; refuses all that is more than W + s B A (PEFT's ``LoraConfig``)."""
    said: dict[str, Any] = dict.fromkeys(NEEDED) | read_object(folder / ADAPTER, "save the adapter again")
    base, rank, alpha = (said[name] for name in NEEDED[1:])
    plain = {key: key in FREE.split() or value in PLAIN.get(key, (None, False, {}, [])) for key, value in said.items()}
    plain |= {"r": isinstance(rank, int) and rank > 0, "lora_alpha": isinstance(alpha, int | float)}
    plain["base_model_name_or_path"] = bool(base) and isinstance(base, str)
    if other := next((name for name, holds in plain.items() if not holds), None):
        raise EncoreError(f"{folder / ADAPTER}, an adapter (LoRA), has {other}: {said[other]!r}; {MERGE}")
    revision = said.get("revision") if said.get("revision") != "main" else None
    return Adapter(base, revision, rank, alpha / (math.sqrt(rank) if said.get("use_rslora") else rank))

"""Adapters (LoRA) as PEFT saves them, without the weights of their base."""

import math
from pathlib import Path
from typing import Any, NamedTuple

from encore.errors import EncoreError
from encore.storage.files import read_object

ADAPTER, LORA = "adapter_config.json", "adapter_model.safetensors"
BESIDE = "encore-adapter"  # where we keep both beside the base's files; Transformers looks for none there
MERGE = "merge it by PEFT's merge_and_unload, save, and name that folder"
# Fields that change no vector, since the weights name their layers; values of others; and what any other field has.
FREE = "auto_mapping exclude_modules inference_mode layers_pattern layers_to_transform lora_dropout megatron_core"
FREE += " peft_version qalora_group_size revision target_modules"
PLAIN: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "task_type": (None, "FEATURE_EXTRACTION"),
    "bias": ("none",),
    "init_lora_weights": (True, False, "gaussian"),  # others change the base
    "use_rslora": (True, False),
}
OFF: tuple[Any, ...] = (None, False, {}, [])


class Adapter(NamedTuple):
    """A plain LoRA of a base, an id of the hub (and its revision) or a folder; the rank; the scale of B A."""

    base: str
    revision: str | None
    rank: int
    scale: float


def read_adapter(folder: Path) -> Adapter:
    """What ``adapter_config.json`` says; refuses all that is more than W + s B A (PEFT's ``LoraConfig``)."""
    said = {"peft_type": None} | read_object(folder / ADAPTER, "save the adapter again")
    base, rank, alpha = (said.pop(name, None) for name in ("base_model_name_or_path", "r", "lora_alpha"))
    plain = {name: name in FREE.split() or value in PLAIN.get(name, OFF) for name, value in said.items()}
    plain |= {"r": isinstance(rank, int) and rank > 0, "lora_alpha": isinstance(alpha, int | float)}
    plain["base_model_name_or_path"] = bool(base) and isinstance(base, str)
    if other := next((name for name, holds in plain.items() if not holds), None):
        value = f" {said[other]!r}" if other in said else ", but none that is known"
        raise EncoreError(f"{folder / ADAPTER}, an adapter (LoRA), has {other}{value}; {MERGE}")
    revision = said.get("revision") if said.get("revision") != "main" else None
    return Adapter(base, revision, rank, alpha / (math.sqrt(rank) if said.get("use_rslora") else rank))

"""Adapters (LoRA) by hand, as PEFT saves them."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

PLAIN = {"peft_type": "LORA", "r": 3, "lora_alpha": 5, "bias": "none"}


def adapter(place: Path, base: str, layers: dict[str, tuple[int, ...]], **changes: Any) -> dict[str, torch.Tensor]:
    """An adapter of a base's layers, by name, whose weights have these shapes; returns its tensors."""
    place.mkdir(parents=True, exist_ok=True)
    said = PLAIN | {"base_model_name_or_path": base, "target_modules": sorted(layers)} | changes
    (place / "adapter_config.json").write_text(json.dumps(said))
    torch.manual_seed(1)
    found = {}
    for layer, (out, into) in layers.items():
        found[f"base_model.model.{layer}.lora_A.weight"] = torch.randn(PLAIN["r"], into)
        found[f"base_model.model.{layer}.lora_B.weight"] = torch.randn(out, PLAIN["r"])
    save_file(found, place / "adapter_model.safetensors", metadata={"format": "pt"})
    return found

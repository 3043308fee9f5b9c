"""Merging an adapter (LoRA) into the weights of its base."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from encore.config.adapters import ADAPTER_FOLDER, LORA, MERGE, read_adapter
from encore.errors import EncoreError
from encore.models.checkpoint import read_tensors
from encore.models.transformers_encoder import PREFIX

FIRST, DOWN, UP = "base_model.model.", ".lora_A.weight", ".lora_B.weight"  # in PEFT's names
UNREAD = "pooler."  # a layer that no vector reads


def merged(weights: Mapping[str, Tensor], folder: Path) -> dict[str, Tensor]:
    """The weights that a checkpoint's adapter changes: W + s B A in float32 (Hu et al. 2021, equation 3).

    Args:
        weights: of the base by name: [out, in] of linear layers, where A is [rank, in] and B [out, rank].
        folder: the checkpoint's; without an adapter nothing is changed.
    """
    found: dict[str, Tensor] = {}
    if not (folder / ADAPTER_FOLDER).is_dir():
        return found
    adapter, path = read_adapter(folder / ADAPTER_FOLDER), folder / ADAPTER_FOLDER / LORA
    tensors = read_tensors(path)
    left = {name for name in tensors if UNREAD not in name}
    for layer in sorted(name.removesuffix(DOWN) for name in left if name.endswith(DOWN)):
        inner = layer.removeprefix(FIRST)  # of a model with a head it begins with, say, `bert.`
        names = [f"{first}{each}.weight" for each in (inner, inner.partition(".")[2]) for first in ("", PREFIX)]
        own = next((name for name in names if name in weights and name not in found), "")
        if own and layer + UP in left:
            weight, down, up = (each.float() for each in (weights[own], tensors[layer + DOWN], tensors[layer + UP]))
            if (up.shape, down.shape) == ((len(weight), adapter.rank), (adapter.rank, *weight.shape[1:])):
                found[own] = weight + adapter.scale * (up @ down)
                left -= {layer + DOWN, layer + UP}
    if left or not found:
        raise EncoreError(f"{path} has {min(left, default='nothing')}, and {adapter.base} no layer for it; {MERGE}")
    return found

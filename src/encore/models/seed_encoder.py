"""SEED-Encoder's released weights in BERT's terms (Lu et al. 2021; microsoft/SEED-Encoder, model/SEED_Encoder).

It is fairseq's encoder: the same layers under other names, except that there are no segments, positions begin after
the padding's id, and LayerNorm's epsilon is PyTorch's. Its decoder is left out.
"""

import re

import torch
from torch import Tensor

ENCODER = "sentence_encoder."  # in its parameters' names, after a prefix
HEAD = "lm_head."
PADDING = 1  # the id of its [PAD], where its configuration does not say it
PARTS = {
    "embed_tokens.": "embeddings.word_embeddings.",
    "embed_positions.": "embeddings.position_embeddings.",
    "emb_layer_norm.": "embeddings.LayerNorm.",
}
LAYER = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}
HEADS = {
    "lm_head.dense.": "cls.predictions.transform.dense.",
    "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
    "lm_head.bias": "cls.predictions.bias",
}


def renamed(tensors: dict[str, Tensor], padding: int) -> dict[str, Tensor]:
    """Its tensors under the names of BERT's, with segments that add nothing; those of no part keep their own name."""
    found = {_name(name): tensor for name, tensor in tensors.items()}
    positions = "embeddings.position_embeddings.weight"
    if positions in found:
        found[positions] = found[positions][padding + 1 :]
    words = found.get("embeddings.word_embeddings.weight")
    if words is not None:
        found["embeddings.token_type_embeddings.weight"] = torch.zeros(2, words.shape[1])
    return found


def _name(name: str) -> str:
    inside, head = name.find(ENCODER), name.find(HEAD)
    if head >= 0:
        return _begun(name[head:], HEADS) or name
    if inside < 0:
        return name
    own = name[inside + len(ENCODER) :]
    layer = re.fullmatch(r"layers\.(\d+)\.(.+)\.(weight|bias)", own)
    if layer and layer[2] in LAYER:
        return f"encoder.layer.{layer[1]}.{LAYER[layer[2]]}.{layer[3]}"
    return _begun(own, PARTS) or name


def _begun(name: str, beginnings: dict[str, str]) -> str | None:
    """The name with another beginning, if it has a known one."""
    return next((new + name.removeprefix(old) for old, new in beginnings.items() if name.startswith(old)), None)

"""Checkpoints as others keep them, small: a BERT by Hugging Face's own code, and SEED-Encoder's names by hand."""

import json
from pathlib import Path
from typing import Any

import torch

from encore.config.entries import Backbone

SMALL = {"layers": 2, "hidden": 8, "heads": 2, "intermediate": 16, "max_length": 20, "dropout": 0.0, "source": "test"}


def backbone(**changes: Any) -> Backbone:
    """What the catalogue would say of these checkpoints."""
    return Backbone.model_validate({"start": "checkpoint", "checkpoint": "someone/bert", **SMALL, **changes})


def bert(place: Path, binary: bool = False, pieces: int = 104) -> torch.nn.Module:
    """A BERT with its pre-training heads as Hugging Face saves it, or as in 2018."""
    from transformers import BertConfig, BertForPreTraining

    config = BertConfig(
        vocab_size=pieces,  # more than the tokenizer has
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=20,
    )
    torch.manual_seed(0)
    model = BertForPreTraining(config).eval()
    model.cls.predictions.bias.data.normal_()
    model.save_pretrained(place)
    if binary:
        (place / "model.safetensors").unlink()
        torch.save({_old(name): tensor for name, tensor in model.state_dict().items()}, place / "pytorch_model.bin")
    return model


def _old(name: str) -> str:
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


SEED_PIECES = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", "a", "stack", "caf", "##é", "résumé", "!", "n"]
SEED_CONFIG = {"architectures": ["SEEDEncoderForMaskedLM"], "pad_token_id": 1, "vocab_size": len(SEED_PIECES) + 1}
SEED_CONFIG |= {"encoder_layers": 2, "encoder_embed_dim": 8, "encoder_ffn_embed_dim": 16}
SEED_CONFIG |= {"encoder_attention_heads": 2, "max_positions": 20, "activation_fn": "gelu"}


def seed_encoder(place: Path) -> dict[str, torch.Tensor]:
    """A folder as SEED-Encoder's archive has it; returns its tensors, drawn so that every part shows."""
    place.mkdir(parents=True)
    (place / "config.json").write_text(json.dumps(SEED_CONFIG))
    (place / "vocab.txt").write_text("".join(f"{piece}\n" for piece in SEED_PIECES))
    generator = torch.Generator().manual_seed(0)
    root = "seed_encoder.encoder.sentence_encoder."
    shapes = {f"{root}embed_tokens.weight": (13, 8), f"{root}embed_positions.weight": (22, 8)}
    shapes |= _norm(f"{root}emb_layer_norm")
    for layer in range(2):
        own = f"{root}layers.{layer}."
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes |= _linear(f"{own}self_attn.{name}", 8, 8)
        shapes |= _norm(f"{own}self_attn_layer_norm") | _norm(f"{own}final_layer_norm")
        shapes |= _linear(f"{own}fc1", 16, 8) | _linear(f"{own}fc2", 8, 16)
    shapes |= _linear("lm_head.dense", 8, 8) | _norm("lm_head.layer_norm") | {"lm_head.bias": (13,)}
    shapes |= _linear("seed_encoder.decoder.layers.0.fc1", 16, 8)
    tensors = {name: torch.randn(shape, generator=generator) * 0.3 for name, shape in shapes.items()}
    torch.save(tensors, place / "pytorch_model.bin")
    return tensors


def _linear(name: str, out: int, into: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (8,), f"{name}.bias": (8,)}

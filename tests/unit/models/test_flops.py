"""Counted operations: by hand, and as torch's own counter sees them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from encore.models import flops, heads, towers
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.heads import MlmHead
from encore.models.packing import in_parts
from tests.support.small_models import random_batch, random_encoder


def embed_by_all_states(encoder: Encoder, ids: Tensor, mask: Tensor) -> Tensor:
    return encoder.pool(encoder(ids, mask), ids, mask)


def counted(
    encoder: Encoder, lengths: list[int], backward: bool = False, embed: Callable[..., Tensor] = embed_by_all_states
) -> int:
    ids, mask = random_batch(encoder.config, lengths)
    with FlopCounterMode(display=False) as counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        vectors = embed(encoder, ids, mask)
        if backward:
            vectors.sum().backward()
    return counter.get_total_flops()


def test_bert_base_by_hand() -> None:
    shape = EncoderConfig(vocabulary=30522)
    # 12 layers of 7,077,888 weights, two operations each a token; 4 * 768 * 128 a token for scores and mixing.
    expected = 128 * 12 * (2 * 7_077_888 + 4 * 768 * 128)
    assert flops.forward(shape, 1, 128) == expected
    assert flops.mlm_head(shape, 20) == 20 * 2 * (768 * 768 + 768 * 30522)


@pytest.mark.parametrize("head", [None, 5])
def test_the_encoder_is_counted_as_torch_does(head: int | None) -> None:
    encoder = random_encoder(projection_dim=head)
    assert counted(encoder, [12, 12, 12]) == flops.forward(encoder.config, 3, 12)


def test_padding_is_counted() -> None:
    encoder = random_encoder()
    assert counted(encoder, [12, 3]) == counted(encoder, [12, 12]) == flops.forward(encoder.config, 2, 12)


def test_texts_in_parts_by_length_are_counted_as_torch_does() -> None:
    encoder = random_encoder()
    ids, mask = random_batch(encoder.config, [12, 3, 4, 9, 2, 12])
    computed = counted(encoder, [12, 3, 4, 9, 2, 12], embed=lambda *texts: in_parts(encoder.forward, *texts[1:]))
    assert computed == flops.forward_in_parts(encoder.config, ids.numpy(), mask.numpy())
    assert computed < flops.forward_in_parts(encoder.config, ids.numpy(), None) == flops.forward(encoder.config, 6, 12)


@pytest.mark.parametrize("layers", [1, 3])
def test_what_embedding_computes_is_counted_as_torch_does(layers: int) -> None:
    encoder = random_encoder(layers=layers, pooling="cls")
    computed = counted(encoder, [12, 12, 12], embed=Encoder.embed)
    assert computed == flops.embedding(encoder.config, 3, 12) < flops.forward(encoder.config, 3, 12)
    every_state = replace(encoder.config, pooling="mean")
    assert flops.embedding(every_state, 3, 12) == flops.forward(every_state, 3, 12)


def test_training_is_three_forward_passes() -> None:
    encoder = random_encoder()
    trained = counted(encoder, [12, 12], backward=True)
    assert trained == flops.TRAINING * flops.forward(encoder.config, 2, 12)


def test_the_vocabulary_head_is_counted_as_torch_does() -> None:
    encoder = random_encoder()
    head = MlmHead(encoder.config)
    hidden = torch.randn(2, 9, encoder.config.hidden)
    with FlopCounterMode(display=False) as counter:
        head(heads.at(hidden, torch.tensor([1, 4, 17])), encoder.word_embeddings)
    assert counter.get_total_flops() == flops.mlm_head(encoder.config, 3)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"projection_dim": 5},
        {"encoders": "separate"},
        {"projector": "linear"},
        {"projector": "nonlinear"},
        {"layers": 1},
        {"architecture": "bow-mlp", "projection_dim": 6, "pooling": "content", "encoders": "separate"},
    ],
)
def test_parameters_are_those_of_the_module(changes: dict[str, Any]) -> None:
    shape = EncoderConfig(vocabulary=96, layers=2, hidden=16, heads=4, intermediate=24, max_length=64)
    module = towers.build_encoder(replace(shape, **changes))
    assert flops.parameters(module.config) == sum(parameter.numel() for parameter in module.parameters())


def test_bert_base_has_its_published_size() -> None:
    """Without the pooler's 590,592, which no vector here comes from: 110 million (Devlin et al. 2019)."""
    assert flops.parameters(EncoderConfig(vocabulary=30522)) == 109_482_240 - 590_592

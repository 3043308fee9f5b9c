"""SEED-Encoder's objective: how little its decoder sees."""

import numpy as np
import torch
import torch.nn.functional as F

from encore.models.decoders import causal
from tests.support.small_decoding import Case, reads


def test_a_layer_reads_h_the_first_token_and_two_more() -> None:
    case = Case("seed", decoder_layers=1)
    text = F.embedding(case.batch["text"], case.model.word_embeddings).detach().requires_grad_()
    h = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    states = case.heads["decoder"](h, text, causal(text.shape[1], 2, h.device))
    found = reads(states, (0, 5), text)
    assert np.flatnonzero(found[0]).tolist() == [0, 4, 5]
    assert not found[1:].any()
    (gradient,) = torch.autograd.grad(states[0, 5].pow(2).sum(), h)
    assert (gradient.abs().sum(-1) > 0).tolist() == [True, False, False]


def test_dropout_takes_the_memory_from_some_heads_of_some_positions() -> None:
    case = Case("seed")
    memory = case.heads["decoder"].memory[0].train()
    memory.output.weight.data, memory.output.bias.data = torch.eye(8, dtype=torch.float64), torch.zeros(8).double()
    memory.rate = 0.5
    h = torch.randn(3, 8, dtype=torch.float64)
    ratio = (memory(h, 200) / memory.value(h)[:, None]).unflatten(-1, (2, 4))
    assert torch.allclose(ratio, ratio[..., :1].expand_as(ratio))  # a head as a whole
    assert set(ratio.round(decimals=6).unique().tolist()) == {0.0, 2.0}

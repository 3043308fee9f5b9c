"""What a full-size step calls a GPU for stays within its budget, so that no cast comes back unseen."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from encore import objectives
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.training import gradients
from encore.training.batches import BatchPart
from encore.training.distributed import ALONE
from encore.training.gradients import TrainingModels
from encore.training.vocabulary_loss import summed_cross_entropy
from tests.support import counted_kernels, small_store
from tests.support.counted_calls import Calls, gpu_without_numbers
from tests.support.small_training import STEP

BASE = EncoderConfig(vocabulary=30522, layers=12, hidden=768, heads=12, intermediate=3072, max_length=512, dropout=0.1)
TEXTS, LENGTH = 64, 512


def counted(name: str, config: EncoderConfig = BASE) -> Calls:
    """The calls of the forward and the backward pass of an objective in bf16, on texts of almost 32,768 tokens."""
    task = objectives.load(name)(objectives.fields({**STEP, "objective": name}), small_store.random_store(8))
    mask = np.ones((TEXTS, LENGTH), dtype=bool)
    mask[0, -1] = False  # so that texts are packed
    chosen = np.arange(0, mask.size, 7)
    arrays = {"ids": mask.astype(np.int64), "mask": mask, "masked": chosen, "labels": chosen % BASE.vocabulary}
    with gpu_without_numbers():
        with torch.device("meta"):
            encoder = Encoder(config)
            heads = task.heads(encoder)
        device = torch.device("cuda")
        nn.ModuleDict({"encoder": encoder, "heads": heads}).to(device)
        models = TrainingModels(task, encoder, heads, device, {"precision": "bf16"})
        with Calls() as calls:
            gradients.backward(models, [BatchPart(arrays, TEXTS, 0)], {"mlm": 1.0}, ALONE)
    return calls


@pytest.fixture(scope="module")
def mlm() -> Calls:
    return counted("mlm")


def test_a_step_has_no_more_calls_than_its_budget(mlm: Calls) -> None:
    assert mlm.names.total() <= 459


def test_a_step_casts_no_more_than_its_budget(mlm: Calls) -> None:
    assert mlm.casts <= 37


def test_a_step_moves_no_more_bytes_than_its_budget(mlm: Calls) -> None:
    """Without products and attention: 30 of 90 ms on an H100."""
    assert mlm.bytes <= 60.2e9


@pytest.mark.slow
def test_a_step_of_compiled_layers_has_no_more_calls_than_its_budget(mlm: Calls) -> None:
    """All but the layers is as without a compiler; of it the head and the vocabulary's loss have fewer with one."""
    one, two = (counted("mlm", replace(BASE, layers=layers)).names.total() for layers in (1, 2))
    forward, backward = counted_kernels.of_layer(replace(BASE, layers=1, vocabulary=100))
    assert forward <= 10
    assert backward <= 20
    assert mlm.names.total() - BASE.layers * (two - one - forward - backward) <= 423


@pytest.mark.parametrize(("learning", "budget"), [(True, 29.5), (False, 15)])
def test_the_vocabularys_loss_moves_few_bytes_a_logit(learning: bool, budget: float) -> None:
    count, vocabulary = 8704, 30522
    with gpu_without_numbers():
        states = torch.empty(count, 768, device="cuda", requires_grad=learning)
        words, bias = (torch.empty(shape, device="cuda") for shape in ((vocabulary, 768), (vocabulary,)))
        with Calls() as calls, torch.autocast("cuda", torch.bfloat16), torch.set_grad_enabled(learning):
            summed_cross_entropy(states, words, bias, torch.zeros(count, dtype=torch.int64, device="cuda"))
    assert calls.bytes / (count * vocabulary) <= budget

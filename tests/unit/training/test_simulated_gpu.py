"""The simulated GPU fails where a real one would, and counts waits; its attention has the right gradients."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils._device import _device_constructors

from encore.models import packing
from encore.models.packing import Bounds, RaggedAttention
from tests.support.forks import SIMULATED_GPU
from tests.support.simulated_attention import attention as simulated_attention
from tests.support.simulated_attention import attention_backward
from tests.support.simulated_gpu import SimulatedGpu, simulated_gpu

TEXTS = Bounds(torch.tensor([0, 3, 4, 9], dtype=torch.int32), 5)
FIRST = Bounds(torch.arange(4, dtype=torch.int32), 1)  # their first tokens


def random_texts(tokens: Bounds) -> list[Tensor]:
    """Queries of these tokens, keys and values of all, and what comes back to the queries."""
    torch.manual_seed(0)
    counts = (bounds.ends[-1] for bounds in (tokens, TEXTS, TEXTS, tokens))
    return [torch.randn(int(count), 2, 8) for count in counts]


@pytest.fixture
def gpu() -> Iterator[SimulatedGpu]:
    with simulated_gpu() as made:
        yield made


@pytest.mark.usefixtures("gpu")
def test_tensors_of_two_devices_do_not_meet() -> None:
    here = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match=r"same device, found cuda:0 and cpu"):
        here + torch.ones(3)
    with pytest.raises(RuntimeError, match="same device"):
        nn.Linear(3, 2)(here)
    with pytest.raises(TypeError, match="numpy"):
        here.numpy()
    assert (here + torch.tensor(1.0)).tolist() == [2, 2, 2]  # a number may
    assert here[torch.tensor([0, 2])].tolist() == [1, 1]  # and so may indices
    with pytest.raises(RuntimeError, match="same device"):
        here[torch.tensor([0, 2])] = torch.ones(2)
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(3)[torch.tensor([0, 2], device="cuda")]


def test_waits_are_counted(gpu: SimulatedGpu) -> None:
    here = torch.arange(4.0).to("cuda", non_blocking=True)
    _ = (here + 1).to("cpu", non_blocking=True)
    copied = torch.cuda.Event()
    copied.record()
    assert gpu.waits.total() == 0
    for waits, ask in enumerate(
        [
            lambda: torch.arange(4.0).to("cuda"),
            lambda: here.sum().item(),
            lambda: here.tolist(),
            lambda: here.cpu(),
            lambda: here.nonzero(),
            lambda: here[here > 2],
            lambda: bool(here.any()),
            lambda: torch.zeros(4).copy_(here),
            copied.synchronize,
        ],
        start=1,
    ):
        ask()
        assert gpu.waits.total() == waits


@pytest.mark.usefixtures("gpu")
def test_work_on_another_stream_happens_as_late_as_events_allow() -> None:
    side, copied, later = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()
    here, there = torch.ones(2), torch.zeros(2, device="cuda")
    with torch.cuda.stream(side):
        there.copy_(here, non_blocking=True)
        copied.record(side)
        there.copy_(here, non_blocking=True)
        later.record(side)
    here += 1
    assert there.tolist() == [0, 0]
    torch.cuda.current_stream().wait_event(copied)
    assert (there.tolist(), copied.seen) == ([2, 2], False)
    here += 1
    assert there.tolist() == [2, 2]
    later.synchronize()
    assert (there.tolist(), later.seen) == ([3, 3], True)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("tokens", [TEXTS, FIRST], ids=["all", "first"])
@pytest.mark.parametrize(("attention", "dtype"), [(packing.flash, torch.bfloat16), (packing.efficient, torch.float32)])
def test_its_attention_is_that_of_each_text_with_its_gradients(
    attention: RaggedAttention, dtype: torch.dtype, tokens: Bounds
) -> None:
    query, key, value, upstream = (part.to(dtype) for part in random_texts(tokens))
    there = [part.to("cuda").requires_grad_() for part in (query, key, value)]
    own = attention(*there, *(bounds._replace(ends=bounds.ends.to("cuda")) for bounds in (tokens, TEXTS)), 0.0)
    (own * upstream.to("cuda")).sum().backward()
    here = [part.float().requires_grad_() for part in (query, key, value)]
    plain = packing.one_by_one(*here, tokens, TEXTS, 0.0)
    (plain * upstream.float()).sum().backward()
    exact = 2e-2 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(own.cpu().float(), plain, atol=exact, rtol=exact)
    for one, other in zip(there, here, strict=True):
        torch.testing.assert_close(one.grad.cpu().float(), other.grad, atol=2 * exact, rtol=exact)


@pytest.mark.parametrize("tokens", [TEXTS, FIRST], ids=["all", "first"])
def test_gradients_under_its_dropout_are_those_of_finite_differences(tokens: Bounds) -> None:
    *texts, upstream = (part.double() for part in random_texts(tokens))
    drawn = tokens.ends, TEXTS.ends, 0.3, torch.tensor(5)
    gradients = attention_backward(upstream, *texts, *drawn)
    for place, gradient in enumerate(gradients):
        step = torch.randn_like(gradient) * 1e-5
        ends = [
            (simulated_attention(*texts[:place], texts[place] + way * step, *texts[place + 1 :], *drawn))
            for way in (1, -1)
        ]
        assert float(((ends[0] - ends[1]) / 2 * upstream).sum()) == pytest.approx(
            float((gradient * step).sum()), rel=1e-6
        )


def test_a_default_device_is_obeyed_on_it_and_afterwards() -> None:
    """Torch lists once what obeys it; models of Transformers that were opened afterwards had uninitialised numbers."""
    _device_constructors.cache_clear()
    for place in (simulated_gpu(), nullcontext()):
        with place, torch.device("meta"):
            assert torch.tensor(1).is_meta


MODEL_TESTS = [  # from texts to rankings, through every kind of model
    "finetuning/test_teachers.py::test_students_learn_what_their_teacher_says",
    "finetuning/test_teachers.py::test_pairs_have_the_teachers_scores",
    "finetuning/test_two_tower_path.py",
    "retrieval/test_rerank.py",
    "objectives/test_inspection.py",
    "objectives/test_masked_loss.py",
    "objectives/test_bprop.py",
    "retrieval/test_doc2query.py::test_every_passage_gets_its_queries_in_the_corpus_order",
]


@pytest.mark.slow
def test_models_are_fine_tuned_encode_rank_and_are_inspected_on_a_gpu() -> None:
    here = Path(__file__).parents[1]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *(str(here / name) for name in MODEL_TESTS),
    ]
    done = subprocess.run(command, env=os.environ | {SIMULATED_GPU: "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_cuda_build_of_torch_does_not_ask_for_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyPI's build on Linux; torch's own optimisers look whether a graph is being captured."""

    def no_driver() -> int:
        raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version")

    monkeypatch.setattr(torch._C, "_accelerator_getAccelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch._C, "_accelerator_getDeviceIndex", no_driver)
    with simulated_gpu():
        weight = torch.nn.Parameter(torch.ones(2, device="cuda"))
        weight.sum().backward()
        torch.optim.Adam([weight], lr=0.5, foreach=False).step()
        assert weight.tolist() == pytest.approx([0.5, 0.5])

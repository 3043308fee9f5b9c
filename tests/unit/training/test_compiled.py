"""Compiled layers: one graph for all shapes, the numbers of layers that are not compiled, nothing left behind."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from encore.errors import EncoreError
from encore.models import encoder as encoders
from encore.models import packing
from encore.models.encoder import Encoder
from encore.models.packing import Packing
from encore.storage import machine
from encore.storage.machine import lacks_to_compile
from encore.training import compiled, gradients, loop, vocabulary_loss
from encore.training.compiled import Compiled
from encore.training.distributed import ALONE
from encore.training.gradients import TrainingModels
from encore.training.randomness import generator
from tests.support import small_training
from tests.support.batch_parts import in_parts
from tests.support.opaque_attention import opaque
from tests.support.small_objective import encoder, heads_of, make
from tests.support.small_training import InterruptionError, equal, interrupt_after

SHAPES = [(8, 17), (5, 40), (16, 48), (3, 9), (7, 33), (12, 20)]  # texts and tokens of the longest


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """The number of graphs that were made in this test; they are traced, and not compiled, which takes a minute."""
    import torch._dynamo.utils

    torch.compiler.reset()
    counted = torch._dynamo.utils.counters["stats"]
    counted.clear()
    monkeypatch.setattr(compiled, "lacks_to_compile", str)
    monkeypatch.setattr(loop, "Compiled", partial(Compiled, backend="aot_eager"))
    yield lambda: counted["unique_graphs"]
    torch.compiler.reset()


def texts(count: int, longest: int, ragged: bool) -> tuple[Tensor, Tensor | None]:
    """Ids and mask of texts of which the second is the longest."""
    rng = torch.Generator().manual_seed(count)
    lengths = torch.randint(3, longest + 1, (count,), generator=rng)
    lengths[1] = longest
    ids = torch.randint(5, 90, (count, longest), generator=rng)
    return ids, (torch.arange(longest) < lengths[:, None]) if ragged else None


def gradient(run: Callable[[], Tensor], model: nn.Module, computing: Any) -> Tensor:
    """The gradient of all parameters, in a row."""
    model.zero_grad()
    torch.manual_seed(1)
    with computing():
        (run() ** 2).mean().backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])


def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, texts are packed on a processor too, as on a GPU."""
    monkeypatch.setattr(encoders, "layout", lambda mask, device: Packing(mask, device))
    attention = opaque()
    monkeypatch.setattr(packing, "attention_for", lambda *_: attention)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    "how", ["packed", *(pytest.param(how, marks=pytest.mark.slow) for how in ("rectangle", "padded"))]
)
def test_texts_of_all_shapes_take_one_graph_and_have_the_same_gradients(
    how: str, first: bool, graphs: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last layer for the first tokens alone is a graph of its own."""
    if how == "packed":
        packed(monkeypatch)
    model = encoder(layers=3, dropout=0.1).train()
    fast = Compiled(model, backend="aot_eager")
    for count, longest in SHAPES:
        given = texts(count, longest, how != "rectangle")
        run = partial(model.representations if first else model, *given)
        plain, quick = (gradient(run, model, computing) for computing in (nullcontext, fast.in_place))
        assert plain.norm() > 0
        assert (plain - quick).norm() <= 1e-5 * plain.norm()
    assert graphs() == 1 + first


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "name", ["enhanced", *(pytest.param(name, marks=pytest.mark.slow) for name in ("autoregression", "cpdae"))]
)
def test_decoders_and_heads_learn_the_same(name: str, precision: str, graphs: Callable[[], int]) -> None:
    found = [_learned(name, precision, size=8, backend=backend) for backend in ("", "aot_eager")]
    assert graphs() >= 2, "the encoder's layers, and those of a decoder or head"
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6 if precision == "fp32" else 1e-3, rtol=1e-3)


def _models(name: str, precision: str) -> TrainingModels:
    task, model = make(name), encoder(layers=2, dropout=0.1)
    numerics = {"precision": precision, "threads": 1}
    return TrainingModels(task, model.train(), heads_of(task, model).train(), torch.device("cpu"), numerics)


def _learned(name: str, precision: str, size: int, backend: str) -> list[Tensor]:
    """The loss and the gradients of a batch that goes through the models in parts of a size."""
    models = _models(name, precision)
    both = nn.ModuleList([models.encoder, models.heads])
    examples = [models.task.example(row, generator(0, "example", 0, row)) for row in range(8)]
    parts = in_parts(models.task, examples, size, "step", 0)
    with Compiled(both, backend=backend).in_place() if backend else nullcontext():
        terms = gradients.backward(models, parts, models.task.loss_weights(0.0), ALONE)
    return [terms["loss"], *(weight.grad for weight in both.parameters() if weight.grad is not None)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_vocabularys_loss_takes_one_graph_for_blocks_of_any_size(
    dtype: torch.dtype, graphs: Callable[[], int]
) -> None:
    fast = Compiled(nn.ModuleList(), backend="aot_eager")
    for count in (7, 128, 30):
        logits, places = torch.randn(count, 50).to(dtype), torch.arange(count)[:, None] % 50
        plain = vocabulary_loss.of_logits(logits.clone(), places, True)
        with fast.in_place():
            quick = vocabulary_loss.of_logits(logits.clone(), places, True)
        for one, other in zip(plain, quick, strict=True):
            torch.testing.assert_close(one, other)
    assert graphs() == 1


def test_between_the_steps_nothing_is_compiled(graphs: Callable[[], int]) -> None:
    model = encoder(layers=2)
    layer, plain = model.encoder.layer[0].forward, vocabulary_loss.of_logits
    fast = Compiled(model, backend="aot_eager")
    with fast.in_place():
        assert model.encoder.layer[0].forward is not layer
    assert model.encoder.layer[0].forward == layer
    assert vocabulary_loss.of_logits is plain
    assert not graphs()


# Trainings


def trained(state: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Any:
    monkeypatch.setattr(loop, "STEPS", 1)
    monkeypatch.setattr(small_training, "NUMERICS", small_training.NUMERICS | {"compiled": True})
    return small_training.run(state, "mlm", min_tokens=8, **fields)


def test_a_training_computes_with_compiled_layers_and_validates_without(
    graphs: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def validate(model: Encoder, step: int) -> float:
        before = graphs()
        model(*texts(4, 11, True))
        seen.append(graphs() - before)
        return 0.0

    plain, weights = small_training.run(tmp_path / "plain", "mlm", steps=3, min_tokens=8)
    assert not graphs()
    found, again = trained(tmp_path / "compiled", monkeypatch, steps=3, validate=validate, validate_every=1)
    assert graphs()
    assert seen == [0, 0, 0]
    losses = [[point.terms["loss"] for point in each.losses] for each in (plain, found)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert weights.keys() == again.keys(), "names of weights stay"


def test_a_short_training_says_that_it_is_not_compiled(
    graphs: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(small_training, "NUMERICS", small_training.NUMERICS | {"compiled": True})
    small_training.run(tmp_path, "mlm", steps=2, min_tokens=8)
    assert "layers are not compiled for 2 steps, but for 2,000 and more" in capsys.readouterr().out
    assert not graphs()


@pytest.mark.slow
@pytest.mark.skipif(bool(lacks_to_compile()), reason="needs a C compiler")
def test_compiled_trainings_end_with_equal_bytes_resumed_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By torch's compiler itself, with its own random numbers; the first time it compiles for a minute."""
    torch.compiler.reset()
    whole = trained(tmp_path / "whole", monkeypatch, steps=8)[1]
    assert equal(whole, trained(tmp_path / "twice", monkeypatch, steps=8)[1])
    interrupt_after(3, monkeypatch)
    with pytest.raises(InterruptionError):
        trained(tmp_path / "resumed", monkeypatch, steps=8, seconds=0.0)
    assert equal(whole, trained(tmp_path / "resumed", monkeypatch, steps=8, seconds=0.0)[1])


@pytest.mark.slow
@pytest.mark.skipif(bool(lacks_to_compile()), reason="needs a C compiler")
def test_a_compiled_pass_draws_the_same_dropout_without_a_graph_as_with_one() -> None:
    """Gradient caching runs each part twice and needs the same vectors both times."""
    torch.compiler.reset()
    model = encoder(layers=2, dropout=0.1).train()
    given, found = texts(6, 30, True), []
    with Compiled(model).in_place():
        for graph in (True, False, True):
            torch.manual_seed(3)
            with torch.set_grad_enabled(graph):
                found.append(model(*given).detach())
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


# What it needs


@pytest.mark.parametrize(
    ("compiler", "headers", "lacking"),
    [(True, True, ""), (False, True, "a C compiler"), (True, False, "Python's headers")],
)
def test_what_the_machine_lacks_is_named_before_the_first_step(
    compiler: bool, headers: bool, lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(machine.shutil, "which", lambda name: "/usr/bin/gcc" if compiler and name == "gcc" else None)
    monkeypatch.setattr(machine.sysconfig, "get_path", lambda name: str(tmp_path))
    if headers:
        (tmp_path / "Python.h").touch()
    assert lacks_to_compile().startswith(lacking)
    if lacking:
        with pytest.raises(EncoreError, match=f"`numerics: compiled` needs {lacking}"):
            Compiled(nn.ModuleList())

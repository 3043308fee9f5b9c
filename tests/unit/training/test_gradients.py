"""Batches in parts: the whole batch's gradients, the same dropout twice, smaller parts where memory runs out."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encore import objectives
from encore.errors import EncoreError
from encore.models.memory import MicroBatch, PartSize
from encore.training import gradients, losses
from encore.training.batches import BatchPart
from encore.training.checkpoint import Resume
from encore.training.distributed import ProcessGroup
from encore.training.gradients import TrainingModels
from encore.training.loop import train
from encore.training.randomness import generator
from encore.training.record import Trained
from encore.training.task import ForwardOutput
from tests.support.batch_parts import in_parts
from tests.support.quick_first import quick_first
from tests.support.small_objective import encoder, heads_of, make
from tests.support.small_training import NUMERICS, STEP
from tests.support.whole_loss import whole_loss

NAMES = objectives.names()


def models_of(name: str, dropout: float = 0.0) -> TrainingModels:
    own = {"dropout": dropout or 1e-12} if name == "simcse" else {}  # it drops out whatever the encoder does
    task, model = make(name, **own), encoder(dropout=dropout)
    return TrainingModels(task, model.train(), heads_of(task, model).train(), torch.device("cpu"), NUMERICS)


def parts_of(models: TrainingModels, micro_batch: int) -> list[BatchPart]:
    examples = [models.task.example(i, generator(0, "example", 0, i)) for i in range(8)]
    return in_parts(models.task, examples, micro_batch, "step", 3)


def parameters(models: TrainingModels) -> dict[str, nn.Parameter]:
    return dict(nn.ModuleDict({"encoder": models.encoder, "heads": models.heads}).named_parameters())


def found(models: TrainingModels, micro_batch: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Terms and gradients of a batch in parts."""
    terms = gradients.backward(models, parts_of(models, micro_batch), models.task.loss_weights(0.0), ProcessGroup())
    return terms, {name: value.grad for name, value in parameters(models).items() if value.grad is not None}


def assert_close(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-6, atol=1e-9, check_dtype=False, msg=name)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("micro_batch", quick_first([3, 8, 1]))
@pytest.mark.parametrize("name", NAMES)
def test_parts_have_the_gradients_and_the_terms_of_the_whole_batch(name: str, micro_batch: int) -> None:
    models = models_of(name)
    whole = whole_loss(models.task, models.encoder, models.heads, _tensors(parts_of(models, 8)[0]))
    whole["loss"].backward()
    expected = {name: value.grad for name, value in parameters(models).items() if value.grad is not None}
    terms, grads = found(models_of(name), micro_batch)
    assert_close(terms, {name: term.detach() for name, term in whole.items()})
    assert_close(grads, expected)


@pytest.mark.parametrize("name", NAMES)
def test_parts_run_a_second_time_only_where_a_batch_is_contrasted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models, original, runs = models_of(name), TrainingModels.run, []
    monkeypatch.setattr(TrainingModels, "run", lambda self, part: runs.append(part) or original(self, part))
    found(models, 3)
    assert len(runs) == (6 if models.task.has_contrast else 3)


# Dropout


@pytest.mark.parametrize("name", ["ict", "costa"])
def test_both_runs_of_a_part_see_the_same_dropout(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models, seen = models_of(name, dropout=0.3), []
    original = models.task.forward

    def forward(*arguments: Any) -> ForwardOutput:
        seen.append(original(*arguments))
        return seen[-1]

    monkeypatch.setattr(models.task, "forward", forward)
    found(models, 3)
    assert len(seen) == 6
    for first, second in zip(seen[:3], seen[3:], strict=True):
        assert all(torch.equal(first.embeddings[row], second.embeddings[row]) for row in first.embeddings)
    assert not torch.equal(
        seen[0].embeddings[next(iter(seen[0].embeddings))], seen[1].embeddings[next(iter(seen[0].embeddings))]
    )


@pytest.mark.usefixtures("double")
def test_with_dropout_the_gradients_are_those_of_holding_all_graphs_at_once() -> None:
    models = models_of("costa", dropout=0.3)
    made = parts_of(models, 3)
    counts = [models.task.loss_denominators(part.arrays)["mlm"] for part in made]
    passes = [models.run(part) for part in made]
    rows = {name: torch.cat([done.embeddings[name] for done in passes]) for name in passes[0].embeddings}
    mlm = sum(count * done.losses["mlm"] for count, done in zip(counts, passes, strict=True)) / sum(counts)
    (mlm + models.task.loss_weights(0.0)["gwc"] * models.task.batch_loss(rows)["gwc"]).backward()
    expected = {name: value.grad for name, value in parameters(models).items()}
    assert_close(found(models_of("costa", dropout=0.3), 3)[1], expected)


# Memory


class Narrow:
    """Makes a task run out of memory above some number of texts, or at one call."""

    def __init__(self, task: Any, most: int = 1000, fails_at: int | None = None) -> None:
        self.original, self.most, self.fails_at, self.calls = task.forward, most, fails_at, 0
        task.forward = self

    def __call__(self, encoder: Any, heads: Any, batch: dict[str, Tensor]) -> ForwardOutput:
        self.calls += 1
        if len(batch["mask"]) > self.most or self.calls == self.fails_at:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.original(encoder, heads, batch)


def trained(state: Path, name: str, micro_batch: int | None, **narrow: Any) -> tuple[Trained, dict[str, Tensor]]:
    step = objectives.fields({**STEP, "objective": name, "steps": 3, "min_tokens": 8})
    task, model = make(name, min_tokens=8), encoder()
    heads = heads_of(task, model)
    Narrow(task, **narrow)
    done = train(task, model, heads, step, 0, Resume(state), {**NUMERICS, "micro_batch": micro_batch})
    return done, nn.ModuleDict({"encoder": model, "heads": heads}).state_dict()


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("name", "micro_batch", "narrow"), [("costa", None, {"most": 3}), ("mlm", 4, {"fails_at": 2})])
def test_out_of_memory_makes_parts_smaller_and_changes_nothing_else(
    name: str, micro_batch: int | None, narrow: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done, weights = trained(tmp_path / "narrow", name, micro_batch, **narrow)
    assert f"out of memory; continuing with {done.micro_batch_tokens} tokens at a time" in capsys.readouterr().out
    wide, expected = trained(tmp_path / "wide", name, None)
    assert wide.micro_batch_tokens is None
    assert done.examples == wide.examples == 24
    assert_close(weights, expected)


def test_shorter_texts_still_go_together_in_as_many_as_before() -> None:
    micro_batch, seen = MicroBatch(PartSize(4), says=False), []

    def work(sizes: np.ndarray, size: PartSize) -> None:
        parts = size.split(sizes)
        seen.append([sizes[part].tolist() for part in parts])
        if any(len(part) * sizes[part].max() > 100 for part in parts):
            raise torch.OutOfMemoryError

    for sizes in ([10, 20, 30, 40], [10, 10, 20, 20, 20], [50, 60, 90]):
        micro_batch.fit(partial(work, np.array(sizes)), np.array(sizes))
    assert seen == [
        [[10, 20, 30, 40]],  # 160 tokens, and then at most 80
        [[10, 20], [30, 40]],
        [[10, 10, 20, 20], [20]],
        [[50], [60], [90]],  # one that is larger than that goes alone
    ]
    assert micro_batch.size == PartSize(4, 80)


def test_one_example_too_many_is_an_error_with_its_mend(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="out of memory with one example at a time; lower `length`"):
        trained(tmp_path, "mlm", None, most=0)


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError(), RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`")],
)
def test_parts_are_halved_upwards_until_they_fit(error: RuntimeError) -> None:
    seen, sizes = [], np.zeros(7, dtype=np.int64)

    def work(size: PartSize) -> int:
        seen.append(max(map(len, size.split(sizes))))
        if seen[-1] > 1:
            raise error
        return seen[-1]

    assert MicroBatch(PartSize(7), says=False).fit(work, sizes) == 1
    assert seen == [7, 4, 2, 1]


def test_processes_agree_on_the_size_of_parts() -> None:
    def work(size: PartSize) -> None:
        if size.tokens is None:
            raise torch.OutOfMemoryError

    micro_batch = MicroBatch(PartSize(2), largest=lambda tokens: max(tokens, 500), says=False)
    micro_batch.fit(work, np.array([30]))  # not this process's: it has one example
    assert micro_batch.size == PartSize(2, 250)


def test_another_error_is_not_taken_for_want_of_memory() -> None:
    def work(size: PartSize) -> int:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(RuntimeError, match="illegal"):
        MicroBatch(PartSize(7)).fit(work, np.zeros(7, dtype=np.int64))


# Precision


@pytest.mark.slow
def test_a_training_in_bf16_contrasts_in_single_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = objectives.fields({**STEP, "objective": "costa", "steps": 20, "min_tokens": 8, "learning_rate": 5e-3})
    task, model = make("costa", min_tokens=8), encoder()
    seen: dict[str, set[torch.dtype]] = {"hidden": set(), "rows": set(), "scores": set()}
    model.register_forward_hook(lambda module, given, hidden: seen["hidden"].add(hidden.dtype))
    contrast, sup_con = task.batch_loss, losses.sup_con

    def scored(texts: Tensor, candidates: Tensor, *rest: Any) -> Tensor:
        seen["scores"].add((texts @ candidates.T).dtype)
        return sup_con(texts, candidates, *rest)

    def contrasted(rows: dict[str, Tensor]) -> dict[str, Tensor]:
        seen["rows"] |= {row.dtype for row in rows.values()}
        return contrast(rows)

    monkeypatch.setattr(losses, "sup_con", scored)
    monkeypatch.setattr(task, "batch_loss", contrasted)
    done = train(task, model, heads_of(task, model), step, 0, Resume(tmp_path), {**NUMERICS, "precision": "bf16"})
    assert seen["rows"] == {torch.float32, torch.bool}
    assert seen["scores"] == {torch.float32}
    assert done.losses[-1].terms["loss"] < done.losses[0].terms["loss"]
    assert next(model.parameters()).dtype == torch.float32


def test_preferences_are_scored_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    objective, model, seen = make("prop"), encoder(pooling="mean", projection_dim=4), []
    batch = {
        name: torch.from_numpy(array)
        for name, array in objective.collate([objective.example(i, generator(0)) for i in range(3)]).items()
    }
    original = losses.preference
    monkeypatch.setattr(losses, "preference", lambda scores: seen.append(scores) or original(scores))
    with torch.autocast("cpu", torch.bfloat16):
        objective.forward(model, heads_of(objective, model), batch)
    assert seen[0].dtype == torch.float32
    assert not torch.equal(seen[0], seen[0].bfloat16().float())


def test_cross_entropies_of_narrow_logits_are_computed_in_single_precision() -> None:
    states, words, targets = torch.randn(5, 8), torch.randn(1000, 8), torch.randint(1000, (5,))
    soft = torch.rand(5, 1000)
    with torch.autocast("cpu", torch.bfloat16):
        logits = states @ words.T
        hard, mixed = losses.masked_lm(states, words, None, targets), losses.soft_cross_entropy(logits, soft)
    assert logits.dtype == torch.bfloat16
    assert hard.dtype == mixed.dtype == torch.float32
    assert hard.item() == pytest.approx(F.cross_entropy(logits.float(), targets).item(), rel=1e-6)
    assert mixed.item() == pytest.approx(losses.soft_cross_entropy(logits.float(), soft).item(), rel=1e-6)


def _tensors(part: BatchPart) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in part.arrays.items()}


@pytest.mark.slow
def test_a_training_imports_neither_algebra_nor_a_compiler() -> None:
    """Torch imports SymPy, for half a second, where a backward pass is given gradients, and Dynamo in its own AdamW."""
    code = (
        f"import sys; sys.path += {[str(Path(__file__).parents[place]) for place in (0, 3)]!r}\n"
        "from test_gradients import found, models_of\n"
        "terms, gradients = found(models_of('ict'), 4)\n"
        "import torch\n"
        "from encore.training.loop import AdamW\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = AdamW(model, 0.1)\n"
        "model(torch.ones(1, 2)).sum().backward()\n"
        "optimizer.step(0.1)\n"
        "print(len(gradients) > 0, 'sympy' in sys.modules, 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]

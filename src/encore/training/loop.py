"""The training loop, the same for every pre-training and every fine-tuning step."""

import math
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from encore.config.entries import Step
from encore.config.finetuning import PART, FinetuneStep
from encore.errors import EncoreError
from encore.models.encoder import Encoder
from encore.models.memory import MicroBatch, PartSize
from encore.models.transfer import AHEAD, ToHost
from encore.storage.files import digest, read_object, write_json
from encore.training import checkpoint, gradients, held_out, launch, machine
from encore.training.batches import Batch, BatchMaker, pinned, prefetched
from encore.training.checkpoint import Resume
from encore.training.compiled import STEPS, Compiled
from encore.training.distributed import ProcessGroup, process_group
from encore.training.gradients import TrainingModels
from encore.training.optimiser import AdamW
from encore.training.record import CurvePoint, Trained, TrainingProgress, format_terms, mean_cosine
from encore.training.schedule import learning_rate, total_steps
from encore.training.task import Task

Weights = dict[str, Tensor]
NAMED = 8  # examples of a batch that an error names


class Validate(Protocol):
    """Scores an encoder after a step, the more the better, by what it makes of some passages, vectors [P, D]."""

    def __call__(self, encoder: Encoder, step: int, /) -> float: ...
    def passages(self, encoder: Encoder, /) -> np.ndarray: ...


class Taken:
    """A step that is launched and whose losses are not read yet."""

    def __init__(self, step: int, batch: Batch, flops: float, terms: dict[str, Tensor], norm: Tensor) -> None:
        """``norm`` is that of the gradient; ``flops`` are those of all processes."""
        named = {**terms, "gradient norm": norm}
        self.step, self.batch, self.flops, self._names = step, batch, flops, list(named)
        self._numbers = ToHost(torch.stack([value.detach().double() for value in named.values()]))

    def finite(self) -> dict[str, float]:
        """The terms as numbers; waits for the device."""
        values = dict(zip(self._names, self._numbers.numpy().tolist(), strict=True))
        if math.isfinite(values["loss"]) and math.isfinite(values["gradient norm"]):
            del values["gradient norm"]
            return values
        shown = ", ".join(f"{name} {value:g}" for name, value in values.items())
        indices = self.batch.draw.indices.tolist()
        some = ", ".join(map(str, indices[:NAMED])) + (", ..." if len(indices) > NAMED else "")
        raise EncoreError(
            f"training broke down at step {self.step} ({shown}) on examples {some} ({len(indices)} in all); "
            "lower the learning rate or raise the temperature"
        )


def train(
    task: Task,
    encoder: Encoder,
    heads: nn.ModuleDict,
    step: Step,
    seed: int,
    resume: Resume,
    numerics: dict[str, Any],
    *,
    validate: Validate | None = None,
    validate_every: int | None = None,
    train_on: np.ndarray | None = None,
    watched: np.ndarray | None = None,
) -> Trained:
    """Minimise the task's loss; an interrupted training resumes and, on CPU, ends with the same bytes.

    Under torchrun all processes train together, and only the first prints, validates and saves. The weights are then
    those of one process but for rounding: in other bytes.

    Args:
        task: examples, their batches and their loss.
        encoder: the model; its weights are changed in place.
        heads: the modules that are trained with it, changed in place too.
        step: the batch, the learning rate and how long to train.
        seed: of all chance: order, masks, dropout.
        resume: its folder of checkpoints is left for the caller to remove once the result is safe.
        numerics: ``precision`` (fp32, tf32 or bf16), ``deterministic`` on a GPU, ``compiled``, ``threads``, and
            ``micro_batch``, the examples that go through the models at once (without it, a process's share of the
            batch); fewer if memory runs out.
        validate: scores the encoder (the more the better) every ``validate_every`` steps and at the end; the result is
            the weights with the best score, the earliest among equals. Without it, the last weights.
        train_on: the numbers of the examples to train on, ascending; None for all.
        watched: the numbers of those that are held out: their losses are measured about ten times and change nothing.
    """
    device = machine.prepare(numerics)
    machine.leave_room(device)
    model = nn.ModuleDict({"encoder": encoder, "heads": heads}).to(device).train()
    models, optimiser = TrainingModels(task, encoder, heads, device, numerics), AdamW(model, step.weight_decay)
    count = len(task) if train_on is None else len(train_on)
    total = total_steps(step, count)
    computing = _computing(model, numerics, total)
    run = digest([type(task).__name__, step.model_dump(), count, seed, numerics])
    done, best = _restore(checkpoint.load_checkpoint(resume.state, run), model, optimiser)

    with process_group(device) as group, ExitStack() as until_done:
        size = _part_size(done, step, count, numerics, group)
        micro_batch, watched_at_once = MicroBatch(size, group.largest, group.lead), MicroBatch(size)
        progress = TrainingProgress(done.steps, total, says=group.lead)
        due = checkpoint.Due(resume.seconds if group.lead else math.inf)
        if not group.lead:
            watched = validate = None
        if watched is not None and not done.held_out:
            _watch(watched, models, step, watched_at_once, done)

        unread = deque[Taken]()
        maker = BatchMaker(task, step.batch, seed, group, train_on)
        coming = until_done.enter_context(closing(_coming(maker, done.steps, micro_batch, resume.workers, device)))
        for now, batch in zip(range(done.steps, total), coming, strict=False):
            weights = task.loss_weights(now / total)
            work = partial(_gradients, models, optimiser, maker, batch, weights)
            with computing():
                terms, flops = micro_batch.fit(work, batch.sizes)
            norm = nn.utils.clip_grad_norm_(model.parameters(), step.max_grad_norm)
            optimiser.step(learning_rate(step, now, total))
            unread.append(Taken(now + 1, batch, flops, terms, norm))

            last, save = now + 1 == total, due()
            measures = watched is not None and held_out.is_due(now + 1, total)
            validates = validate and (last or (validate_every and (now + 1) % validate_every == 0))
            # A GPU has the next step to do while its host waits for the losses of this one.
            while len(unread) > (0 if last or save or measures or validates else AHEAD[device.type]):
                values, count = (taken := unread.popleft()).finite(), len(taken.batch.draw.indices)
                done.count(values, count, taken.flops, total)
                progress.step(done.steps, values, count)
            done.micro_batch, done.micro_batch_tokens = micro_batch.size
            if watched is not None and measures:
                _watch(watched, models, step, watched_at_once, done)
            if validate and validates:
                best = _validate(validate, encoder, model, done, best)
            if save:
                # All that a later process needs to resume; chance needs nothing, being a function of the step.
                content = {"done": done.packed(), "best": best, "model": model.state_dict()}
                content["optimiser"] = optimiser.state_dict()
                checkpoint.save_checkpoint(resume.state, run, done.steps, content)

    if best is not None:
        model.load_state_dict(best)
    model.eval()
    return done


def train_at_best_rate(
    step: FinetuneStep,
    training: Callable[..., Trained],
    model: nn.ModuleDict,
    *,
    total: int,
    validate: Validate,
    resume: Resume,
) -> Trained:
    """Train at that of the step's learning rates that validates best.

    The record's counts say what each validated at, what the model validated at before, and how far its vectors have
    moved. What trials cost is not among a model's operations.

    Args:
        training: trains a model in place as a step says.
        model: its encoder and its heads.
        total: the step's number of optimiser steps; a trial has fewer, with which its schedule ends.
        resume: trials that are finished are kept in its folder, and not repeated.
    """
    encoder, every = model["encoder"], step.validate_every
    assert isinstance(encoder, Encoder)
    trial = step.model_copy(update={"steps": max(1, total // PART), "epochs": None})
    scores = _try_rates(trial, partial(training, validate=validate, validate_every=every), model, resume)
    best = max(scores, key=scores.__getitem__)
    with torch.no_grad():
        before, at_start = validate.passages(encoder.eval()), validate(encoder, 0)
    chosen = step.model_copy(update={"learning_rate": best})
    done = training(chosen, resume=resume, validate=validate if every else None, validate_every=every)
    if launch.leads():
        with torch.no_grad():
            moved = mean_cosine(before, validate.passages(encoder))
        facts = {"learning_rate": best, "validation_before": round(at_start, 6), "cosine_to_start": round(moved, 6)}
        done.counts = facts | {f"validation_at_{rate:g}": round(score, 6) for rate, score in scores.items()}
    return done


def _try_rates(
    trial: FinetuneStep, training: Callable[..., Trained], model: nn.ModuleDict, resume: Resume
) -> dict[float, float]:
    """What each learning rate of a step validates at; the model's weights are as before."""
    start = {name: value.detach().clone() for name, value in model.state_dict().items()}
    found = {}
    for rate in trial.learning_rates:
        state = resume.state / f"rate-{rate:g}"
        record = resume.state / f"rate-{rate:g}.json"
        if not record.is_file():
            done = training(trial.model_copy(update={"learning_rate": rate}), resume=resume._replace(state=state))
            score = _of_all(done.validations[-1][1] if done.validations else 0.0, model)
            model.load_state_dict(start)
            if launch.leads():
                write_json(record, {"score": score})
            found[rate] = score
        else:
            found[rate] = float(read_object(record, "remove it, and repeat")["score"])
        print(f"learning rate {rate:g}: validation {found[rate]:.4f}", flush=True)
    return found


def _of_all(score: float, model: nn.Module) -> float:
    """The score of the process that validates, in all."""
    with process_group(next(model.parameters()).device) as group:
        return float(group.sum(torch.tensor(score, dtype=torch.float64)))


def _computing(model: nn.Module, numerics: dict[str, Any], steps: int) -> Callable[[], AbstractContextManager[None]]:
    """A context for a batch's passes, in which layers are compiled if that is asked for and steps are many."""
    if not numerics.get("compiled"):
        return nullcontext
    if steps < STEPS:
        print(f"layers are not compiled for {steps:,} steps, but for {STEPS:,} and more", flush=True)
        return nullcontext
    return Compiled(model, bool(numerics.get("deterministic"))).in_place


def _coming(
    maker: BatchMaker, start: int, micro_batch: MicroBatch, workers: int, device: torch.device
) -> Generator[Batch, None, None]:
    """The batches from that of step ``start`` on.

    For a GPU at least one other process makes them, since a thread that does would delay the calls of a step; a thread
    only has them ready in memory that the GPU copies from by itself. On a CPU both would take time from the training.
    """
    if device.type == "cpu":
        return maker.batches(start, micro_batch, workers)
    return prefetched(pinned(maker.batches(start, micro_batch, max(workers, 1))))


def _part_size(done: Trained, step: Step, examples: int, numerics: dict[str, Any], group: ProcessGroup) -> PartSize:
    """The size of the first parts that go through the models at once."""
    if done.micro_batch:
        return PartSize(done.micro_batch, done.micro_batch_tokens)
    batch = min(step.batch, examples)
    if batch < group.size:
        raise EncoreError(f"a batch of {batch} examples cannot be shared by {group.size} processes; start fewer")
    share = math.ceil(batch / group.size)
    return PartSize(min(numerics.get("micro_batch") or share, share))


def _gradients(
    models: TrainingModels,
    optimiser: AdamW,
    maker: BatchMaker,
    batch: Batch,
    weights: dict[str, float],
    size: PartSize,
) -> tuple[dict[str, Tensor], float]:
    """The batch's gradient in place of the last one's; its terms, and the FLOPs of all processes."""
    optimiser.zero_grad()
    parts = batch.parts if size == batch.size else maker.make(batch.draw, size).parts
    terms = gradients.backward(models, parts, weights, maker.group)
    flops = sum(models.task.flops(models.encoder, part.arrays) for part in parts)
    return terms, float(maker.group.sum(torch.tensor(flops, dtype=torch.float64)))


def _watch(watched: np.ndarray, models: TrainingModels, step: Step, micro_batch: MicroBatch, done: Trained) -> None:
    """Note the losses on examples that are held out."""
    modules = (models.encoder, models.heads)
    for module in modules:
        module.eval()
    found = held_out.held_out_losses(models, watched, step.batch, micro_batch)
    for module in modules:
        module.train()
    done.held_out.append(CurvePoint(done.steps, found))
    print(f"step {done.steps}  held out: {format_terms(found)}", flush=True)


def _validate(validate: Validate, encoder: Encoder, model: nn.Module, done: Trained, best: Weights | None) -> Weights:
    """Score the encoder and give the best weights so far."""
    model.eval()
    with torch.no_grad():
        score = validate(encoder, done.steps)
    model.train()
    better = best is None or score > max(earlier for _, earlier in done.validations)
    done.validations.append((done.steps, score))
    print(f"step {done.steps}  validation {score:.4f}{' (best)' if better else ''}", flush=True)
    if best is not None and not better:
        return best
    done.best_step = done.steps
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def _restore(saved: dict[str, Any] | None, model: nn.Module, optimiser: AdamW) -> tuple[Trained, Weights | None]:
    """Put a checkpoint's weights in place; give the history and the best weights so far, both empty without one."""
    if saved is None:
        return Trained(), None
    model.load_state_dict(saved["model"])
    optimiser.load_state_dict(saved["optimiser"])
    print(f"resuming after step {saved['step']}", flush=True)
    return Trained.unpacked(saved["done"]), saved["best"]

"""The gradients of a batch, exact, though it goes through the models in parts and perhaps on several processes.

A term that is a mean over examples parts as it is. A contrast needs the vectors of the whole batch: they are computed
first, without a graph; the contrast gives each vector its gradient; then each part runs once more, with the same
dropout, and carries its vectors' gradients on to the weights (gradient caching: Gao et al. 2021, "Scaling Deep
Contrastive Learning Batch Size under Memory Limited Setup"). A batch in one part needs no second run.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import torch
from torch import Tensor, nn

from encore.models.encoder import Encoder
from encore.training import machine
from encore.training.batches import BatchPart
from encore.training.distributed import ALONE, ProcessGroup
from encore.training.half_precision import Copies
from encore.training.task import ForwardOutput, Task, times, weighted

Terms = dict[str, Tensor]
EXAMPLES = ""  # the count of examples, among the counts of terms by name
MASK = "mask"  # in the names of arrays that stay on the host: where real tokens are is learned there without a wait


@dataclass(frozen=True)
class TrainingModels:
    """The modules that are trained, their task, and the device and arithmetic that they run on."""

    task: Task
    encoder: Encoder
    heads: nn.ModuleDict
    device: torch.device
    numerics: dict[str, Any]

    def run(self, part: BatchPart) -> ForwardOutput:
        """Losses (scalars) and embeddings [n, ...] of a part of n examples, these in single precision.

        The same dropout is drawn whenever the same part runs.
        """
        torch.manual_seed(part.chance)
        batch = {name: torch.from_numpy(array) for name, array in part.arrays.items()}
        batch = {
            name: row if MASK in name.split("_") else row.to(self.device, non_blocking=True)
            for name, row in batch.items()
        }
        with machine.precision(self.numerics, self.device):
            losses, embeddings = self.task.forward(self.encoder, self.heads, batch)
        return ForwardOutput(
            losses, {name: row.float() if row.dtype == torch.bfloat16 else row for name, row in embeddings.items()}
        )

    @cached_property
    def copies(self) -> Copies:
        """Copies of the weights in bf16."""
        return Copies(nn.ModuleList([self.encoder, self.heads]))

    def computing(self) -> AbstractContextManager[Callable[[], None]]:
        """A context for all passes of a batch, in which the models compute with copies of their weights under bf16.

        It gives what is to be called behind each backward pass: it takes gradients to the weights.
        """
        if self.numerics.get("precision") != "bf16":
            return nullcontext(lambda: None)
        self.copies.refresh()
        return self.copies.in_place()


def backward(models: TrainingModels, batch: list[BatchPart], weights: dict[str, float], group: ProcessGroup) -> Terms:
    """Add the gradient of the batch's loss to that of the parameters, those of all processes summed.

    Args:
        batch: this process's share.
        weights: of the terms in the loss, by name.

    Returns:
        The loss and its terms over the whole batch, scalars by name.

    Raises:
        torch.OutOfMemoryError: on every process, where one cannot hold a part; gradients are then unfinished.
    """
    whole = _counts(models.task, batch, group)
    with group.together():
        computing = models.computing()
    with computing as give_gradients:
        with group.together():
            first = models.run(batch[0])
            leaves = _leaves(models, batch, first)
            rooms = {name: group.room(leaf, whole[EXAMPLES]) for name, leaf in leaves.items()}
            kept = first if len(batch) == 1 or not leaves else None  # its graph makes room where all parts run again
            del first
        for name, leaf in leaves.items():
            group.gather(leaf, rooms[name])
        losses: Terms = {}
        with group.together():
            embeddings = {name: group.joined(leaf, whole[EXAMPLES], rooms[name]) for name, leaf in leaves.items()}
            contrasts, pulls = _batch_loss(models.task, leaves, embeddings, weights)
            for place, part in enumerate(batch):
                done, kept = kept or models.run(part), None
                shares = _shares(models.task, part, done, whole)
                found = {name: times(shares[name], loss) for name, loss in done.losses.items()}
                pull = {name: pulled.split([part.examples for part in batch])[place] for name, pulled in pulls.items()}
                _carry_back(done.embeddings, pull, weighted(found, weights))
                give_gradients()
                for name, loss in found.items():
                    losses[name] = losses[name] + loss.detach() if name in losses else loss.detach()
    group.sum_gradients(parameter for module in (models.encoder, models.heads) for parameter in module.parameters())
    return _terms({name: group.sum(loss) for name, loss in losses.items()}, contrasts, weights)


@torch.no_grad()
def measure_losses(models: TrainingModels, batch: list[BatchPart], weights: dict[str, float]) -> Terms:
    """The loss of a batch and its terms, on this process only and without gradients.

    Args:
        batch: the whole batch in parts.
        weights: of the terms in the loss, by name.

    Returns:
        Scalars by name; under ``"loss"`` their weighted sum.
    """
    whole = _counts(models.task, batch, ALONE)
    passes = [models.run(part) for part in batch]
    losses: Terms = {}
    for part, done in zip(batch, passes, strict=True):
        shares = _shares(models.task, part, done, whole)
        losses = {name: losses.get(name, 0) + shares[name] * loss for name, loss in done.losses.items()}
    embeddings = {name: torch.cat([done.embeddings[name] for done in passes]) for name in passes[0].embeddings}
    return _terms(losses, models.task.batch_loss(embeddings) if embeddings else {}, weights)


def _counts(task: Task, batch: list[BatchPart], group: ProcessGroup) -> dict[str, int]:
    """Counts that the losses of the whole batch are means over: its examples, or the task's count for a term."""
    found = {EXAMPLES: 0}
    for part in batch:
        for name, count in {EXAMPLES: part.examples, **task.loss_denominators(part.arrays)}.items():
            found[name] = found.get(name, 0) + count
    return dict(zip(found, group.sum(torch.tensor(list(found.values()))).tolist(), strict=True))


def _shares(task: Task, part: BatchPart, done: ForwardOutput, whole: dict[str, int]) -> dict[str, float]:
    """The weight of a part's mean of each term in the mean of the whole batch."""
    counts = {EXAMPLES: part.examples, **task.loss_denominators(part.arrays)}
    over = {name: name if name in counts else EXAMPLES for name in done.losses}
    return {name: counts[count] / max(whole[count], 1) for name, count in over.items()}


def _leaves(models: TrainingModels, batch: list[BatchPart], first: ForwardOutput) -> dict[str, Tensor]:
    """The embeddings of all parts, cut from their graphs; none if the task contrasts nothing."""
    if not first.embeddings:
        return {}
    with torch.no_grad():
        passes = [first, *(models.run(part) for part in batch[1:])]
    embeddings = {name: torch.cat([done.embeddings[name].detach() for done in passes]) for name in first.embeddings}
    return {name: row.requires_grad_(row.is_floating_point()) for name, row in embeddings.items()}


def _batch_loss(
    task: Task, leaves: dict[str, Tensor], embeddings: dict[str, Tensor], weights: dict[str, float]
) -> tuple[Terms, dict[str, Tensor]]:
    """The terms of the whole batch's embeddings, and the gradients of this process's own."""
    terms = task.batch_loss(embeddings) if embeddings else {}
    loss = weighted(terms, weights)
    names = [name for name, leaf in leaves.items() if leaf.requires_grad]
    if not (isinstance(loss, Tensor) and loss.requires_grad):
        return terms, {}
    found = torch.autograd.grad(loss, [leaves[name] for name in names], allow_unused=True)
    pulls = {name: pull for name, pull in zip(names, found, strict=True) if pull is not None}
    return {name: term.detach() for name, term in terms.items()}, pulls


def _carry_back(embeddings: dict[str, Tensor], pull: dict[str, Tensor], loss: Tensor) -> None:
    """Add a part's gradient to that of the parameters: of its share of the loss, and what pulls its embeddings.

    Gradients handed to ``torch.autograd.backward`` would make it import SymPy, half a second of every training.
    """
    ends = [*((embeddings[name] * gradient).sum() for name, gradient in pull.items()), loss]
    ends = [end for end in ends if isinstance(end, Tensor) and end.requires_grad]
    if ends:
        reduce(add, ends).backward()


def _terms(losses: Terms, contrasts: Terms, weights: dict[str, float]) -> Terms:
    terms = losses | contrasts
    return {"loss": weighted(terms, weights), **terms}

"""The gradients of a batch, exact, though it goes through the models in parts and perhaps on several processes.

A term that is a mean over examples parts as it is. A contrast needs the vectors of the whole batch: they are computed
first, without a graph; the contrast gives each vector its gradient; then each part runs once more, with the same
dropout, and carries its vectors' gradients on to the weights (gradient caching: Gao et al. 2021, "Scaling Deep
Contrastive Learning Batch Size under Memory Limited Setup"). A batch in one part needs no second run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from encore.models.encoder import Encoder
from encore.training import machine
from encore.training.distributed import Ranks
from encore.training.randomness import number
from encore.training.task import Arrays, Pass, Task, weighted

Terms = dict[str, Tensor]
EXAMPLES = ""  # the count of examples, among the counts of terms by name


class Part(NamedTuple):
    """Examples that go through the models at once, and the number that their dropout is drawn from."""

    arrays: Arrays
    examples: int
    chance: int


@dataclass(frozen=True)
class Models:
    """What is trained, with what, and on what."""

    task: Task
    encoder: Encoder
    heads: nn.ModuleDict
    device: torch.device
    numerics: dict[str, Any]

    def run(self, part: Part) -> Pass:
        """Means and rows of a part; the same dropout whenever the same part runs. Rows are in single precision."""
        torch.manual_seed(part.chance)
        batch = {
            name: torch.from_numpy(array).to(self.device, non_blocking=True) for name, array in part.arrays.items()
        }
        with machine.precision(self.numerics, self.device):
            means, rows = self.task.forward(self.encoder, self.heads, batch)
        return Pass(means, {name: row.float() if row.dtype == torch.bfloat16 else row for name, row in rows.items()})


def parts(
    task: Task, examples: Sequence[Any], micro_batch: int, ranks: Ranks, seed: int, *key: str | int
) -> list[Part]:
    """This process's share of a batch, in parts of ``micro_batch`` examples.

    Dropout is drawn from the seed, the key, and where in the batch a part begins; so parts on several processes draw
    what they draw on one.
    """
    share, found = ranks.share(len(examples)), []
    for first in range(share.start, share.stop, micro_batch):
        chosen = list(examples[first : min(first + micro_batch, share.stop)])
        place = () if len(chosen) == len(examples) else ("part", first)
        found.append(Part(task.collate(chosen), len(chosen), number(seed, *key, *place)))
    return found


def backward(models: Models, batch: list[Part], weights: dict[str, float], ranks: Ranks) -> Terms:
    """Add the gradient of the batch's loss to that of the parameters, those of all processes summed.

    Args:
        batch: this process's share.
        weights: of the terms in the loss.

    Returns:
        The loss and its terms over the whole batch.

    Raises:
        torch.OutOfMemoryError: on every process, where one cannot hold a part; gradients are then unfinished.
    """
    whole = _counts(models.task, batch, ranks)
    with ranks.together():
        first = models.run(batch[0])
        leaves = _leaves(models, batch, first)
        kept = first if len(batch) == 1 or not leaves else None  # its graph makes room where all parts run again
        del first
    rows = {name: ranks.gather(leaf, whole[EXAMPLES]) for name, leaf in leaves.items()}
    means: Terms = {}
    with ranks.together():
        contrasts, pulls = _contrast(models.task, leaves, rows, weights)
        for place, part in enumerate(batch):
            done, kept = kept or models.run(part), None
            shares = _shares(models.task, part, done, whole)
            pull = {name: pulled.split([part.examples for part in batch])[place] for name, pulled in pulls.items()}
            _carry_back(done, shares, pull, weights)
            means = {name: means.get(name, 0) + shares[name] * mean.detach() for name, mean in done.means.items()}
    ranks.sum_gradients(parameter for module in (models.encoder, models.heads) for parameter in module.parameters())
    return _terms({name: ranks.sum(mean) for name, mean in means.items()}, contrasts, weights)


@torch.no_grad()
def measure(models: Models, batch: list[Part], weights: dict[str, float]) -> Terms:
    """The loss of a batch and its terms, on this process alone and without gradients."""
    whole = _counts(models.task, batch, Ranks())
    passes = [models.run(part) for part in batch]
    means: Terms = {}
    for part, done in zip(batch, passes, strict=True):
        shares = _shares(models.task, part, done, whole)
        means = {name: means.get(name, 0) + shares[name] * mean for name, mean in done.means.items()}
    rows = {name: torch.cat([done.rows[name] for done in passes]) for name in passes[0].rows}
    return _terms(means, models.task.contrast(rows) if rows else {}, weights)


def _counts(task: Task, batch: list[Part], ranks: Ranks) -> dict[str, int]:
    """What the means of the whole batch are over: its examples, or what the task counts for a term."""
    found = {EXAMPLES: 0}
    for part in batch:
        for name, count in {EXAMPLES: part.examples, **task.counts(part.arrays)}.items():
            found[name] = found.get(name, 0) + count
    return dict(zip(found, ranks.sum(torch.tensor(list(found.values()))).tolist(), strict=True))


def _shares(task: Task, part: Part, done: Pass, whole: dict[str, int]) -> dict[str, float]:
    """How much a part's mean of each term counts in the mean of the whole batch."""
    counts = {EXAMPLES: part.examples, **task.counts(part.arrays)}
    over = {name: name if name in counts else EXAMPLES for name in done.means}
    return {name: counts[count] / max(whole[count], 1) for name, count in over.items()}


def _leaves(models: Models, batch: list[Part], first: Pass) -> dict[str, Tensor]:
    """The rows of all parts, cut from their graphs; none if the task contrasts nothing."""
    if not first.rows:
        return {}
    with torch.no_grad():
        passes = [first, *(models.run(part) for part in batch[1:])]
    rows = {name: torch.cat([done.rows[name].detach() for done in passes]) for name in first.rows}
    return {name: row.requires_grad_(row.is_floating_point()) for name, row in rows.items()}


def _contrast(
    task: Task, leaves: dict[str, Tensor], rows: dict[str, Tensor], weights: dict[str, float]
) -> tuple[Terms, dict[str, Tensor]]:
    """The terms of the whole batch's rows, and the gradients of this process's own."""
    terms = task.contrast(rows) if rows else {}
    loss = weighted(terms, weights)
    names = [name for name, leaf in leaves.items() if leaf.requires_grad]
    if not (isinstance(loss, Tensor) and loss.requires_grad):
        return terms, {}
    found = torch.autograd.grad(loss, [leaves[name] for name in names], allow_unused=True)
    pulls = {name: pull for name, pull in zip(names, found, strict=True) if pull is not None}
    return {name: term.detach() for name, term in terms.items()}, pulls


def _carry_back(done: Pass, shares: dict[str, float], pull: dict[str, Tensor], weights: dict[str, float]) -> None:
    """Add a part's gradient to that of the parameters: of its share of the means, and what pulls its rows."""
    loss = weighted({name: shares[name] * mean for name, mean in done.means.items()}, weights)
    ends = [(done.rows[name], gradient) for name, gradient in pull.items() if done.rows[name].requires_grad]
    if isinstance(loss, Tensor) and loss.requires_grad:
        ends.append((loss, torch.ones_like(loss)))
    torch.autograd.backward([end for end, _ in ends], [gradient for _, gradient in ends])


def _terms(means: Terms, contrasts: Terms, weights: dict[str, float]) -> Terms:
    terms = means | contrasts
    return {"loss": weighted(terms, weights), **terms}

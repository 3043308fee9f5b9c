"""Teaching a T5 to write the query that a passage answers."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from encore.data.collection import Collection, topics
from encore.data.judgments import highest_graded
from encore.errors import EncoreError
from encore.retrieval.doc2query import model as models
from encore.retrieval.doc2query.model import Doc2QueryTokenizer, filled
from encore.storage.files import digest
from encore.training import checkpoint, machine
from encore.training.optimiser import AdamW
from encore.training.progress import CurvePoint, TrainingProgress, write_curve
from encore.training.randomness import epoch_order, number

IGNORED = -100  # left out by torch's losses
Pair = tuple[str, str]  # a passage's text and a query that it answers


def training_pairs(collection: Collection, split: str, queries: int | None = None, sample: int = 0) -> list[Pair]:
    """Each query of the split, or of a sample of it, with each of its best passages.

    Nothing else of the collection's queries and judgments is looked at: predictions for the passages that validation
    and test queries ask for are made without them.
    """
    judged, texts = collection.qrels(split), collection.queries()
    chosen = topics(collection, split, queries, sample)
    pairs = [(query, name) for query in chosen for name in highest_graded(judged[query])]
    wanted = {name for _, name in pairs}
    passages = {name: " ".join(text) for name, text in collection.texts() if name in wanted}
    if not pairs:
        raise EncoreError(f"no query of split {split!r} of {collection.folder} has a relevant passage to learn from")
    return [(passages[name], texts[query]) for query, name in sorted(pairs)]


def train(
    spec: dict[str, Any],
    collection: Path,
    tokenizer: Path | None,
    output: Path,
    state: Path,
    seconds: float = 120.0,
    begun: Path | None = None,
) -> dict[str, Any]:
    """Train on the spec's queries and write the model; if interrupted it resumes and, on CPU, ends with the same bytes.

    Args:
        spec: ``expansion`` (fields of ``doc2query.T5``), ``seed``, ``numerics``.
        state: the folder of checkpoints; one is written every ``seconds``.
        begun: the folder of a published T5 that training starts from; without it, a new one.
    """
    fields, seed = spec["expansion"], spec["seed"]
    device = machine.prepare(spec["numerics"])
    pairs = training_pairs(Collection(collection), fields["train_split"], fields["queries"], fields["sample"])
    model, words = models.create(fields, seed, tokenizer, begun)
    model.to(device).train()
    optimiser = AdamW(model, weight_decay=0.0)
    run, done, losses = digest([spec, len(pairs)]), 0, []
    if (saved := checkpoint.load_checkpoint(state, run)) is not None:
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        done, losses = int(saved["step"]), list(saved["losses"])
    progress, due = TrainingProgress(done, fields["steps"]), checkpoint.Due(seconds)
    for step in range(done, fields["steps"]):
        torch.manual_seed(number(seed, "dropout", step))
        with machine.precision(spec["numerics"], device):
            loss = _loss(model, words, _batch(pairs, fields["batch"], seed, step), fields, device)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step(_rate(fields, step))
        value = float(loss.detach())
        if not math.isfinite(value):
            raise EncoreError(f"the loss at step {step + 1} is {value}; lower the expansion's `learning_rate`")
        losses.append(value)
        progress.step(step + 1, {"loss": value}, fields["batch"])
        if due():
            content = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "losses": losses}
            checkpoint.save_checkpoint(state, run, step + 1, content)
    models.save_model(output, model.cpu().eval(), words)
    write_curve(output / "losses.tsv", [CurvePoint(step, {"loss": value}) for step, value in enumerate(losses, 1)])
    return {"pairs": len(pairs), "steps": fields["steps"], "loss": round(losses[-1], 6)}


def _batch(pairs: Sequence[Pair], size: int, seed: int, step: int) -> list[Pair]:
    """The pairs of a step, a function of the seed and the step alone."""
    epoch, row = divmod(step, -(-len(pairs) // min(size, len(pairs))))
    return [pairs[place] for place in epoch_order(len(pairs), size, seed, epoch)[row].tolist()]


def _loss(
    model: nn.Module, words: Doc2QueryTokenizer, batch: Sequence[Pair], fields: dict[str, Any], device: Any
) -> Tensor:
    """Mean negative log-likelihood of the queries' tokens, their end included, given their passages."""
    passages = words.rows([passage for passage, _ in batch], fields["length"])
    queries = words.rows([query for _, query in batch], fields["query_length"])
    loss: Tensor = model(
        input_ids=filled(passages, words.pad).to(device),
        attention_mask=filled([[1] * len(row) for row in passages], 0).to(device),
        labels=filled(queries, IGNORED).to(device),
    ).loss
    return loss


def _rate(fields: dict[str, Any], done: int) -> float:
    """The learning rate after ``done`` steps: linear warm-up, then constant."""
    warmup = math.ceil(fields["warmup"] * fields["steps"])
    return float(fields["learning_rate"] * min(1.0, (done + 1) / max(1, warmup)))

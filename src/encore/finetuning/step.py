"""One fine-tuning step: a parent model, judged queries and their negatives in, a model folder out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from encore.config.finetuning import FinetuneStep
from encore.config.validation import checked
from encore.data.collection import Collection
from encore.data.tokens import TokenStore
from encore.finetuning.distillation import distillation
from encore.finetuning.negatives import mining
from encore.finetuning.projector import project
from encore.finetuning.queries import training_queries
from encore.finetuning.retrieval_task import RetrievalTask
from encore.finetuning.tasks import task_class
from encore.finetuning.validation import Validation, validation_pool, write_record
from encore.models import checkpoint, embed
from encore.models.encoder import Encoder
from encore.training import launch
from encore.training.loop import train
from encore.training.progress import write_curve
from encore.training.randomness import number
from encore.training.record import Trained


def finetune(
    spec: dict[str, Any],
    tokens: Path,
    collection: Path,
    weights: Path,
    mined: Path | None,
    output: Path,
    state: Path,
    checkpoint_seconds: float = 120.0,
    teacher_outputs: Sequence[Path] = (),
    workers: int = 0,
) -> Trained:
    """Train the model in ``weights`` on the training role of ``collection`` and write the model folder ``output``.

    With ``validate_every`` the weights are those of the best validation, and all values are in ``validation.tsv``.
    Heads of pre-training are handed on untouched; what the scorer trains besides the encoder goes on from the parent's.

    Args:
        spec: ``step`` (a fine-tuning step), ``seed``, ``numerics``.
        mined: the folder of negatives; None where the step takes none.
        state: the folder of checkpoints of this training.
        checkpoint_seconds: between two checkpoints.
        teacher_outputs: folders of each teacher's scores or vectors.
        workers: processes that make batches ahead.

    Raises:
        EncoreError: a wrong field, a loss that asks teachers without any, judgments, negatives or scores that do not
            fit the token store, a vocabulary of another model, a loss that is not finite.
    """
    step = checked(FinetuneStep, spec["step"], "fine-tuning step")
    store, judged = TokenStore.open(tokens), Collection(collection)
    encoder, heads = embed.load_for_tokens(weights, store), checkpoint.load_heads(weights)
    project(encoder, step.projector, heads, spec["seed"])
    _compare(encoder, step)
    sampled_negatives = (mining.read_negatives(mined), mining.read_positives(mined)) if mined else ({}, {})
    queries = training_queries(step, judged, store, *sampled_negatives, spec["seed"])
    if step.is_distillation:
        task: RetrievalTask = distillation(step, queries, store, teacher_outputs)
    else:
        task = task_class(step)(step, queries, store)
    task.reading = encoder.config
    own = _own_heads(task, encoder, weights, spec["seed"])
    print(f"{len(task)} training queries", flush=True)
    validate = Validation(step, validation_pool(step, judged, store), store) if step.validate_every else None
    done = train(
        task,
        encoder,
        own,
        step,
        spec["seed"],
        state,
        spec["numerics"],
        validate,
        step.validate_every,
        checkpoint_seconds,
        workers=workers,
    )
    done.counts = {"queries": len(queries)}
    if not launch.leads():
        return done
    checkpoint.save_model(
        encoder, heads | own.state_dict(), output, store.tokenizer_folder, step.length, step.query_length, _scorer(step)
    )
    write_curve(output / "losses.tsv", done.losses)
    if done.validations:
        write_record(output / "validation.tsv", done.validations, step.validation_measure)
    return done


def _compare(encoder: Encoder, step: FinetuneStep) -> None:
    """Let texts have vectors as the step says, where it says so."""
    changes: dict[str, Any] = {name: value for name in ("pooling", "similarity") if (value := getattr(step, name))}
    for tower in {encoder, encoder.query_tower}:
        tower.config = replace(tower.config, **changes)


def _own_heads(task: RetrievalTask, encoder: Encoder, weights: Path, seed: int) -> nn.ModuleDict:
    """The modules that the task trains: the parent's where it has them, otherwise drawn from the seed."""
    torch.manual_seed(number(seed, "heads"))
    heads = task.heads(encoder.config)
    checkpoint.restore_heads(heads, weights)
    return heads


def _scorer(step: FinetuneStep) -> dict[str, Any]:
    """How the model scores, as its folder says it."""
    own = {"normalised": step.normalised} if step.scorer == "late-interaction" else {}
    return {"kind": step.scorer, **own}

"""One batch, twice: token ids, loss and gradient there must be those here before anything is trained."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from encore.errors import EncoreError
from encore.finetuning.queries import Example
from encore.models import embed, inputs
from harness.ours import whole_loss
from harness.recipe import Recipe
from harness.sentence_transformers_peer import Peer

TOLERANCE = 1e-4  # relative, of the loss and of the gradient


def agree(recipe: Recipe, peer: Peer, examples: list[Example]) -> dict[str, float]:
    """Both losses of a batch in which no passage is repeated, and how far the gradients are apart.

    Raises:
        EncoreError: ids, loss or gradient differ.
    """
    chosen = without_copies(examples)
    model, loss = peer.open()
    columns = list(zip(*map(recipe.texts, chosen), strict=True))
    limits = [recipe.step.query_length] + [recipe.step.length] * (len(columns) - 1)
    features = [model.preprocess(list(column), max_length=limit) for column, limit in zip(columns, limits, strict=True)]
    _same_ids(recipe, chosen, features)
    theirs = loss(features, torch.empty(0))
    theirs.backward()

    encoder = embed.load_for_tokens(recipe.start, recipe.store)
    batch = {name: torch.from_numpy(array) for name, array in recipe.task.collate(chosen).items()}
    ours = whole_loss(recipe.task, encoder, nn.ModuleDict(), batch)
    ours.backward()
    gradients = {name: value.grad for name, value in peer.trained_in(model).named_parameters()}
    apart, size = 0.0, 0.0
    for name, value in encoder.named_parameters():
        if value.grad is not None:
            other = gradients[name]
            apart += float((value.grad - other).square().sum()) if other is not None else math.inf
            size += float(value.grad.square().sum())
    found = {
        "examples": len(chosen),
        "our_loss": ours.item(),
        "loss": theirs.item(),
        "gradient_apart": float(np.sqrt(apart / size)),
    }
    if abs(found["our_loss"] - found["loss"]) > TOLERANCE * found["loss"] or found["gradient_apart"] > TOLERANCE:
        raise EncoreError(f"the same batch differs on both sides ({found}); fix that first")
    return found


def without_copies(examples: list[Example]) -> list[Example]:
    """Those in whose batch our loss leaves nothing out, so that both sides mean the same."""
    kept: list[Example] = []
    passages: set[int] = set()
    relevant: set[int] = set()
    for example in examples:
        own = set(example.passages)
        if (
            len(own) == len(example.passages)
            and not own & (passages | relevant)
            and not example.query.relevant & passages
        ):
            kept.append(example)
            passages |= own
            relevant |= example.query.relevant
    return kept


def left_out(batches: list[list[Example]]) -> float:
    """The share of all (query, passage of another query) pairs that our loss leaves out and theirs does not."""
    out = every = 0
    for examples in batches:
        for place, example in enumerate(examples):
            others = [passage for other in examples[:place] + examples[place + 1 :] for passage in other.passages]
            out += sum(passage in example.query.relevant for passage in others)
            every += len(others)
    return out / every


def _same_ids(recipe: Recipe, examples: list[Example], features: list[dict[str, Any]]) -> None:
    """Their tokenizer in every batch gives what our token store holds."""
    store, step = recipe.store, recipe.step
    for column, found in enumerate(features):
        if column == 0:
            sequences, limit = [store.queries[example.query.row] for example in examples], step.query_length
        else:
            sequences, limit = [store.passages[example.passages[column - 1]] for example in examples], step.length
        ids, _ = inputs.pad(sequences, limit, store.special)
        if not np.array_equal(ids, found["input_ids"].numpy()):
            raise EncoreError(f"column {column} of a batch has other token ids there than here; fix that first")

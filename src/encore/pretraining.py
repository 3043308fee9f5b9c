"""One pre-training step: a parent model and a token store in, a model folder out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from encore import objectives
from encore.config import PretrainStep
from encore.errors import EncoreError
from encore.modeling import folder
from encore.modeling.encoder import Encoder
from encore.objectives.base import Objective
from encore.tokens import TokenStore
from encore.training.loop import Trained, train
from encore.training.progress import write_curve
from encore.training.randomness import number

CURVE = "losses.tsv"


def pretrain(
    spec: dict[str, Any], tokens: Path, weights: Path, output: Path, state: Path, prepared: Path | None = None
) -> Trained:
    """Train the model in ``weights`` on the texts in ``tokens`` and write the model folder ``output``.

    The objective's modules go on from those of the parent where it has them; the parent's others are handed on
    untouched, so that a vocabulary head survives an objective that does not use it.

    Args:
        spec: ``step`` (a pre-training step with its objective's fields), ``seed``, ``numerics``.
        state: the folder of checkpoints of this training.
        prepared: what the objective's preparation wrote, where it has one.

    Raises:
        EncoreError: a wrong field, texts that the objective cannot use, a vocabulary of another model, a loss that is
            not finite.
    """
    step = objectives.fields(spec["step"])
    store = TokenStore.open(tokens)
    encoder = folder.load(weights)
    _check(step, store, encoder)
    objective = objectives.load(step.objective)(step, store, prepared)
    heads = _heads(objective, encoder, weights, spec["seed"])
    trained = train(objective, encoder, heads, step, spec["seed"], state, spec["numerics"])
    every_head = folder.load_heads(weights) | heads.state_dict()
    folder.save(encoder, every_head, output, store.tokenizer_folder, step.length, step.query_length)
    write_curve(output / CURVE, trained.losses)
    return trained


def _check(step: PretrainStep, store: TokenStore, encoder: Encoder) -> None:
    """Refuse tokens or lengths that the encoder was not made for."""
    shape = encoder.shape
    if store.vocabulary != shape.vocabulary:
        raise EncoreError(
            f"{store.folder} was made with {store.vocabulary} pieces, the model has {shape.vocabulary}; "
            "make the tokens again with the model's tokenizer"
        )
    longest = max(step.length, step.query_length)
    if longest > shape.max_length:
        raise EncoreError(
            f"the step's texts have up to {longest} tokens, the encoder reads {shape.max_length}; "
            "lower `length` or `query_length`, or take a backbone with a larger `max_length`"
        )


def _heads(objective: Objective[Any], encoder: Encoder, weights: Path, seed: int) -> nn.ModuleDict:
    """The objective's modules: the parent's where it has them, otherwise drawn from the seed."""
    torch.manual_seed(number(seed, "heads"))
    heads = objective.heads(encoder)
    folder.restore_heads(heads, weights)
    return heads

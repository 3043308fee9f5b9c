"""One pre-training step: a parent model and a token store in, a model folder out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from encore import objectives
from encore.config.checkpoints import RANDOM_HEAD
from encore.config.entries import PretrainStep
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import checkpoint, embed, towers
from encore.models.encoder import Encoder
from encore.training import held_out, launch
from encore.training.checkpoint import Resume
from encore.training.loop import train
from encore.training.randomness import number
from encore.training.record import Trained, write_curve

CURVE, HELD_OUT = "losses.tsv", "held_out.tsv"


@dataclass(frozen=True)
class PretrainInputs:
    """The folders that a pre-training step reads.

    Args:
        weights: the parent's model.
        prepared: what the objective's preparation wrote, where it has one.
    """

    tokens: Path
    weights: Path
    prepared: Path | None = None


def pretrain(
    step: PretrainStep, seed: int, numerics: dict[str, Any], inputs: PretrainInputs, output: Path, resume: Resume
) -> Trained:
    """Train the model in ``inputs.weights`` on the texts in ``inputs.tokens`` and write the model folder ``output``.

    The objective's modules start from those of the parent where it has them, and the step's ``save_heads`` says which
    are saved; the parent's others are copied unchanged, so that a vocabulary head survives an objective that does not
    use it. Of several processes that train together the first alone writes.

    Args:
        step: with its objective's fields (``objectives.fields``).
        seed: of all chance.
        numerics: as ``training.loop.train`` takes them.
    """
    weights, store = inputs.weights, TokenStore(inputs.tokens)
    encoder = embed.load_for_tokens(weights, store)
    objective = objectives.load(step.objective)(step, store, inputs.prepared)
    torch.manual_seed(number(seed, "heads"))
    heads = objective.heads(encoder)
    checkpoint.restore_heads(heads, weights)
    objective.begin(heads)
    train_on, watched = held_out.hold_out(objective, step.held_out)
    kept = _kept(step, heads)
    head = _vocabulary_head(heads, kept, weights)
    training = partial(train, objective, encoder, heads, seed=seed, numerics=numerics, train_on=train_on)
    spent = _warm_heads(training, step, encoder, heads, resume) if step.head_warmup else 0.0
    trained = training(step, resume=resume, watched=watched)
    trained.flops += spent
    trained.counts = objective.counts() | head
    if encoder.config.encoders == "separate":
        towers.follow(encoder, checkpoint.load_encoder(weights))
    if launch.leads():
        write_curve(output / CURVE, trained.losses)
        write_curve(output / HELD_OUT, trained.held_out)
        others = {
            name: value for name, value in checkpoint.load_heads(weights).items() if checkpoint.owner(name) not in heads
        }
        own = {name: value for name, value in heads.state_dict().items() if checkpoint.owner(name) in kept}
        checkpoint.save_model(encoder, others | own, output, store.tokenizer_folder, step.length, step.query_length)
    return trained


def _warm_heads(
    training: Callable[..., Trained], step: PretrainStep, encoder: Encoder, heads: nn.ModuleDict, resume: Resume
) -> float:
    """Train the modules besides the encoder alone for ``head_warmup`` steps; returns the operations of whole steps.

    ``training`` takes a step, and where its checkpoints are.
    """
    if not len(heads):
        raise EncoreError(f"step {step.objective!r} trains no module besides the encoder; leave `head_warmup` out")
    warm = step.model_copy(update={"steps": step.head_warmup, "epochs": None})
    encoder.requires_grad_(False)
    done = training(warm, resume=resume._replace(state=resume.state / "heads"))
    encoder.requires_grad_(True)
    return done.flops


def _vocabulary_head(heads: nn.ModuleDict, kept: set[str], weights: Path) -> dict[str, float]:
    """What a manifest says where a checkpoint gave no vocabulary head: it begins at random, or is still missing."""
    lacking, name = checkpoint.without_head(weights), checkpoint.owner(checkpoint.OUR_NAME)
    if not lacking or name not in heads:
        return lacking
    print("the vocabulary head begins at random: the checkpoint that the model started from has none", flush=True)
    return {RANDOM_HEAD: 1} | ({} if name in kept else lacking)


def _kept(step: PretrainStep, heads: nn.ModuleDict) -> set[str]:
    """The modules to save of those that are trained."""
    kept = set(heads) if step.save_heads is None else set(step.save_heads)
    if unknown := sorted(kept - set(heads)):
        raise EncoreError(
            f"step {step.objective!r}, field 'save_heads': it trains no module {unknown[0]!r}; "
            f"use some of {', '.join(heads) or 'none'}"
        )
    return kept

"""The learning rate of a step that names several: each is tried from the same weights, and validation chooses.

A trial is a training with fewer steps, whose schedule ends with it. What trials cost is not among a model's operations.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from encore.config.finetuning import PART, FinetuneStep
from encore.finetuning.validation import Validation
from encore.storage.files import read_object, write_json
from encore.training import launch
from encore.training.checkpoint import Resume
from encore.training.distributed import process_group
from encore.training.record import Trained

Learn = Callable[[FinetuneStep, Resume, Validation], Trained]


def tried(
    step: FinetuneStep, total: int, model: nn.ModuleDict, learn: Learn, validation: Validation, resume: Resume
) -> dict[float, float]:
    """What each rate of a step validates at; the model's weights are as before.

    Args:
        total: the step's number of optimiser steps.
        model: the encoder and the heads that ``learn`` trains in place.
        learn: trains as a step says, and validates at the end.
        resume: trials that are finished are kept in its folder, and not repeated.
    """
    start = {name: value.detach().clone() for name, value in model.state_dict().items()}
    found = {}
    for rate in step.learning_rates:
        state = resume.state / f"rate-{rate:g}"
        record = resume.state / f"rate-{rate:g}.json"
        if not record.is_file():
            changes = {"learning_rate": rate, "steps": max(1, total // PART), "epochs": None}
            done = learn(step.model_copy(update=changes), resume._replace(state=state), validation)
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


def mean_cosine(before: np.ndarray, after: np.ndarray) -> float:
    """How near vectors [N, D] have stayed to what they were: the mean of their cosines."""
    norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    return float(np.mean(np.einsum("nd,nd->n", before, after, dtype=np.float64) / np.maximum(norms, 1e-12)))


def facts(scores: dict[float, float], chosen: float, validated: float, cosine: float) -> dict[str, float]:
    """What a manifest says of it: the chosen rate, what each validated at, and how far vectors have moved."""
    at = {f"validation_at_{rate:g}": round(score, 6) for rate, score in scores.items()}
    rest = {"learning_rate": chosen, "validation_before": round(validated, 6), "cosine_to_start": round(cosine, 6)}
    return rest | at

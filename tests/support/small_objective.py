"""Objectives on small stores and a small encoder, for tests."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from encore import objectives
from encore.data import vocabulary
from encore.models import checkpoint
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.heads import initialise
from encore.objectives.parts.attention import AttendedTexts, attend
from encore.training.randomness import generator
from tests.support import small_store

STEP = {
    "kind": "pretrain",
    "collection": "made-up",
    "steps": 10,
    "batch": 8,
    "learning_rate": 1e-3,
    "length": 48,
    "query_length": 24,
    "source": "a test",
}


SETS = {"skip_share": 0.0, "least_count": 1, "subsampling": 1.0, "sampled_words": 40}
SMALL = {
    "costa": {"min_tokens": 1},
    "prop": SETS,
    "bprop": {"skip_share": 0.0, "least_words": 3, "drawn_words": "content"},
}


def each(*quick: str) -> list[Any]:
    """The names of all objectives, for a test that is slow for all but some."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in objectives.names()]


def make(name: str, store: Any = None, **fields: Any) -> Any:
    """An objective on a store, texts of any length allowed, its preparation made."""
    step = objectives.fields({**STEP, "objective": name, **SMALL.get(name, {}), **fields})
    store = store or small_store.random_store()
    return objectives.load(name)(step, store, prepared(name, step, store))


def given_states(states: torch.Tensor, mask: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """An encoder's ``forward`` that gives texts, which come in parts by length, their rows of states [B, L, H]."""
    rows = cycle(torch.argsort(mask.sum(1), stable=True).tolist())
    return lambda ids, _: states[list(islice(rows, len(ids))), : ids.shape[1]]


def prepared(name: str, step: Any, store: Any) -> Path | None:
    """A folder with an objective's preparation, if it has one; it lives as long as the process."""
    preparation = objectives.load(name).preparation(step)
    if preparation is None:
        return None
    output = _folder()
    preparation.write(store, output, attention_to(store, preparation) if preparation.reads_attention else None)
    return output


def attention_to(store: Any, preparation: Any, output: Path | None = None) -> Path:
    """What the small model attends to in the texts that a preparation reads."""
    texts = AttendedTexts(**{name: getattr(preparation, name) for name in AttendedTexts.model_fields})
    output = output or _folder()
    attend(texts, store, parent(), output, output / "state")
    return output


@cache
def parent() -> Path:
    """The folder of a small model."""
    output = _folder()
    for file in vocabulary.FILES:
        (output / file).write_text("{}")
    checkpoint.save_model(encoder(), {}, output / "model", output)
    return output / "model"


def _folder() -> Path:
    output = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, output, ignore_errors=True)
    return Path(output)


def encoder(**fields: Any) -> Encoder:
    torch.manual_seed(0)
    shape = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "max_length": 64, "dropout": 0.0, **fields}
    return initialise(Encoder(EncoderConfig(vocabulary=len(small_store.PIECES), **shape))).eval()


def batch_of(objective: Any, indices: range = range(8), epoch: int = 0) -> tuple[dict, dict[str, torch.Tensor]]:
    arrays = objective.collate([objective.example(i, generator(0, "example", epoch, i)) for i in indices])
    return arrays, {name: torch.from_numpy(array) for name, array in arrays.items()}


def heads_of(objective: Any, model: Encoder) -> nn.ModuleDict:
    torch.manual_seed(1)
    return initialise(objective.heads(model)).eval()

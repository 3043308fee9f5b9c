"""The parts of ``gpu.py`` that train: whether batches come in time, and fine-tuning as the papers do it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from encore.config.finetuning import FinetuneStep
from encore.data.tokens import TokenStore
from encore.finetuning.contrastive import Contrastive
from encore.finetuning.queries import Query
from encore.models.start import initial_encoder
from harness import ours, steps, teachers, texts, timing
from harness.figures import rounded
from harness.setting import Setting, device

Facts = dict[str, Any]
VOCABULARY = 30522
FED = ("mlm", "enhanced")  # the usual objective, and that whose batches take longest to make
IN_PARTS = 4  # of a batch, with gradient caching
MADE_UP = {
    "kind": "finetune",
    "collection": "made-up",
    "negatives": "bm25",
    "source": "the benchmark's own",
    "learning_rate": 1e-5,
    "warmup": 0,
    "steps": 1,
}
POOL = 16  # batches in an epoch, those that one worker makes at a time


def precision() -> str:
    """What a GPU trains in, and a CPU."""
    return "bf16" if device().type == "cuda" else "fp32"


def setting_of(sizes: Facts, length: int, full: bool) -> Setting:
    """The model and the batch of a part, in the device's usual precision."""
    return Setting(sizes["model"], VOCABULARY, length, sizes["batch"], full, precision(), 1, "wall", 1, 1)


def data(sizes: Facts) -> Facts:
    """MLM and the objective that is slowest to feed, their batches made by several processes.

    Returns:
        A row of figures for each of them, as ``steps.Steps.row`` gives it: under ``full`` for the longest texts, under
        ``packed`` for texts as MS MARCO's, of which a GPU takes most a second.
    """
    shapes = {"full": setting_of(sizes, sizes["length"], full=True)}
    shapes["packed"] = setting_of(sizes, sizes["passage_lengths"][0], full=False)
    best = timing.peak("wall", precision())
    found = {
        shape: [{"objective": name, **_pretrained(name, setting, sizes).row(setting.batch, best)} for name in FED]
        for shape, setting in shapes.items()
    }
    return {"setting": shapes["full"].to_json() | {"workers": sizes["workers"]}, **found}


def _pretrained(name: str, setting: Setting, sizes: Facts) -> steps.Steps:
    """Steps of an objective on texts of its own."""
    step, encoder = ours.step_of(name, {}, setting), initial_encoder(setting.shape(), 0)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        store = texts.write(Path(folder), POOL * setting.batch, setting.length, VOCABULARY, setting.full)
        task, counts = ours.load(step, store), (sizes["warm"], sizes["steps"], sizes["workers"])
        return steps.measured(task, encoder, task.heads(encoder), step, setting.numerics(), *counts)


def finetuning(sizes: Facts) -> Facts:
    """Queries with a positive and negatives each, contrasted over the batch: the papers' passages, and shorter ones.

    Once more in parts, as where memory is small. ``time`` is over that of the first.
    """
    usual, shorter = sizes["passage_lengths"]
    arms = (("whole batch", usual, 1), ("in parts", usual, IN_PARTS), ("shorter passages", shorter, 1))
    rows = [{"arm": name, "length": length, **_finetuned(sizes, length, parts)} for name, length, parts in arms]
    for row in rows:
        row["time"] = rounded(row["step_ms"] / rows[0]["step_ms"])
    return {"setting": setting_of(sizes, usual, full=False).to_json(), "rows": rows}


def _finetuned(sizes: Facts, length: int, parts: int) -> Facts:
    """Figures of fine-tuning with passages of at most ``length`` tokens, a batch in so many parts."""
    setting = setting_of(sizes, length, full=False)
    step = step_of(sizes, length)
    with tempfile.TemporaryDirectory() as folder:
        store, queries = judged(Path(folder), sizes, length)
        encoder = initial_encoder(setting.shape(), 0)
        numerics = setting.numerics() | {"micro_batch": -(-step.batch // parts)}
        task = Contrastive(step, queries, store)
        its = steps.measured(task, encoder, nn.ModuleDict(), step, numerics, sizes["warm"], sizes["steps"])
    row = its.row(step.batch, timing.peak("wall", setting.precision))
    queries_per_second = row.pop("samples_per_second")
    return {
        "steps_per_second": rounded(1 / its.seconds.wall),
        "queries_per_second": queries_per_second,
        "passages_per_second": rounded(queries_per_second * (1 + step.per_query)),
        **row,
    }


def cross_encoder(sizes: Facts) -> Facts:
    """Distillation from a cross-encoder that reads every query with every passage of a batch, the student in parts."""
    batch, length, query_length = sizes["distilled"]
    setting = setting_of(sizes | {"batch": batch}, length, full=True)
    lengths = {"query_length": query_length, "length": length}
    step = FinetuneStep.model_validate({**MADE_UP, **lengths, "batch": batch, "per_query": 1, "loss": "kl-in-batch"})
    with tempfile.TemporaryDirectory() as folder:
        store, queries = texts.write_judged(Path(folder), batch, length, query_length, VOCABULARY, setting.full)
        encoder = initial_encoder(setting.shape(length + query_length), 0)
        task = teachers.CrossEncoderOverTheBatch(step, queries, store, encoder)
        numerics = setting.numerics() | {"micro_batch": -(-batch // IN_PARTS)}
        its = steps.measured(task, encoder, nn.ModuleDict(), step, numerics, warm=1, count=1)
    return {"setting": setting.to_json(), **its.row(batch, timing.peak("wall", setting.precision))}


def step_of(sizes: Facts, length: int) -> FinetuneStep:
    """The papers' step on MS MARCO, with passages of that length."""
    fields = {"batch": sizes["batch"], "per_query": sizes["negatives"], "query_length": sizes["query_length"]}
    return FinetuneStep.model_validate({**MADE_UP, **fields, "length": length})


def judged(folder: Path, sizes: Facts, length: int) -> tuple[TokenStore, list[Query]]:
    """Queries for some batches, with one negative of their own; what else a batch brings is drawn from all passages."""
    return texts.write_judged(folder, POOL * sizes["batch"], length, sizes["query_length"], VOCABULARY, full=False)

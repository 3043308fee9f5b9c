"""The same fine-tuning through sentence-transformers: its trainer, its MultipleNegativesRankingLoss, its model."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # it tokenises in every batch, on as many threads as ours: one

import torch
import transformers
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.sampler import BatchSamplers, DefaultBatchSampler
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import nn
from torch.utils.data import SequentialSampler

from encore.models import embed
from encore.models.encoder import Encoder
from encore.training import machine
from harness.recipe import Recipe
from harness.timing import Seconds, time_of

Batches = Literal["ours", "own"]


class Done(NamedTuple):
    encoder: Encoder
    training: Seconds
    data: Seconds  # the part of it in which batches are made: texts to ids


class Peer:
    """sentence-transformers with the recipe's hyper-parameters."""

    def __init__(self, recipe: Recipe, scale: float | None = None) -> None:
        """Without a scale, that of the recipe: 1 / temperature."""
        self.recipe = recipe
        self.scale = scale or 1 / recipe.step.temperature

    def train(self, texts: Sequence[Sequence[str]], batches: Batches, seed: int) -> Done:
        """Train on (query, positive, negative ...) texts, in the given order or in batches of its own making.

        Its own batches are those of ``NO_DUPLICATES``, which it recommends for this loss: no text twice in one.
        """
        machine.prepare(self.recipe.numerics)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        rows = dataset(texts)
        with tempfile.TemporaryDirectory() as output:
            model, loss = self.open()
            trainer = SentenceTransformerTrainer(
                model=model,
                args=self._arguments(output, batches, seed),
                train_dataset=rows,
                loss=loss,
                data_collator=self.collator(model),
            )
            trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
            training = time_of(trainer.train)
            data = time_of(lambda: [self.collator(model)(part) for part in _cut(rows, self.recipe.step.batch)])
        return Done(self.encoder(model), training, data)

    def open(self) -> tuple[SentenceTransformer, MultipleNegativesRankingLoss]:
        """The model of the recipe's start, as any user opens it, and the loss."""
        model = SentenceTransformer(str(self.recipe.start), device="cuda" if torch.cuda.is_available() else "cpu")
        model.max_seq_length = self.recipe.step.length
        return model, MultipleNegativesRankingLoss(model, scale=self.scale)

    def collator(self, model: SentenceTransformer) -> SentenceTransformerDataCollator:
        """What makes a batch: queries are cut at their own length, as ours are."""
        return SentenceTransformerDataCollator(
            preprocess_fn=model.preprocess,
            router_mapping={"query": "query"},
            max_length={"query": self.recipe.step.query_length},
        )

    def encoder(self, model: SentenceTransformer) -> Encoder:
        """Our encoder with the weights that it ended with, for one search and one evaluator of both."""
        encoder = embed.load_for_tokens(self.recipe.start, self.recipe.store)
        trained = self.trained_in(model).state_dict()
        encoder.load_state_dict({name: trained[name].cpu() for name in encoder.state_dict()})
        return encoder

    @staticmethod
    def trained_in(model: SentenceTransformer) -> nn.Module:
        """The encoder of theirs, whose weights have the names of ours."""
        found = model[0].auto_model
        assert isinstance(found, nn.Module)
        return found

    def _arguments(self, output: str, batches: Batches, seed: int) -> SentenceTransformerTrainingArguments:
        step, count = self.recipe.step, self.recipe.steps
        return SentenceTransformerTrainingArguments(
            output_dir=output,
            max_steps=count,
            per_device_train_batch_size=step.batch,
            learning_rate=step.learning_rate,
            warmup_steps=math.ceil(step.warmup * count) if step.warmup < 1 else int(step.warmup),
            lr_scheduler_type=step.schedule,
            weight_decay=step.weight_decay,
            max_grad_norm=step.max_grad_norm,
            bf16=self.recipe.numerics["precision"] == "bf16",
            seed=seed,
            batch_sampler=in_order if batches == "ours" else BatchSamplers.NO_DUPLICATES,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )


def in_order(dataset: Dataset, **arguments: Any) -> DefaultBatchSampler:
    """The batches as the rows stand."""
    return DefaultBatchSampler(SequentialSampler(dataset), **arguments)


def dataset(texts: Sequence[Sequence[str]]) -> Dataset:
    """A column for queries, one for positives, and one for each negative of a query."""
    names = ["query", "positive", *(f"negative_{number}" for number in range(1, len(texts[0]) - 1))]
    return Dataset.from_dict(dict(zip(names, map(list, zip(*texts, strict=True)), strict=True)))


def _cut(rows: Dataset, size: int) -> list[list[dict[str, str]]]:
    found = list(rows)
    return [found[start : start + size] for start in range(0, len(found), size)]

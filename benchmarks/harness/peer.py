"""Masked language modelling as Hugging Face's libraries do it by themselves: the padded standard recipe."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn
from transformers import BertConfig, BertForMaskedLM, DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from encore.data.tokens import TokenStore
from encore.models.checkpoint import bert_config
from encore.models.encoder import Encoder
from encore.training.task import Arrays
from harness.setting import Setting, device
from harness.timing import Seconds, now


class Watch(transformers.TrainerCallback):
    """Notes when each of these steps has ended."""

    def __init__(self, numbers: Collection[int]) -> None:
        self.numbers, self.moments = numbers, list[Seconds]()

    def on_step_end(self, _: Any, state: transformers.TrainerState, *__: Any, **___: Any) -> None:
        if state.global_step in self.numbers:
            self.moments.append(now())


class Peer:
    """``BertForMaskedLM(labels=)`` on batches of ``DataCollatorForLanguageModeling``, trained by ``Trainer``.

    Without the package accelerate, which ``Trainer`` needs, by a loop of the same steps that does nothing else.
    """

    def __init__(self, setting: Setting, texts: list[np.ndarray], store: TokenStore, encoder: Encoder, head: nn.Module):
        self.setting = setting
        self.name = "Trainer" if find_spec("accelerate") else "minimal loop (accelerate is missing)"
        self.model: nn.Module = BertForMaskedLM(BertConfig(**bert_config(encoder.config)))
        self.model.load_state_dict(_weights(encoder, head))
        tokenizer = PreTrainedTokenizerFast.from_pretrained(store.tokenizer_folder)
        self.collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
        special = store.special
        self.rows = [{"input_ids": [special.cls, *text.tolist(), special.sep]} for text in texts]
        self.steps: list[Seconds] = []

    def measure(self) -> None:
        """An epoch that only warms up, and one that counts."""
        torch.set_num_threads(self.setting.threads)
        count = self.setting.steps
        watch = Watch((count, 2 * count))
        self._trainer(watch) if self.name == "Trainer" else self._loop(watch)
        begun, ended = watch.moments
        self.steps.append((ended - begun) / count)

    def batch(self) -> tuple[dict[str, torch.Tensor], Arrays]:
        """A batch of the collator, and the same for our own objective."""
        batch = self.collator(self.rows[: self.setting.batch])
        labels = batch["labels"].numpy().ravel()
        masked = np.flatnonzero(labels >= 0)
        ours = {"ids": batch["input_ids"].numpy(), "mask": batch["attention_mask"].numpy().astype(bool)}
        return dict(batch), {**ours, "masked": masked, "labels": labels[masked]}

    def loss(self, batch: dict[str, torch.Tensor]) -> float:
        """Of this batch, with the weights as they are, without dropout."""
        self.model.to(device()).eval()
        with torch.no_grad():
            return float(self.model(**{name: tensor.to(device()) for name, tensor in batch.items()}).loss)

    def _trainer(self, watch: Watch) -> None:
        with tempfile.TemporaryDirectory() as output:
            arguments = transformers.TrainingArguments(
                output_dir=output,
                per_device_train_batch_size=self.setting.batch,
                max_steps=2 * self.setting.steps,
                learning_rate=1e-4,
                weight_decay=0.01,
                bf16=self.setting.precision == "bf16",
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                seed=0,
            )
            trainer = transformers.Trainer(
                self.model, arguments, data_collator=self.collator, train_dataset=self.rows, callbacks=[watch]
            )
            trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
            trainer.train()

    def _loop(self, watch: Watch) -> None:
        """What a Trainer does at the least: collate, forward, backward, clip, AdamW."""
        model = self.model.to(device()).train()
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
        size, steps = self.setting.batch, self.setting.steps
        for step in range(2 * steps):
            rows = self.rows[step % steps * size :][:size]
            batch = {name: tensor.to(device()) for name, tensor in self.collator(rows).items()}
            with torch.autocast(device().type, torch.bfloat16, enabled=self.setting.precision == "bf16"):
                loss = model(**batch).loss
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            watch.on_step_end(None, transformers.TrainerState(global_step=step + 1))


def _weights(encoder: Encoder, head: nn.Module) -> dict[str, torch.Tensor]:
    """Ours under the names of ``BertForMaskedLM``, which repeats two of them for its decoder."""
    own = {f"bert.{name}": tensor for name, tensor in encoder.state_dict().items()}
    own |= {f"cls.predictions.{name}": tensor for name, tensor in head.state_dict().items()}
    own["cls.predictions.decoder.weight"] = own["bert.embeddings.word_embeddings.weight"]
    own["cls.predictions.decoder.bias"] = own["cls.predictions.bias"]
    return own

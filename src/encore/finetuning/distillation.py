"""Fine-tuning on teachers' scores of judged queries and their passages, without a term of the judgments themselves.

Over pairs a student learns the scores of a positive and a negative at a time; over the batch, those of all passages of
the batch (TCT-ColBERT, section 3), which a teacher's vectors, computed once, give for any batch. Several teachers count
by the mean of their scores. Teachers' scores are outside of any graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from encore.config.finetuning import FinetuneStep
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.queries import Example, Query, filled
from encore.finetuning.retrieval_task import RetrievalTask
from encore.finetuning.teachers.outputs import TRIPLES, PairScores, TextVectors
from encore.training.task import Arrays, ForwardOutput

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder


class Distillation(RetrievalTask):
    """Judged queries whose passages were all shown to teachers."""

    term = "distillation"

    def __init__(
        self, step: FinetuneStep, queries: list[Query], store: TokenStore, teacher_outputs: Sequence[Path]
    ) -> None:
        super().__init__(
            step, [filled(query, step.negatives_per_query, len(store.passages)) for query in queries], store
        )
        self.teacher_outputs = teacher_outputs


class PairDistillation(Distillation):
    """Teachers' scores of each query's own passages, by the divergence over pairs or the error of margins."""

    @cached_property
    def scores(self) -> list[PairScores]:
        """Those of each teacher."""
        return [PairScores(folder, len(self.store.passages)) for folder in self.teacher_outputs]

    def collate(self, examples: list[Example]) -> Arrays:
        """As any batch of judged queries, with ``teacher`` [B, P] float32, the mean of teachers' scores."""
        batch = super().collate(examples)
        rows = np.array([example.query.row for example in examples])
        scores = [teacher.of(rows, batch["passages"]) for teacher in self.scores]
        return {**batch, "teacher": np.asarray(np.mean(scores, axis=0), dtype=np.float32)}

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss, a scalar and a mean over examples: a query learns from its own passages alone, scores [B, P]."""
        import torch

        from encore.models.precision import at_least_float32
        from encore.training import losses

        queries, vectors = map(at_least_float32, self.embed(encoder, batch))
        with torch.autocast(queries.device.type, enabled=False):
            student = torch.einsum("bd,bpd->bp", queries, vectors) / self.step.temperature
            teacher = batch["teacher"].to(student.dtype)
            if self.step.loss == "margin-mse":
                loss = losses.margin_mse(student, teacher / self.step.teacher_temperature)
            else:
                loss = losses.kl_over_pairs(student, teacher, self.step.teacher_temperature)
        return ForwardOutput({self.term: loss}, {})


class PublishedDistillation(PairDistillation):
    """The triples of a published file of scores, each an example; all lines count, or those of the step's sample."""

    def __init__(
        self, step: FinetuneStep, queries: list[Query], store: TokenStore, teacher_outputs: Sequence[Path]
    ) -> None:
        super().__init__(step, queries, store, teacher_outputs)
        self.of_row = {query.row: query for query in self.queries}
        triples = self.scores[0].triples
        self.lines = np.flatnonzero(np.isin(triples[:, 0], list(self.of_row)))

    def __len__(self) -> int:
        return len(self.lines)

    def example(self, index: int, rng: np.random.Generator) -> Example:
        """A line's query, positive and negative; nothing is drawn."""
        query, *passages = self.scores[0].triples[self.lines[index]].tolist()
        return Example(self.of_row[query], passages)


class BatchDistillation(Distillation):
    """Teachers' scores of all passages of the batch, or of the query's pool in it, from their vectors."""

    @cached_property
    def vectors(self) -> list[dict[str, TextVectors]]:
        """Those of each teacher, of queries and of passages."""
        return [
            {name: TextVectors(folder, name) for name in ("queries", "passages")} for folder in self.teacher_outputs
        ]

    def collate(self, examples: list[Example]) -> Arrays:
        """As any batch of judged queries, with the vectors of each teacher.

        Returns:
            Beside the batch, for teacher t ``teacher<t>_queries`` [B, I, D] and ``teacher<t>_passages`` [B, P, J, D],
            and which of these vectors are real, ``…_real``, bool; I and J are the same in every batch.
        """
        batch = super().collate(examples)
        rows = {"queries": np.array([example.query.row for example in examples]), "passages": batch["passages"]}
        for number, teacher in enumerate(self.vectors):
            for name, vectors in teacher.items():
                field = f"teacher{number}_{name}"
                batch[field], batch[f"{field}_real"] = vectors.padded(rows[name])
        return batch

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """``queries`` [B, D], ``vectors`` [B, P, D] and the teachers' vectors of both."""
        queries, vectors = self.embed(encoder, batch)
        given = {name: batch[name] for name in batch if name.startswith("teacher")}
        return ForwardOutput({}, {"queries": queries, "vectors": vectors, **given})

    def batch_loss(self, embeddings: dict[str, Tensor]) -> dict[str, Tensor]:
        """The divergence over the passages of the batch; scores are computed in fp32 at least."""
        import torch

        from encore.models.precision import at_least_float32
        from encore.training import losses

        queries, vectors = (at_least_float32(embeddings[name]) for name in ("queries", "vectors"))
        size = self.step.in_batch_group or len(queries)
        with torch.autocast(queries.device.type, enabled=False):
            terms = []
            for first in range(0, len(queries), size):
                pool = slice(first, first + size)
                student = queries[pool] @ vectors[pool].flatten(0, 1).T / self.step.temperature
                teacher = self._teachers({name: row[pool] for name, row in embeddings.items()}).to(student.dtype)
                terms.append(losses.kl_over_pool(student, teacher, self.step.teacher_temperature) * len(student))
        return {self.term: torch.stack(terms).sum() / len(queries)}

    def _teachers(self, rows: dict[str, Tensor]) -> Tensor:
        """The mean of teachers' scores [B, B * P] of a pool; of one vector a text, the largest product is the only."""
        import torch

        from encore.models.late_interaction import max_sim
        from encore.models.precision import at_least_float32

        with torch.no_grad():
            scores = []
            for teacher in range(len(self.vectors)):
                queries, passages = (
                    at_least_float32(rows[f"teacher{teacher}_{name}"]) for name in ("queries", "passages")
                )
                real = [rows[f"teacher{teacher}_{name}_real"] for name in ("queries", "passages")]
                scores.append(max_sim(queries, real[0], passages.flatten(0, 1), real[1].flatten(0, 1)))
            return torch.stack(scores).mean(dim=0)


TASKS: dict[str, type[Distillation]] = {
    "kl-pairwise": PairDistillation,
    "margin-mse": PairDistillation,
    "kl-in-batch": BatchDistillation,
}


def distillation(
    step: FinetuneStep, queries: list[Query], store: TokenStore, teacher_outputs: Sequence[Path]
) -> Distillation:
    """The task of a step that has teachers; ``teacher_outputs`` are the folders of their scores or vectors.

    Raises:
        EncoreError: there are none.
    """
    if not teacher_outputs:
        raise EncoreError(f"loss {step.loss} learns from teachers, and there are none; name some in `teachers`")
    published = (teacher_outputs[0] / TRIPLES).is_file()
    task = PublishedDistillation if published else TASKS[step.loss]
    return task(step, queries, store, teacher_outputs)

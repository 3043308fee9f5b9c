"""Fine-tuning on teachers' scores of judged queries and their passages, without a term of the judgments themselves.

Over pairs a student learns the scores of a positive and a negative at a time; over the batch, those of all passages of
the batch (TCT-ColBERT, section 3), which a teacher's vectors, computed once, give for any batch. Several teachers count
by the mean of their scores. Teachers' scores are outside of any graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from encore.config.finetuning import FinetuneStep
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.queries import Example, Query, filled
from encore.finetuning.retrieval_task import RetrievalTask
from encore.finetuning.teachers.outputs import TRIPLES, PairScores, TextVectors, has_vectors_alone
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
        """The arrays of judged queries, and ``teacher`` [B, P] float32, the mean of teachers' scores."""
        batch = super().collate(examples)
        return {**batch, "teacher": self.taught(examples, batch["passages"])}

    def taught(self, examples: list[Example], passages: np.ndarray) -> np.ndarray:
        """The mean of the teachers' scores of passages [B, P] of each example, float32 [B, P]."""
        rows = np.array([example.query.row for example in examples])
        scores = [teacher.of(rows, passages) for teacher in self.scores]
        return np.asarray(np.mean(scores, axis=0), dtype=np.float32)

    def example(self, index: int, rng: np.random.Generator) -> Example:
        """An example of any task, or one with negatives from bins of the teachers' margins (TAS-B, section 3.2)."""
        if not self.step.margin_bins:
            return super().example(index, rng)
        query = self.queries[index]
        passages = np.array([[int(rng.choice(query.positives)), *query.negatives]])
        scores = self.taught([Example(query, [])], passages)[0]
        chosen = balanced(scores[0] - scores[1:], self.step.margin_bins, self.step.negatives_per_query, rng)
        return Example(query, passages[0, [0, *(1 + chosen)]].tolist())

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss, a scalar and a mean over examples: a query learns from its own passages alone, scores [B, P]."""
        return ForwardOutput({self.term: self.of_pairs(*self.embed(encoder, batch), batch["teacher"])}, {})

    def of_pairs(self, queries: Tensor, vectors: Tensor, teacher: Tensor) -> Tensor:
        """The loss of queries [B, D] with their own passages [B, P, D], which teachers scored [B, P]."""
        import torch

        from encore.models.precision import at_least_float32
        from encore.training import losses

        queries, vectors = map(at_least_float32, (queries, vectors))
        with torch.autocast(queries.device.type, enabled=False):
            student = torch.einsum("bd,bpd->bp", queries, vectors) / self.step.temperature
            teacher = teacher.to(student.dtype)
            if self.step.loss == "margin-mse":
                return losses.margin_mse(student, teacher / self.step.teacher_temperature)
            if self.step.loss == "residual":
                return losses.residual_margin(student, teacher / self.step.teacher_temperature)
            return losses.kl_over_pairs(student, teacher, self.step.teacher_temperature)


def balanced(margins: np.ndarray, bins: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Places among margins [n], int64 [count]: first a bin of those that are not empty, then a place in it.

    Bins are of equal width between the smallest and the largest margin.
    """
    low, high = margins.min(), margins.max()
    places = np.minimum((margins - low) / max(high - low, np.finfo(np.float32).tiny) * bins, bins - 1).astype(int)
    return np.array([rng.choice(np.flatnonzero(places == each)) for each in rng.choice(np.unique(places), count)])


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
        """The arrays of judged queries, and the vectors of each teacher.

        Returns:
            Besides the batch, for teacher t ``teacher<t>_queries`` [B, I, D] and ``teacher<t>_passages`` [B, P, J, D],
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

        queries, vectors = (at_least_float32(embeddings[name]) for name in ("queries", "vectors"))
        size = self.step.in_batch_group or len(queries)
        with torch.autocast(queries.device.type, enabled=False):
            terms = []
            for first in range(0, len(queries), size):
                pool = slice(first, first + size)
                student = queries[pool] @ vectors[pool].flatten(0, 1).T / self.step.temperature
                teacher = self._teachers({name: row[pool] for name, row in embeddings.items()}).to(student.dtype)
                terms.append(self.of_pool(student, teacher) * len(student))
        return {self.term: torch.stack(terms).sum() / len(queries)}

    def of_pool(self, student: Tensor, teacher: Tensor) -> Tensor:
        """The loss of scores [B, B * P] of a pool, a scalar."""
        from encore.training import losses

        return losses.kl_over_pool(student, teacher, self.step.teacher_temperature)

    def _teachers(self, rows: dict[str, Tensor]) -> Tensor:
        """The mean of teachers' scores [B, B * P] of a pool; of one vector a text, the largest product is the only."""
        import torch

        from encore.models.late_interaction import max_sim

        with torch.no_grad():
            scores = []
            for teacher in range(len(self.vectors)):
                queries, real = (rows[f"teacher{teacher}_queries{part}"] for part in ("", "_real"))
                passages = (rows[f"teacher{teacher}_passages{part}"].flatten(0, 1) for part in ("", "_real"))
                scores.append(max_sim(queries, real, *passages))
            return torch.stack(scores).mean(dim=0)


class DualDistillation(BatchDistillation):
    """Margins of a query's own passages by teachers of pairs, and to others' by teachers of the batch (TAS-B, 3.3)."""

    def __init__(
        self, step: FinetuneStep, queries: list[Query], store: TokenStore, teacher_outputs: Sequence[Path]
    ) -> None:
        of_batch = list(filter(has_vectors_alone, teacher_outputs))
        super().__init__(step, queries, store, of_batch)
        self.pairs = PairDistillation(step, queries, store, [each for each in teacher_outputs if each not in of_batch])
        fewest = 1 if step.margin_bins or step.replacement else step.negatives_per_query  # others have no scores
        self.queries = self.pairs.queries = [each for query in self.queries if (each := self._scored(query, fewest))]
        if len(self.queries) < 2:
            raise EncoreError(
                f"teachers scored a positive and negatives ({fewest} or more) of {len(self.queries)} queries, and two "
                "are needed, as passages of one are compared with those of the other; make the scores again"
            )

    def _scored(self, query: Query, fewest: int) -> Query | None:
        """A query with those of its passages that every teacher of pairs scored; None if negatives are too few."""
        passages = np.array([*query.positives, *query.negatives])
        known = set(passages[np.all([each.has(query.row, passages) for each in self.pairs.scores], axis=0)].tolist())
        positives, negatives = (
            tuple(each for each in own if each in known) for own in (query.positives, query.negatives)
        )
        is_enough = positives and len(negatives) >= fewest
        return replace(query, positives=positives, negatives=negatives) if is_enough else None

    def example(self, index: int, rng: np.random.Generator) -> Example:
        """An example as distillation of pairs has it."""
        return self.pairs.example(index, rng)

    def collate(self, examples: list[Example]) -> Arrays:
        """The batch with both kinds of teachers."""
        batch = super().collate(examples)
        return {**batch, "teacher": self.pairs.taught(examples, batch["passages"])}

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss of pairs, a scalar, and what that of the batch needs."""
        rows = super().forward(encoder, heads, {name: batch[name] for name in batch if name != "teacher"}).embeddings
        return ForwardOutput({"pairs": self.pairs.of_pairs(rows["queries"], rows["vectors"], batch["teacher"])}, rows)

    def of_pool(self, student: Tensor, teacher: Tensor) -> Tensor:
        """The error of the margins to all passages of other queries."""
        from encore.training import losses

        return losses.margin_mse_in_batch(student, teacher / self.step.teacher_temperature)

    def loss_weights(self, progress: float) -> dict[str, float]:
        """That of the batch is the step's."""
        return {"pairs": 1.0, self.term: self.step.batch_weight}


TASKS: dict[str, type[Distillation]] = {
    "kl-pairwise": PairDistillation,
    "margin-mse": PairDistillation,
    "residual": PairDistillation,
    "kl-in-batch": BatchDistillation,
}


def distillation(
    step: FinetuneStep, queries: list[Query], store: TokenStore, teacher_outputs: Sequence[Path]
) -> Distillation:
    """The task of a step that has teachers; ``teacher_outputs`` are the folders of their scores or vectors."""
    if not teacher_outputs:
        raise EncoreError(f"loss {step.loss} learns from teachers, and there are none; name some in `teachers`")
    task = TASKS[step.loss]
    if issubclass(task, PairDistillation) and len({has_vectors_alone(folder) for folder in teacher_outputs}) == 2:
        task = DualDistillation
    elif (teacher_outputs[0] / TRIPLES).is_file():
        task = PublishedDistillation
    return task(step, queries, store, teacher_outputs)

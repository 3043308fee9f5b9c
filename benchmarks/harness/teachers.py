"""Fine-tuning with a teacher, in every way whose cost Table 1 of TCT-ColBERT compares, and with its answers kept.

Teachers that run in the loop are frozen: they see each batch without a backward pass, as the paper's do. Those of the
workflow run once, so that a student reads their answers (``encore.finetuning.distillation``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from encore.config.finetuning import FinetuneStep
from encore.data.tokens import TokenStore
from encore.finetuning.contrastive import Contrastive
from encore.finetuning.distillation import BatchDistillation, PairDistillation
from encore.finetuning.queries import Example, Query
from encore.finetuning.retrieval_task import RetrievalTask
from encore.finetuning.teachers.outputs import write_scores, write_vectors
from encore.models import flops, inputs, late_interaction
from encore.models.encoder import Encoder
from encore.training import losses
from encore.training.task import Arrays, ForwardOutput, part_numbers, text_parts
from harness import setting

TERM = "distillation"
DIMENSION = 128  # of a token's vector
TEMPERATURE = 0.25
AT_ONCE = 512  # pairs of a query and a passage that a cross-encoder reads


class ColbertInTheLoop(RetrievalTask):
    """A late-interaction teacher that embeds every batch: for pairs, or for all passages of the batch."""

    def __init__(self, step: FinetuneStep, queries: list[Query], store: TokenStore, teacher: Encoder) -> None:
        super().__init__(step, queries, store)
        self.teacher = frozen(teacher)
        torch.manual_seed(0)
        self.linear = frozen(late_interaction.token_head(teacher.config, DIMENSION)[late_interaction.NAME])

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        queries, vectors = self.embed(encoder, batch)
        asked, counted_asked, known, counted = self._tokens(batch)
        if self.step.loss == "kl-in-batch":
            said = late_interaction.max_sim(asked, counted_asked, known.flatten(0, 1), counted.flatten(0, 1))
            return ForwardOutput({TERM: losses.kl_over_pool(queries @ vectors.flatten(0, 1).T, said, TEMPERATURE)}, {})
        pairs = [
            late_interaction.max_sim(asked[i : i + 1], counted_asked[i : i + 1], known[i], counted[i])
            for i in range(len(asked))
        ]
        student = torch.einsum("bd,bpd->bp", queries, vectors)
        return ForwardOutput({TERM: losses.kl_over_pairs(student, torch.cat(pairs), TEMPERATURE)}, {})

    @torch.no_grad()
    def _tokens(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Token vectors of queries and of passages as ``max_sim`` takes them, the latter [B, P, J, D]."""
        ids, mask = batch["query_ids"], batch["query_mask"]
        asked = late_interaction.token_vectors(self.teacher, self.linear, ids, mask, normalised=False)
        found = [
            late_interaction.token_vectors(self.teacher, self.linear, part[0], part[1], normalised=True)
            for part in self.teacher.joined(text_parts(batch, "passage"))
        ]
        longest = max(counted.shape[1] for _, counted in found)
        vectors, counted = (
            torch.cat([_widened(one, longest) for one in column]) for column in zip(*found, strict=True)
        )
        return *asked, vectors[batch["places"]], counted[batch["places"]]

    def loss_weights(self, progress: float) -> dict[str, float]:
        return {TERM: 1.0}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The student's, and one forward pass of the teacher over the same texts with its scores."""
        names = ["query_ids", *(f"passage_ids_{i}" for i in part_numbers(batch, "passage"))]
        shapes = [batch[name].shape for name in names]
        forward = sum(flops.forward(self.teacher.config, *shape) for shape in shapes)
        tokens = sum(rows * length for rows, length in shapes)
        mapped = flops.product(tokens, self.teacher.config.hidden, DIMENSION)
        pairs = batch["passages"].size * (len(batch["passages"]) if self.step.loss == "kl-in-batch" else 1)
        scores = flops.product(shapes[0][1] * pairs, DIMENSION, max(length for _, length in shapes[1:]))
        return super().flops(encoder, batch) + forward + mapped + scores


class CrossEncoderInTheLoop(RetrievalTask):
    """A teacher that reads each query with each of its own passages as one text; all of the batch would be too many."""

    def __init__(self, step: FinetuneStep, queries: list[Query], store: TokenStore, teacher: Encoder) -> None:
        super().__init__(step, queries, store)
        self.teacher = frozen(teacher)
        torch.manual_seed(0)
        self.linear = frozen(nn.Linear(teacher.config.hidden, 1))

    def collate(self, examples: list[Example]) -> Arrays:
        """As any batch of judged queries, with ``joint_ids``, ``joint_mask`` and ``joint_segments``, [B * P, L]."""
        pairs = [(example.query.row, passage) for example in examples for passage in example.passages]
        return super().collate(examples) | self.joint(pairs)

    def joint(self, pairs: Sequence[tuple[int, int]]) -> Arrays:
        """Rows of queries and of passages as texts of two segments."""
        special, joint, second = self.store.special, [], []
        for row, passage in pairs:
            query = inputs.wrap(self.store.queries[row], self.step.query_length, special)
            other = inputs.wrap(self.store.passages[passage], self.step.length, special)[1:]
            joint.append(np.concatenate([query, other]))
            second.append(np.repeat([0, 1], [len(query), len(other)]))
        ids, mask = inputs.stack(joint, special.pad)
        return {"joint_ids": ids, "joint_mask": mask, "joint_segments": inputs.stack(second, 0)[0]}

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        queries, vectors = self.embed(encoder, batch)
        teachers = self.scores(batch).view(len(queries), -1)
        student = torch.einsum("bd,bpd->bp", queries, vectors)
        return ForwardOutput({TERM: losses.kl_over_pairs(student, teachers, TEMPERATURE)}, {})

    def loss_weights(self, progress: float) -> dict[str, float]:
        return {TERM: 1.0}

    @torch.no_grad()
    def scores(self, batch: dict[str, Tensor]) -> Tensor:
        """The teacher's scores of joint texts, [N]."""
        states = self.teacher(batch["joint_ids"], batch["joint_mask"], batch["joint_segments"])
        scores: Tensor = self.linear(states[:, 0])[:, 0]
        return scores

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The student's, and one forward pass of the teacher over all pairs."""
        return super().flops(encoder, batch) + flops.forward(self.teacher.config, *batch["joint_ids"].shape)


class CrossEncoderOverTheBatch(CrossEncoderInTheLoop):
    """One that reads each query with every passage of the batch, so many pairs at once that memory holds them."""

    def collate(self, examples: list[Example]) -> Arrays:
        """As any batch of judged queries, with the ``rows`` of these, [B]."""
        return RetrievalTask.collate(self, examples) | {"rows": np.array([example.query.row for example in examples])}

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        queries, vectors = self.embed(encoder, batch)
        whole = {name: batch[name] for name in ("rows", "passages")}
        return ForwardOutput({}, {"queries": queries, "vectors": vectors, **whole})

    def batch_loss(self, embeddings: dict[str, Tensor]) -> dict[str, Tensor]:
        queries, vectors = embeddings["queries"], embeddings["vectors"]
        rows, passages = embeddings["rows"].tolist(), embeddings["passages"].flatten().tolist()
        pairs = [(row, passage) for row in rows for passage in passages]
        with torch.autocast(queries.device.type, torch.bfloat16, enabled=queries.is_cuda):
            teachers = [self._scores_of(pairs[first : first + AT_ONCE]) for first in range(0, len(pairs), AT_ONCE)]
        scores = queries @ vectors.flatten(0, 1).T
        return {TERM: losses.kl_over_pool(scores, torch.cat(teachers).view_as(scores).float(), TEMPERATURE)}

    def _scores_of(self, pairs: Sequence[tuple[int, int]]) -> Tensor:
        arrays = self.joint(pairs).items()
        return self.scores({name: torch.from_numpy(array).to(setting.device()) for name, array in arrays})

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The student's, and one forward pass of the teacher over all pairs, as long as they may be."""
        pairs = len(batch["rows"]) * self.step.batch * batch["passages"].shape[1]
        length = self.step.query_length + self.step.length - 1
        return RetrievalTask.flops(self, encoder, batch) + flops.forward(self.teacher.config, pairs, length)


class Arm(NamedTuple):
    """A way to train: its label, the paper's increase over no teacher in percent, and how its task is made."""

    name: str
    paper: str
    task: Callable[[], RetrievalTask]


def arms(
    fields: dict[str, object], queries: list[Query], store: TokenStore, teacher: Encoder, folder: Path
) -> list[Arm]:
    """The baseline first. ``fields`` are those of a step without its loss; ``folder`` takes what is kept."""

    def step(loss: str) -> FinetuneStep:
        return FinetuneStep.model_validate(fields | {"loss": loss})

    pairs, batch = step("kl-pairwise"), step("kl-in-batch")
    write_kept(folder, queries, store, pairs)
    return [
        Arm("no teacher", "", lambda: Contrastive(step("contrastive"), queries, store)),
        Arm("pairwise, kept scores", "", lambda: PairDistillation(pairs, queries, store, [folder])),
        Arm("in-batch, kept ColBERT vectors", "", lambda: BatchDistillation(batch, queries, store, [folder])),
        Arm("pairwise, ColBERT in the loop", "32.7", lambda: ColbertInTheLoop(pairs, queries, store, teacher)),
        Arm("in-batch, ColBERT in the loop", "33.5", lambda: ColbertInTheLoop(batch, queries, store, teacher)),
        Arm(
            "pairwise, cross-encoder in the loop", "48.1", lambda: CrossEncoderInTheLoop(pairs, queries, store, teacher)
        ),
    ]


def write_kept(folder: Path, queries: list[Query], store: TokenStore, step: FinetuneStep) -> None:
    """What teachers said of all pairs and texts, made up: reading it costs the same whatever it is."""
    rng = np.random.default_rng(0)
    asked = np.array([query.row for query in queries])
    own = np.array([[*query.positives, *query.negatives] for query in queries])
    write_scores(folder, asked.repeat(own.shape[1]), own.ravel(), rng.normal(size=own.size))
    for name, rows, length in (("queries", asked, step.query_length), ("passages", np.unique(own), step.length)):
        lengths = np.minimum(getattr(store, name).lengths_of(rows), length - 2)
        vectors = (rng.normal(size=(many, DIMENSION)) / DIMENSION**0.5 for many in lengths.tolist())
        write_vectors(folder, name, rows, vectors, "token")


def frozen(module: Any) -> Any:
    """A copy that learns nothing, on the device that trains."""
    return copy.deepcopy(module).to(setting.device()).eval().requires_grad_(False)


def _widened(rows: Tensor, length: int) -> Tensor:
    """[n, L, *] -> [n, length, *], with zeros."""
    missing = rows.new_zeros(len(rows), length - rows.shape[1], *rows.shape[2:])
    return torch.cat([rows, missing], dim=1)

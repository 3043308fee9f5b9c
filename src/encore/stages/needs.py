"""What a job takes, by formulas, of what it is about: texts, queries and a model, counted or assumed.

Memory and disk follow from the formats: two bytes for a token, four for a parameter or a number of a vector, eight for
an offset or a line of a run. Seconds are on the low side of what was measured on a core of an AMD EPYC with other work
(docs/scales.md, docs/performance.md).
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from encore.config.datasets import draw_of, is_reported, role_of
from encore.config.entries import Step
from encore.models import flops
from encore.models.config import EncoderConfig

SENTENCE = 26.0  # word pieces of an English sentence: 20 words
FITTING = 0.95  # of its room is filled by a chunk that ends before the first sentence that does not fit
UNKNOWN_QUERIES = 1_000
ALL = "all"  # among the queries by split: those that shares are of
NO_MODEL = EncoderConfig(vocabulary=0, layers=0, hidden=0, heads=1, intermediate=0, max_length=0)
PLAIN = 0.1e9  # bytes of memory of Python
PROCESS = 0.32e9  # the same with torch; a job that computes on a GPU has CUDA's in addition
SPARE_MEMORY = 1.3  # times what the formulas say is requested
FP32 = 4
STATE = 4  # a parameter, its gradient and AdamW's two moments, each in fp32
TOGETHER = 256  # texts in one forward pass
WIDE = {"fp32": 2.0, "tf32": 2.0, "bf16": 1.4}  # over what a layer keeps in 16 bits throughout
LINES = 450e3  # of runs in a second: 0.5 million tuned, 0.6 to 1.9 mined


@dataclass(frozen=True)
class Texts:
    """How many texts there are, and their mean length in tokens, special ones not included."""

    count: float = 0.0
    mean: float = 0.0

    @property
    def tokens(self) -> float:
        """Tokens of all texts."""
        return self.count * self.mean

    def read(self, limit: float) -> float:
        """Tokens that a model reads of a text, cut to ``limit``, special ones included."""
        return min(self.mean + 2, limit)

    def packed(self, length: int, filled: float = 1.0, short: float = 0.0) -> "Texts":
        """The chunks that sections, or articles, are packed into (``objectives/parts/chunks.py``).

        If lengths X are exponentially distributed, one has ``E[ceil(X / c)] = 1 / (1 - exp(-c / mean))`` of c tokens.

        Args:
            filled: of a full chunk's room, the share that it fills on average; above 1, the rest is cut off.
            short: the share of chunks that are packed to a shorter length, any alike.
        """
        if not self.mean:
            return self
        room = max(length - 2, 1)
        count = self.count / -math.expm1(-filled * room * (1 - short / 2) / self.mean)
        return Texts(count, min(room, self.tokens / count / max(filled, 1.0)))

    def of_at_least(self, tokens: float) -> "Texts":
        """Those that are not shorter, of the same distribution: a share of ``exp(-tokens / mean)``."""
        return Texts(self.count * math.exp(-tokens / self.mean), self.mean + tokens) if self.mean else self


@dataclass
class CollectionSize:
    """The texts of a collection; ``assumed`` says which counts are, and ``notes`` which lengths."""

    passages: Texts = Texts()
    sections: Texts | None = None
    articles: Texts | None = None
    queries: dict[str, float] = field(default_factory=dict)  # by split
    query_tokens: float = 0.0  # of a query, special ones not included
    notes: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    @property
    def article_tokens(self) -> float:
        """Tokens of all articles."""
        return self.sections.tokens if self.sections else 0.0

    @property
    def tokens(self) -> float:
        """Tokens of all passages and articles."""
        return self.passages.tokens + self.article_tokens

    def chunks(self, fields: Mapping[str, Any]) -> Texts:
        """The texts that a step, or what prepares one, makes of a collection by its fields of packing."""
        packing, length = fields.get("packing", "section"), fields.get("length", sys.maxsize)  # no pair crosses one
        source = self.sections if packing == "section" else self.articles or self.sections
        filled = 1 + SENTENCE / 2 / max(length - 2, 1) if packing == "overfull" else FITTING
        texts = source.packed(length, filled, fields.get("short_texts", 0.0)) if source else self.passages
        return texts.of_at_least(fields.get("min_tokens", 0))

    def topics(self, split: str, most: int | None = None, share: float = 1.0) -> float:
        """How many queries a split has, or that share of them, or a sample."""
        if split not in self.queries and (part := _share(split)) is not None and ALL in self.queries:
            self.queries[split] = max(1.0, part * self.queries[ALL])
        if split not in self.queries:
            self.queries[split] = float(UNKNOWN_QUERIES)
            self.assumed.append(f"queries of {split} unknown, {UNKNOWN_QUERIES:,} assumed")
        found = share * self.queries[split]
        return min(found, most) if most else found


def _share(split: str) -> float | None:
    """``train-80-s1`` -> 0.72: the share of the questions that a split has, a tenth of those to train on validating."""
    draw = (draw_of(split) or "").split("-")[0]
    if not draw.isdigit():
        return None
    learned = int(draw) / 100
    return {"train": 0.9 * learned, "valid": 0.1 * learned}.get(role_of(split), 1 - learned)


@dataclass(frozen=True)
class Size:
    """What a job is about, and what it may use.

    Args:
        collection: that it reads, or makes.
        shape: of the model that it reads with, or trains.
        run: the spec of the run that it makes or reads.
        given: the specs of the folders that it is made from, by role.
        folder: the name of its own.
        share: of the judged queries, those that have negatives enough to be learned from.
        download: bytes that it fetches; ``here``: those of them that are there already.
        processes: that share GPUs' work; ``workers``: that make the batches of each.
        cores: that share the work of the processor, where a stage can.
        java: bytes that Java may take; ``gpu_memory``: those of a GPU.
    """

    collection: CollectionSize = field(default_factory=CollectionSize)
    shape: EncoderConfig = NO_MODEL
    run: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: str = ""
    share: float = 1.0
    download: float = 0.0
    here: float = 0.0
    processes: int = 1
    workers: int = 0
    cores: int = 1
    java: float = 2.0**30
    gpu_memory: float = math.inf

    @property
    def passages(self) -> float:
        """How many."""
        return self.collection.passages.count

    def asked(self, split: str, sample: int | None) -> float:
        """The queries of a split, or of a sample of it."""
        return self.collection.topics(split, sample, self.share)

    @property
    def queries(self) -> float:
        """The queries of its run."""
        return self.asked(self.run["split"], self.run["queries"]) if "split" in self.run else 0.0

    @property
    def lines(self) -> float:
        """The lines of its run."""
        return self.queries * self.run.get("depth", 0)

    @property
    def run_bytes(self) -> float:
        """Bytes of its run on the disk; one that is reported is also written as text."""
        return self.lines * (8 + 25 * is_reported(self.run["split"]))

    @property
    def parameters(self) -> float:
        """Those of its model."""
        return flops.parameters(self.shape)

    def reading_memory(self, length: float) -> float:
        """Bytes of reading texts without learning: weights, and a few states of one layer."""
        states = TOGETHER * length * (6 * self.shape.hidden + 2 * self.shape.intermediate)
        return FP32 * (self.parameters + states)

    def passage_tokens(self, most: int) -> float:
        """Tokens that are read of a passage, at most ``most``."""
        return self.collection.passages.read(most)

    def query_tokens(self, most: int) -> float:
        """Tokens that are read of a query, at most ``most``."""
        read = self.collection.query_tokens + self.shape.prefix + self.shape.separator
        return most if self.shape.augment else min(read, most)


@dataclass(frozen=True)
class Needs:
    """What a job takes.

    Args:
        memory: bytes of each process, with those of a Java that it starts; without those of a GPU.
        disk: bytes that stay.
        vectors: bytes that stay until they are searched (``keep_vectors``).
        checkpoint: bytes while it trains.
        operations: floating-point ones that a GPU does.
        precision: what they are computed in; without it, the run's.
        gpu_memory: bytes on each GPU, or in main memory without one.
        core_seconds: of the processor's part, on one core; ``cores`` share it.
        counts: what its manifest will say.
        notes: what a user should know.
    """

    memory: float = PLAIN
    disk: float = 0.0
    vectors: float = 0.0
    checkpoint: float = 0.0
    operations: float = 0.0
    precision: str = ""
    gpu_memory: float = 0.0
    core_seconds: float = 0.0
    cores: int = 1
    counts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Example(NamedTuple):
    """What is read of an example of a training.

    Args:
        texts: texts of ``length`` tokens that take as many operations.
        pieces: that a vocabulary head predicts.
        compared: numbers of the batch's texts that its own are multiplied with.
    """

    texts: float
    length: float
    pieces: float = 0.0
    compared: float = 0.0

    def operations(self, shape: EncoderConfig) -> float:
        """Floating-point operations, forward and backward: 6 for each parameter and token, and those of attention."""
        head = flops.mlm_head(shape, self.pieces)
        return flops.TRAINING * (self.texts * flops.forward(shape, 1, self.length) + head + 2 * self.compared)


def training_memory(
    step: Step, example: Example, size: Size, numerics: Mapping[str, Any]
) -> tuple[float, tuple[str, ...]]:
    """Bytes of a training on each GPU, and a note if a batch goes through the model in parts, halved until they fit.

    Args:
        example: of full length.
    """
    share = math.ceil(step.batch / size.processes)
    at_once = min(numerics.get("micro_batch") or share, share)
    while True:
        kept = at_once * activations(size.shape, example, numerics.get("precision", "fp32"))
        memory = FP32 * STATE * size.parameters + kept
        if memory <= size.gpu_memory or at_once == 1:
            return memory, (f"{at_once} of {share} examples at once",) if at_once < share else ()
        at_once = math.ceil(at_once / 2)


def activations(shape: EncoderConfig, example: Example, precision: str) -> float:
    """Bytes that a forward pass on an example leaves for the backward pass.

    A layer keeps about 18 widths and 4 inner widths a token in 16 bits (Korthikanti et al. 2022, section 4.1, without
    the attention matrices, which the fused kernels do not keep), and four with dropout; twice that in 32, and under
    autocast some stay in 32. A vocabulary head keeps four widths of each piece that it predicts; of its logits there is
    a block at a time, which is not counted.
    """
    if shape.architecture == "bow-mlp":
        return example.texts * (shape.hidden + shape.intermediate) * 12.0
    states = shape.layers * WIDE[precision] * (22 * shape.hidden + 4 * shape.intermediate)
    return example.texts * example.length * states + FP32 * 4 * example.pieces * shape.hidden

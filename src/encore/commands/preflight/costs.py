"""What a unit of work takes: bytes of memory and on the disk, seconds of a core, and what a machine's GPU can do.

The amounts are those of ``amounts.py``. Memory and disk follow from the formats: two bytes for a token, four for a
parameter or a number of a vector, eight for an offset or a line of a run. What is not listed takes next to nothing.
"""

import math
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from encore.commands.preflight.amounts import Amounts
from encore.config.validation import Share, Strict, checked, nearest, read_yaml
from encore.errors import EncoreError
from encore.storage.program_files import CATALOGUE

MACHINES = CATALOGUE / "machines.yaml"
CPU = "cpu"  # the entry without a GPU, which is taken without a name
PROCESS = 0.32e9  # bytes of memory of Python with torch; a job that computes on a GPU has CUDA's in addition
PLAIN = 0.1e9  # the same of one that has neither a model nor vectors

RUN: Amounts = {"lines": 8, "text_lines": 25}
NEGATIVES: Amounts = {"queries": 180}
WEIGHTS: Amounts = {"parameters": 4}
FETCHED: tuple[Amounts, Amounts] = ({}, {"unpacked": 1})
# Bytes of memory of a process and bytes that stay on the disk, for each unit of an amount, by stage or by rule.
BYTES: dict[str, tuple[Amounts, Amounts]] = {
    "attend": ({"parameters": 4, "text_tokens": 0.3}, {"text_tokens": 4}),
    "build_index": ({"aside": 1, "index": 1, "passages": 24}, {"index": 1, "passages": 30}),
    "collection": ({"passages": 48}, {"passage_tokens": 2, "article_tokens": 1}),
    "collection.wikipedia": ({"cores": 120e6, "article_tokens": 1.1}, {"article_tokens": 1}),
    "encode": ({"passages": 24, "parameters": 4}, {"vector_bytes": 1, "passages": 40}),
    "evaluate": ({"lines": 80}, {"queries": 21}),
    "fetch_checkpoint": FETCHED,
    "fetch_ir_datasets": FETCHED,
    "fetch_source": FETCHED,
    "finetune": ({"parameters": 12, "passages": 200}, WEIGHTS),
    "fuse": ({"lines": 400}, RUN),
    "lucene_index": ({"java": 1, "passages": 40}, {"tokens": 1}),
    # Hits take 190 bytes when they are put in order, but Java has ended by then and left more than that.
    "lucene_search": ({"java": 1, "at_once": 40, "lines": 18, "passages": 100}, RUN),
    "measure_latency": ({"java": 1, "vectors": 4, "passages": 24}, {}),
    "merged_negatives": ({"queries": 13_000}, NEGATIVES),
    "negatives": ({"lines": 12, "retrieved": 105}, NEGATIVES),
    "negatives_from_dataset": ({"queries": 13_000}, NEGATIVES),
    "negatives_from_file": ({"queries": 13_000}, NEGATIVES),
    "nested_corpora": ({"passages": 240}, {}),
    "predict_queries": ({"parameters": 4}, {"passages": 600}),
    "prepare": ({"text_tokens": 2.5}, {"text_tokens": 0.9}),
    "pretrain": ({"parameters": 12, "tokens": 0.35}, WEIGHTS),
    "rerank": ({"lines": 260, "passages": 48}, RUN),
    # Passages' vectors are read from their mapped file, a tile at a time.
    "search": ({"parameters": 4, "lines": 42, "passages": 72, "query_vectors": 1}, RUN),
    "search_index": ({"parameters": 4, "index": 1, "lines": 260, "passages": 72}, RUN),
    "start": ({"parameters": 8}, WEIGHTS),
    "teacher_scores": ({"passages": 72, "pairs": 40}, {"vectors": 4, "pairs": 12}),
    "tokenizer": ({"words": 650}, {}),
    "tokens": ({"passages": 60}, {"passages": 100, "tokens": 2}),
    "train_doc2query": ({"parameters": 12}, WEIGHTS),
    "tune_fusion": ({"lines": 130}, {}),
}
CHECKPOINT = {"pretrain": 24, "finetune": 36}  # bytes on the disk for a parameter, while it trains


class Throughput(NamedTuple):
    """Units of an amount in a second on one core, on the low side of what was measured."""

    stages: str
    amount: str
    a_second: float
    measured: str  # on two cores of an AMD EPYC with other work, unless it says otherwise


THROUGHPUTS = (
    Throughput("collection", "tokens", 2.5e6, "3.2 million: 8.8 million passages in 200 s; docs/scales.md"),
    Throughput("collection.wikipedia", "tokens", 80e3, "116,000 in each process, of small extracts of a dump"),
    Throughput("tokenizer", "tokens", 600e3, "550,000 of passages in docs/scales.md, 1.8 million of articles"),
    Throughput("tokens", "tokens", 300e3, "360,000 of 60,000 passages; 900,000 in docs/performance.md"),
    Throughput("prepare", "text_tokens", 500e3, "850,000 in each of 16 processes, of word sets"),
    Throughput("pretrain", "trained_examples", 6e3, "9,900 of costa, the slowest objective, in docs/performance.md"),
    Throughput("lucene_index", "tokens", 1e6, "1.5 million: 2.2 million passages in 108 s"),
    # Between 23 ms for a query in 8.8 million made-up passages and the 77 in MS MARCO's that Pyserini's pages print.
    Throughput("lucene_search", "ranked", 330e6, "670 million, and 620 of Wikipedia's text; docs/scales.md"),
    Throughput("lucene_search", "lines", 100e3, "90,000 to 120,000, whose ids Lucene unpacks; docs/scales.md"),
    Throughput(
        "search search_index evaluate negatives fuse tune_fusion", "lines", 450e3, "0.5 million tuned, 0.6 to 1.9 mined"
    ),
    Throughput("build_index", "vectors", 45e6, "80 million in 16 bits, 25 beyond memory; docs/scales.md"),
    Throughput("build_index", "grown", 2.2e9, "2.1 to 3.9e9; docs/scales.md"),
    Throughput("build_index", "clustered", 4e10, "4.0 to 5.4e10, of 60,000 and 120,000 vectors"),
    Throughput("search_index", "products", 10e9, "14e9, of vectors in 16 bits"),
    Throughput("search_index", "index", 450e6, "430 million bytes, whose digest is checked first; docs/scales.md"),
    Throughput("measure_latency", "scanned", 4e9, "9.7e9 bytes, one query at a time"),
)

CORE = 5e10  # operations of models and exact search in a second on one core; docs/preflight.md has what was measured


def memory(stage: str, amounts: Amounts) -> float:
    """Bytes of memory of each process of a job, with that of a Java that it starts."""
    with_torch = {"parameters", "vectors"} & amounts.keys()
    return (PROCESS if with_torch else PLAIN) + _bytes(stage, amounts, 0)


def disk(stage: str, amounts: Amounts) -> float:
    """Bytes that a job leaves on the disk."""
    return _bytes(stage, amounts, 1)


def _bytes(stage: str, amounts: Amounts, kind: int) -> float:
    units = BYTES.get(stage) or BYTES.get(stage.partition(".")[0]) or ({}, {})
    return math.fsum(each * amounts.get(name, 0.0) for name, each in units[kind].items())


def core_seconds(stage: str, amounts: Amounts) -> float:
    """Seconds that the processor's part of a job takes on its cores."""
    rows = [each for each in THROUGHPUTS if stage in each.stages.split()]
    rows = rows or [each for each in THROUGHPUTS if stage.partition(".")[0] in each.stages.split()]
    return math.fsum(amounts.get(each.amount, 0.0) / each.a_second for each in rows) / amounts.get("cores", 1.0)


class Peak(Strict):
    """What a GPU could do at best, and the share of it that is expected of it."""

    fp32: float = Field(gt=0, description="floating-point operations a second, in 10^12, dense")
    bf16: float | None = Field(None, gt=0, description="none before A100, since these have neither bf16 nor tf32")
    utilisation_bf16: Share = 0.35
    utilisation_fp32: Share = 0.6


class Machine(Strict):
    """A machine: one kind of GPU, or the processor alone."""

    name: str
    device: str
    gpu_memory_gb: float | None = None
    peak: Peak | None = Field(None, description="of the GPU; none without one")
    source: str

    def computes_in(self, precision: str) -> bool:
        """True if models run in it there, as ``training/machine.py`` finds out when a job begins."""
        has = precision == "bf16" if self.peak is None else self.peak.bf16 is not None
        return has or precision == "fp32"

    def flops_a_second(self, precision: str) -> float | None:
        """Operations a second that are expected of its GPU; None without one."""
        if self.peak is None:
            return None
        if self.peak.bf16 and precision in ("bf16", "tf32"):
            share = 1.0 if precision == "bf16" else 0.5  # as on A100 and later
            return share * self.peak.bf16 * 1e12 * self.peak.utilisation_bf16
        return self.peak.fp32 * 1e12 * self.peak.utilisation_fp32


def find_machine(name: str | None, catalogue: Path = MACHINES) -> Machine:
    """A machine by name; without a name the processor."""
    known, wanted = read_yaml(catalogue), name or CPU
    if wanted not in known:
        near = nearest(wanted, known) or f"; known are {', '.join(known)}"
        raise EncoreError(f"--machine {wanted!r} is not in {catalogue}{near}")
    machine: Machine = checked(Machine, {"name": wanted, **known[wanted]}, f"{catalogue}: {wanted}")
    return machine

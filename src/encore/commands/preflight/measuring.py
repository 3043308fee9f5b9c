"""What this machine really does in a second, at the shapes of a run: the one part of preflight that imports torch."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from encore.commands.preflight import machine as machines
from encore.commands.preflight.cost import Work
from encore.commands.preflight.fetches import Fetches
from encore.commands.preflight.jobs import needed
from encore.commands.preflight.machine import Machine, RatePoint
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.errors import EncoreError
from encore.models import flops
from encore.models.config import EncoderConfig
from encore.plan.plan import Plan
from encore.targets import declared_reads

SHAPES = 4  # of a kind that are measured, those with most operations first
LARGEST = {"cpu": 2_000, "cuda": 60_000}  # tokens of a batch that is timed; a step on one core takes long enough
PASSAGES = {"cpu": 20_000, "cuda": 20_000}
QUERIES = 256
WORDS = np.array(["the", "of", "a", *(f"{first}{last}" for first in "bcdfghklmn" for last in ("at", "erin", "olus"))])
PROGRAMS = {
    "plain": "import encore.plan.project, encore.data.tokens",
    "torch": "import encore.retrieval.dense, encore.training.loop",
}


def measure(plan: Plan, name: str | None, seconds: float, catalogue: Path, sizes_file: Path) -> Machine:
    """Time training, encoding, search, reading and writing here; what cannot be measured is kept as stated.

    Raises:
        EncoreError: nothing that this run trains is known, or the profile's name is no file's name.
    """
    import torch

    called = name or re.sub(r"[^a-z0-9]+", "-", platform.node().lower()).strip("-") or "machine"
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", called):
        raise EncoreError(f"--name {called!r} is no name of a file; use letters, digits and dashes")
    gpu = torch.cuda.is_available()
    stated = machines.find_machine("cpu", catalogue)
    share = seconds / 20
    works = _works(plan, stated, sizes_file)
    points = {kind: _points(plan, kind, works, share) for kind in machines.ON_DEVICE}
    rates = {**stated.rates, **_rates(plan, share)}
    rates["host_encode"] = max(point.flops for point in points["encode"]) if not gpu else stated.rates["host_encode"]
    return Machine(
        name=called,
        device=torch.cuda.get_device_name() if gpu else f"{_processor()}, {plan.config.numerics.threads} threads",
        gpus=int(gpu),
        gpu_memory_gb=torch.cuda.get_device_properties(0).total_memory / 1e9 if gpu else None,
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        ram_gb=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9,
        watts=_watts() or stated.watts,
        host_watts=200.0 if gpu else 0.0,
        points=points,
        rates=rates,
        starts={**stated.starts, **_starts()},
        precision=plan.config.numerics.precision,
        measured=True,
        source=f"`encore calibrate`, {time.strftime('%Y-%m-%d')}; watts {'of its driver' if _watts() else 'stated'}",
    )


def machine_text(measured: Machine) -> str:
    """What was measured, in lines."""
    lines = [f"{measured.name}: {measured.device}, {measured.cores} cores, {measured.precision}"]
    for kind, points in measured.points.items():
        lines += [
            f"  {kind}: {point.flops:.2e} operations/s ({point.layers} layers of {point.hidden}, "
            f"{point.rows:.0f} texts of {point.length:.0f} tokens)"
            for point in points
        ]
    lines += [f"  {name}: {rate:.3g}/s" for name, rate in measured.rates.items()]
    lines += [f"  start ({name}): {value:.1f} s" for name, value in measured.starts.items()]
    return "\n".join(lines)


def _works(plan: Plan, stated: Machine, sizes_file: Path) -> list[Work]:
    """The work of the run's own trainings and encodings, the largest first."""
    jobs = needed(
        plan, list(declared_reads(plan)), CollectionSizes(plan, read_stated(sizes_file)), stated, Fetches(plan, {})
    )
    works = [work for job in jobs for work in job.cost.works if work.kind in machines.ON_DEVICE and work.shape]
    return sorted(works, key=lambda work: -work.amount)


def _points(plan: Plan, kind: str, works: list[Work], share: float) -> list[RatePoint]:
    """A point for each of the shapes that most is computed with."""
    found: dict[tuple[int, ...], Work] = {}
    for work in works:
        if work.kind == kind and work.shape and work.shape.architecture == "bert":
            rows = 0 if kind == "encode" else round(np.log2(work.rows))  # texts are read in batches of one size
            found.setdefault((work.shape.hidden, work.shape.layers, rows, round(2 * np.log2(work.length))), work)
    chosen = list(found.values())[:SHAPES] or [Work(kind, 1.0, _SMALL, 32, 64)]
    return [_point(plan, kind, work, share) for work in chosen]


_SMALL = EncoderConfig(vocabulary=8192, layers=2, hidden=128, heads=2, intermediate=256, dropout=0.0)


def _point(plan: Plan, kind: str, work: Work, share: float) -> RatePoint:
    """Operations a second of one model on one size of batch."""
    import torch

    from encore.models import towers
    from encore.models.embed import BATCH
    from encore.training import machine
    from encore.training.optimiser import AdamW

    numerics, shape = plan.config.numerics.model_dump(), work.shape
    assert shape is not None
    device = machine.prepare(numerics)
    length = max(4, min(round(work.length), shape.max_length))
    rows = BATCH[device.type] if kind == "encode" else max(1, round(min(work.rows, LARGEST[device.type] / length)))
    encoder = towers.build_encoder(shape).to(device)
    optimiser = AdamW(encoder, 0.0)
    ids = torch.randint(5, shape.vocabulary, (rows, length), device=device)
    mask = torch.ones_like(ids, dtype=torch.bool)

    def step() -> None:
        with machine.precision(numerics, device):
            loss = encoder.embed(ids, mask).square().sum()
        loss.backward()
        optimiser.step(0.0)
        optimiser.zero_grad()
        _wait(device.type)

    def read() -> None:
        with torch.no_grad(), machine.precision(numerics, device):
            encoder.embed(ids, mask)
        _wait(device.type)

    train = kind == "train"
    counted = flops.forward(shape, rows, length) * (flops.TRAINING if train else 1.0)
    taken = _timed(step if train else read, share)
    return RatePoint(hidden=shape.hidden, layers=shape.layers, rows=rows, length=length, flops=counted / taken)


def _wait(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def _timed(work: Callable[[], Any], share: float) -> float:
    """Seconds of one call: the median of as many as fit into the share of time, after one that warms up."""
    work()
    found: list[float] = []
    end = time.perf_counter() + share
    while not found or (time.perf_counter() < end and len(found) < 50):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return float(np.median(found))


def _rates(plan: Plan, share: float) -> dict[str, float]:
    """What the host does in a second; each measurement leaves nothing behind."""
    machines.PROFILES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=machines.PROFILES) as folder:
        scratch = Path(folder)
        found = {
            "search": _search(plan, share),
            "bytes": _bytes(scratch, share),
            "tokens": _tokens(share),
            "packed": _packed(scratch, share),
            "lines": _lines(scratch, share),
        }
        return found | _lucene(scratch)


def _search(plan: Plan, share: float) -> float:
    import faiss

    faiss.omp_set_num_threads(1)
    dimension = max((b.projection_dim or b.hidden for b in plan.catalogue.backbones.values()), default=768)
    dimension = min(dimension, 768)
    index = faiss.IndexFlatIP(dimension)
    index.add(np.random.default_rng(0).standard_normal((PASSAGES["cpu"], dimension), dtype=np.float32))
    queries = np.random.default_rng(1).standard_normal((QUERIES, dimension), dtype=np.float32)
    taken = _timed(lambda: index.search(queries, 1000), share)
    return flops.product(QUERIES, dimension, PASSAGES["cpu"]) / taken


def _bytes(scratch: Path, share: float) -> float:
    block, path = os.urandom(32 << 20), scratch / "bytes"

    def write() -> None:
        with path.open("wb") as file:
            file.write(block)
            file.flush()
            os.fsync(file.fileno())

    return len(block) / _timed(write, share)


def _texts(count: int) -> list[str]:
    """Made-up passages of 60 words."""
    rng = np.random.default_rng(0)
    return [" ".join(words) for words in rng.choice(WORDS, (count, 60))]


def _tokens(share: float) -> float:
    from encore.data import vocabulary

    texts = _texts(2000)
    tokenizer = vocabulary.build_tokenizer(vocabulary.train(texts, 200))
    count = sum(len(row.ids) for row in tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    return count / _timed(lambda: tokenizer.encode_batch_fast(texts, add_special_tokens=False), share)


def _packed(scratch: Path, share: float) -> float:
    from encore.storage.files import write_jsonl

    rows = [{"_id": str(number), "title": "", "text": text} for number, text in enumerate(_texts(5000))]
    size = sum(len(row["text"]) for row in rows)
    return size / _timed(lambda: write_jsonl(scratch / "packed.jsonl.gz", rows), share)


def _lines(scratch: Path, share: float) -> float:
    """Lines of a run, written and read again; either counts."""
    from encore.data.runs import describe, rank, read_run, write_run

    depth, rng = 1000, np.random.default_rng(0)
    names = [f"document-{number}" for number in range(depth)]
    run = {str(query): rank(names, rng.random(depth)) for query in range(60)}
    header = describe("made-up", collection="made-up", split="test", retrieval=[])

    def both() -> None:
        write_run(scratch / "run.trec.gz", run, header)
        read_run(scratch / "run.trec.gz")

    return 2 * len(run) * depth / _timed(both, share)


def _lucene(scratch: Path) -> dict[str, float]:
    """Bytes of text that Lucene indexes in a second beyond its start; nothing where Java is missing."""
    from encore.retrieval import lucene

    taken, sizes = [], []
    for count in (500, 20_000):
        documents = [(str(number), text) for number, text in enumerate(_texts(count))]
        began = time.perf_counter()
        try:
            lucene.build_lucene_index(documents, scratch)
        except EncoreError:
            return {}
        taken.append(time.perf_counter() - began)
        sizes.append(sum(len(text) for _, text in documents))
    return {"lucene_bytes": (sizes[1] - sizes[0]) / max(taken[1] - taken[0], 1e-3)}


def _starts() -> dict[str, float]:
    """Seconds until a program of ours has imported what it needs."""
    found = {}
    for kind, program in PROGRAMS.items():
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        found[kind] = time.perf_counter() - began
    return found


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*:\s*(.+)", path.read_text()) if path.is_file() else []
    return names[0].strip() if names else platform.processor() or platform.machine()


def _watts() -> float | None:
    """The power limit of the first GPU's board, as its driver says it."""
    if shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", "--query-gpu=power.limit", "--format=csv,noheader,nounits"]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    try:
        return float(output[0])
    except (IndexError, ValueError):
        return None

"""What each change to trainings on a GPU gains, all arms in one start, in eight minutes of one H100; see README.md."""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from encore.storage.program import run

import torch
from harness import gpu_training, machine, ours, record, steps, texts, timing
from harness.figures import BASE, SPEEDS, rounded
from harness.gpu_training import VOCABULARY, Facts, precision
from harness.parts import DONE, run_part
from harness.setting import Setting, device
from torch import Tensor, nn
from torch.autograd import DeviceType

from encore.config.entries import Step
from encore.finetuning.contrastive import Contrastive
from encore.models.encoder import Encoder
from encore.models.start import initial_encoder
from encore.training import loop
from encore.training.batches import Batch, BatchMaker, pinned, prefetched
from encore.training.checkpoint import Resume
from encore.training.compiled import Compiled
from encore.training.gradients import TrainingModels
from encore.training.record import Trained
from encore.training.task import Task

HERE = Path(__file__).parent
SECONDS, QUICK_SECONDS = 480.0, 50.0  # of all, after which nothing more is begun
OF_WORK = 600.0  # most seconds of one with ``--everything``
BEFORE, PROCESS, COPIES, NOW = "before", "batches by a process", "and weights copied once a step", "now"
COMPILED, WORKERS = "now, compiled", "now, four workers"
EVERY = (BEFORE, PROCESS, COPIES, NOW, COMPILED, WORKERS)
PROCESSES = {WORKERS: 4}  # that make batches
TURNS = 2
SAME, POINT = 0.02, 6  # that a loss may be from that of now; digits that are recorded of one
FULL: Facts = {
    **{
        "model": "base",
        "vocabulary": VOCABULARY,
        "batch": 64,
        "many": 256,
        "length": 512,
        "shorter": 144,
        "passage": 144,
    },
    **{"query_length": 32, "negatives": 15, "warm": 8, "steps": 20, "losses": 50, "profiled": 3},
}
QUICK: Facts = {
    **{"model": "nano", "vocabulary": 500, "batch": 4, "many": 8, "length": 32, "shorter": 24, "passage": 24},
    **{"query_length": 10, "negatives": 3, "warm": 1, "steps": 2, "losses": 3, "profiled": 1},
}
# Operations by what their names have in them, the first that fits.
KINDS = {
    "attention": "flash|fmha|attention",
    "products": r"gemm|cutlass|nvjet|cublas|\bmm\b|addmm|bmm|linear",
    "normalisation": "norm",
    "copies": "copy|cast|memcpy|memset",
}


class Work(NamedTuple):
    """Something that is trained: its task, the weights at the start, the step, and samples in a batch."""

    task: Task
    encoder: Encoder
    heads: nn.ModuleDict
    step: Step
    numerics: dict[str, Any]
    batch: int

    def copied(self) -> tuple[Task, Encoder, nn.ModuleDict, Step]:
        """The same with weights of its own, as a training takes it."""
        return self.task, copy.deepcopy(self.encoder), copy.deepcopy(self.heads), self.step


def by_thread(
    maker: BatchMaker, start: int, micro_batch: Any, workers: int, where: torch.device
) -> Generator[Batch, None, None]:
    """The batches as they once were made: by a thread of the training."""
    return prefetched(pinned(maker.batches(start, micro_batch, 0)))


@contextmanager
def arm(name: str) -> Iterator[None]:
    """Inside, trainings run as they did before the changes that come after the arm of this name."""
    without = EVERY.index(name)
    with ExitStack() as patches:
        if without < 1 and device().type == "cuda":
            patches.enter_context(mock.patch.object(loop, "_coming", by_thread))
        if without < 2:  # autocast then casts each weight in each pass, and queries, keys and values are three products
            casting = nullcontext(lambda: None)
            patches.enter_context(mock.patch.object(TrainingModels, "computing", return_value=casting))
        if without < 3:
            patches.enter_context(mock.patch.object(loop, "AHEAD", {"cpu": 0, "cuda": 0}))
        if name == COMPILED:  # a processor traces layers alone: it would compile for minutes
            backend = "inductor" if device().type == "cuda" else "aot_eager"
            patches.enter_context(mock.patch.object(loop, "Compiled", partial(Compiled, backend=backend)))
            patches.enter_context(mock.patch.object(loop, "STEPS", 1))
        yield


def numerics(work: Work, each: str) -> Facts:
    """Those of a work in an arm."""
    return work.numerics | ({"compiled": True} if each == COMPILED else {})


def pretraining(
    sizes: Facts, folder: Path, name: str, length: int, full: bool, batch: int, fields: Facts | None = None
) -> Work:
    """An objective on texts of its own."""
    setting = _setting(sizes, length, full, batch, sizes["vocabulary"])
    step, encoder = ours.step_of(name, fields or {}, setting), initial_encoder(setting.shape(), 0)
    store = texts.write(folder, gpu_training.POOL * batch, length, setting.vocabulary, full)
    task = ours.load(step, store)
    torch.manual_seed(0)
    return Work(task, encoder, task.heads(encoder), step, setting.numerics(), batch)


def finetuning(sizes: Facts, folder: Path) -> Work:
    """Queries with a positive and negatives each, contrasted over the batch."""
    setting = _setting(sizes, sizes["passage"], False, sizes["batch"], VOCABULARY)
    store, queries = gpu_training.judged(folder, sizes, sizes["passage"])
    step = gpu_training.step_of(sizes, sizes["passage"])
    encoder = initial_encoder(setting.shape(), 0)
    return Work(Contrastive(step, queries, store), encoder, nn.ModuleDict(), step, setting.numerics(), step.batch)


def _setting(sizes: Facts, length: int, full: bool, batch: int, vocabulary: int) -> Setting:
    return Setting(sizes["model"], vocabulary, length, batch, full, precision(), 1, "wall", 1, 1)


MLM, MLM_SHORT, PACKED, MANY = "MLM, 512 tokens", "MLM, 144 tokens", "MLM, texts as MS MARCO's", "the same, 256 texts"
FINETUNING, BASE_512 = "fine-tuning, 64 x (1 + 15)", f"{BASE}, 512 tokens"
DECODERS = {f"{name}, 512 tokens": name for name in SPEEDS if name != "bow"}
WHOLE_WORDS = {"mask_ratio": 0.30, "whole_word": True}
Make = Callable[[Facts, Path], Work]
MADE: dict[str, Make] = {  # what matters most first
    MLM: lambda sizes, at: pretraining(sizes, at, "mlm", sizes["length"], True, sizes["batch"]),
    PACKED: lambda sizes, at: pretraining(sizes, at, "mlm", sizes["shorter"], False, sizes["batch"]),
    FINETUNING: finetuning,
    MLM_SHORT: lambda sizes, at: pretraining(sizes, at, "mlm", sizes["shorter"], True, sizes["batch"]),
    MANY: lambda sizes, at: pretraining(sizes, at, "mlm", sizes["shorter"], False, sizes["many"]),
    BASE_512: lambda sizes, at: pretraining(sizes, at, "mlm", sizes["length"], True, sizes["batch"], WHOLE_WORDS),
    **{
        label: lambda sizes, at, name=name: pretraining(sizes, at, name, sizes["length"], True, sizes["batch"])  # type: ignore[misc]
        for label, name in DECODERS.items()
    },
}
ARMS: Mapping[str, tuple[str, ...]] = {
    name: (NOW, COMPILED) if name == BASE_512 or name in DECODERS else EVERY for name in MADE
}
PROFILED, COMPARED = (MLM, PACKED), PACKED
SHOWN = (BEFORE, NOW, COMPILED)  # whose kernels are
NEAR, REPEATED = (BEFORE, PROCESS, COPIES, COMPILED), (NOW, COMPILED)  # whose losses are compared with those of now
# What is measured of a work in an arm, and how much of it is wanted, at least or at most; utilisation is of this run's
# best product.
GOALS: dict[tuple[str, str, str], tuple[str, float]] = {
    (PACKED, PROCESS, "speed_of_before"): ("least", 1.3),
    (PACKED, WORKERS, "wait_percent"): ("most", 2),
    (MLM, COMPILED, "speed_of_before"): ("least", 1.3),
    (MLM, COMPILED, "utilisation"): ("least", 0.38),
    (MLM_SHORT, COMPILED, "utilisation"): ("least", 0.30),
    (PACKED, COMPILED, "utilisation"): ("least", 0.27),
    (MANY, COMPILED, "utilisation"): ("least", 0.36),
    (MANY, COMPILED, "launch_percent"): ("most", 60),  # with more, graphs of CUDA's would spare the host
    (FINETUNING, COMPILED, "utilisation"): ("least", 0.52),
    (FINETUNING, COMPILED, "steps_per_second"): ("least", 8),
    **{(label, COMPILED, "speed_of_mlm"): ("least", SPEEDS[name]) for label, name in DECODERS.items()},
}


class Report:
    """The record, which is written again with each row, so that what is there stays if time runs out."""

    def __init__(self, output: Path, sizes: Facts, seconds: float) -> None:
        self.output, self.name = output, f"before-after-{machine.name()}"
        self.before, self.until = machine.load(), time.monotonic() + seconds
        self.contents: Facts = {"sizes": sizes, "rows": [], "profile": [], "losses": [], "left_out": []}

    @property
    def path(self) -> Path:
        return self.output / f"{self.name}.json"

    def read(self) -> None:
        """Add to what other processes have written."""
        if self.path.is_file():
            self.contents = json.loads(self.path.read_text())

    def attempt(self, what: str, work: Callable[[], object]) -> None:
        """Do a part that stops no other: that there was no time for it, or what failed, is noted."""
        reason = ""
        if time.monotonic() >= self.until:
            reason = "out of time"
        else:
            try:
                work()
            except Exception as error:
                traceback.print_exc()
                reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        if reason:
            self.contents["left_out"].append(f"{what}: {reason}")
            self.write()

    def add(self, part: str, row: Facts) -> None:
        """Put a row in place of an earlier one of the same work and arm, and write all."""
        rows = self.contents[part]
        same = [old for old in rows if (old["work"], old.get("arm")) == (row["work"], row.get("arm"))]
        rows[:] = [old for old in rows if old not in same] + [row]
        print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
        self.write()

    def write(self) -> None:
        before = {row["work"]: row["samples_per_second"] for row in self.contents["rows"] if row["arm"] == BEFORE}
        for row in self.contents["rows"]:
            if row["work"] in before:
                row["speed_of_before"] = rounded(row["samples_per_second"] / before[row["work"]])
        self.contents["goals"] = judged(self.contents)
        record.write(self.output, self.name, self.contents, self.before)


def measure(report: Report, sizes: Facts, names: list[str], arms: Mapping[str, tuple[str, ...]] = ARMS) -> None:
    """Time the arms of each work in turns, the second time in the other order, and look into two works."""
    best = timing.peak("wall", precision())
    report.contents["peak_tflops"] = rounded(best / 1e12)
    for name in names:
        report.attempt(name, partial(_measure, report, sizes, name, arms[name], best))
    report.write()


def _measure(report: Report, sizes: Facts, name: str, arms: tuple[str, ...], best: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work, readings = MADE[name](sizes, Path(folder)), dict[str, steps.Steps]()
        for turn in range(TURNS):
            for each in arms[:: -1 if turn else 1]:
                what = f"{name}, {each}, turn {turn + 1}"
                report.attempt(what, partial(_time, report, sizes, name, work, each, readings, best))
        for each in SHOWN if name in PROFILED else ():
            report.attempt(f"profile of {name}, {each}", partial(_profile, report, sizes, name, work, each))
        if name == COMPARED:
            compare(report, work, sizes["losses"])


def _profile(report: Report, sizes: Facts, name: str, work: Work, each: str) -> None:
    report.add("profile", {"work": name, "arm": each, **profiled(work, each, sizes["profiled"])})


def _time(
    report: Report, sizes: Facts, name: str, work: Work, each: str, readings: dict[str, steps.Steps], best: float
) -> None:
    """Another turn of an arm; its row is that of the better one."""
    begun, processes = time.monotonic(), PROCESSES.get(each, 0)
    with arm(each), redirect_stdout(None):
        found = steps.measured(*work.copied(), numerics(work, each), sizes["warm"], sizes["steps"], processes)
    print(f"{name}, {each}: {time.monotonic() - begun:.1f} s", flush=True)  # the first time layers are compiled
    readings[each] = min(found, readings.get(each, found), key=lambda its: its.seconds.wall)
    its = readings[each]
    row = {"work": name, "arm": each, "steps_per_second": rounded(1 / its.seconds.wall), **its.row(work.batch, best)}
    report.add("rows", row)


def trained(work: Work, each: str, count: int, changed: Facts) -> tuple[Trained, list[Tensor]]:
    """So many steps of an arm: their record, and the weights at the end."""
    task, encoder, heads, step = work.copied()
    with tempfile.TemporaryDirectory() as state, arm(each), redirect_stdout(None):
        step = step.model_copy(update={"steps": count})
        done = loop.train(task, encoder, heads, step, 0, Resume(Path(state)), numerics(work, each) | changed)
    return done, [weight.detach().cpu() for module in (encoder, heads) for weight in module.parameters()]


def compare(report: Report, work: Work, count: int) -> None:
    """The losses of each arm from one start on the same batches; and whether trainings that are repeated are equal.

    A step has the same chance in all arms, so what differs is rounding. What is compiled draws as what is not here.
    """
    reference, _ = trained(work, NOW, count, {})

    def losses(each: str) -> None:
        from torch._inductor import config

        with config.patch(fallback_random=True) if each == COMPILED else nullcontext():
            found, _ = trained(work, each, count, {})
        report.add("losses", {"work": COMPARED, "arm": each, **_apart(found, reference)})

    def twice(each: str) -> None:
        pair = [trained(work, each, count, {"deterministic": True}) for _ in range(2)]
        equal = all(torch.equal(one, other) for one, other in zip(pair[0][1], pair[1][1], strict=True))
        row = {"work": COMPARED, "arm": f"{each}, twice", **_apart(pair[0][0], pair[1][0]), "same_bytes": equal}
        report.add("losses", row)

    for each in NEAR:
        report.attempt(f"losses, {each}", partial(losses, each))
    for each in REPEATED:
        report.attempt(f"losses, {each}, twice", partial(twice, each))


def _apart(found: Trained, reference: Trained) -> Facts:
    pairs = [
        (one.terms["loss"], other.terms["loss"]) for one, other in zip(found.losses, reference.losses, strict=True)
    ]
    apart = max(abs(one - other) for one, other in pairs)
    return {"steps": len(pairs), "last_loss": round(pairs[-1][0], POINT), "apart": rounded(apart)}


def profiled(work: Work, each: str, count: int) -> Facts:
    """Milliseconds of a step by the kind of operation, on the GPU where there is one; what it is called for, too."""
    kinds, activity = Counter[str](), torch.profiler.ProfilerActivity
    on_gpu = device().type == "cuda"
    with torch.profiler.profile(activities=[activity.CPU, *([activity.CUDA] if on_gpu else [])]) as profile:
        trained(work, each, count, {})
    events = profile.key_averages()
    of_gpu = [event for event in events if event.device_type == DeviceType.CUDA]
    for event in of_gpu or events:
        kind = next((kind for kind, has in KINDS.items() if re.search(has, event.key.lower())), "other")
        kinds[kind] += event.self_device_time_total if of_gpu else event.self_cpu_time_total
    calls = sum(event.count for event in of_gpu or events)
    shown = {f"{kind}_ms": rounded(kinds[kind] / 1000 / count) for kind in (*KINDS, "other")}
    return {"calls": rounded(calls / count), **shown}


def judged(contents: Facts) -> list[Facts]:
    """A line for each goal, with the number of its arm or that it was not measured."""
    rows = {(row["work"], row["arm"]): row for row in contents["rows"]}
    found = []
    for (work, each, key), (bound, aim) in GOALS.items():
        row, base = rows.get((work, each), {}), rows.get((BASE_512, each))
        value = row.get(key)
        if key == "speed_of_mlm" and row and base:
            value = rounded(row["samples_per_second"] / base["samples_per_second"])
        label = key.replace("_", " ").replace("utilisation", "share of the GPU's best product")
        label = label.replace("speed of", "speed relative to").replace("to mlm", f"to {BASE}")
        found.append(_goal(f"{work}, {each}, {label}", bound, value, aim))
    losses = {row["arm"]: row for row in contents["losses"]}
    for each in NEAR:
        found.append(_goal(f"losses, {each}, difference from now", "most", losses.get(each, {}).get("apart"), SAME))
    for each in REPEATED:
        same = losses.get(f"{each}, twice", {}).get("same_bytes")
        found.append(_goal(f"{each} twice, same bytes", "least", None if same is None else float(same), 1))
    return found


def _goal(label: str, bound: str, value: float | None, aim: float) -> Facts:
    met = value is not None and (value <= aim if bound == "most" else value >= aim)
    shown = "not measured" if value is None else value
    return {"goal": label, "aim": f"{bound} {aim}", "measured": shown, "met": met}


def everything(output: Path, quick: bool) -> int:
    """All arms of all works, each work in a separate process, into one record; 1 where anything is missing."""
    output.mkdir(parents=True, exist_ok=True)
    report = Report(output, QUICK if quick else FULL, OF_WORK)
    report.path.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--output", str(output), *(["--quick"] if quick else [])]
    logs = {name: output / f"before-after-{number}.log" for number, name in enumerate(MADE)}
    parts = [run_part(name, [*command, "--part", name], OF_WORK, log) for name, log in logs.items()]
    report.read()
    report.contents["parts"] = parts
    report.write()
    print("\n".join(["", *record.table(parts), "", *report.contents["left_out"]]))
    print("\n".join(["", *record.table(report.contents["goals"])]))
    return 0 if all(part["ended"] == DONE for part in parts) and not report.contents["left_out"] else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that all runs; begins nothing after a minute"
    )
    parser.add_argument("--only", nargs="*", choices=MADE, metavar="WORK", help="these works; without: all")
    parser.add_argument("--everything", action="store_true", help="all arms of all works, each work by itself")
    parser.add_argument("--part", choices=MADE, help=argparse.SUPPRESS)  # what a work's own process is told
    parser.add_argument("--output", type=Path, help="of the record; without: results/gpu, or results/gpu-quick")
    parser.add_argument("--seconds", type=float, help=f"after which nothing more is begun; without: {SECONDS:.0f}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    output = options.output or HERE / "results" / ("gpu-quick" if options.quick else "gpu")
    if options.everything:
        return everything(output, options.quick)
    sizes = QUICK if options.quick else FULL
    if options.part:
        report = Report(output, sizes, OF_WORK)
        report.read()
        measure(report, sizes, [options.part], dict.fromkeys(MADE, EVERY))
        return 0
    report = Report(output, sizes, options.seconds or (QUICK_SECONDS if options.quick else SECONDS))
    measure(report, sizes, [name for name in MADE if name in (options.only or MADE)])
    print("\n".join(["", *record.table(report.contents["goals"])]))
    if options.quick:
        print("\nThese are the numbers of tiny sizes: they only show that everything runs.")
    return 0


if __name__ == "__main__":
    run(main)

"""The forecast of a run: which jobs are missing, what these need by rule, and what exceeds a limit."""

import math
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from encore import stages
from encore.commands.preflight.downloads import Download, Fetches
from encore.commands.preflight.jobs import Jobs, Needed, fetched
from encore.commands.preflight.machines import Machine
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.config.run import Limits
from encore.datasets.download.ir_datasets import listed
from encore.plan.artifact import Artifact, upstream
from encore.plan.plan import Plan
from encore.plan.published_counts import step_name
from encore.products.tables.trainings import GAIN
from encore.products.targets import reads_of_targets, requested_products, requested_targets
from encore.stages.finetune import Finetune
from encore.storage.machine import lacks_to_compile, memory

HOUR, DAY, GB = 3600.0, 86400.0, 1e9
CORE = 5e10  # operations of models and exact search in a second on one core; docs/preflight.md has what was measured


@dataclass(frozen=True)
class Sums:
    """What missing jobs need together, in bytes and operations, and the memory of the largest."""

    jobs: int
    operations: float
    gpu_hours: float
    disk: float
    ram: float
    gpu_memory: float


@dataclass(frozen=True)
class ComparedCount:
    """A count of the trainings of some steps: as it is forecast, and as it was published."""

    steps: tuple[str, ...]
    count: str
    ours: float
    published: float
    place: str


@dataclass(frozen=True)
class Forecast:
    """The forecast of a run: its jobs, downloads, disk, memory and GPU-hours.

    ``gpus``: how many models are trained or searched at once, whose checkpoints and vectors need disk together.
    """

    title: str
    machine: Machine
    gpus: int
    precision: str
    jobs: list[Needed]
    missing: list[Needed]
    downloads: list[Download]
    sizes: CollectionSizes
    free: float
    memory_here: float | None

    @cached_property
    def rules(self) -> dict[str, Sums]:
        """What the missing jobs of each rule need, in the order of their first artifact."""
        return {
            rule: self.needs([job for job in self.missing if job.rule == rule])
            for rule in dict.fromkeys(job.rule for job in self.missing)
        }

    @cached_property
    def total(self) -> Sums:
        """What all missing jobs need; ``disk`` counts all vectors, also those that are removed, and no checkpoints."""
        return self.needs(self.missing)

    def needs(self, jobs: Sequence[Needed]) -> Sums:
        """What some missing jobs need."""
        own = [job.needs for job in jobs]
        rates = [self.machine.flops_a_second(each.precision or self.precision) for each in own]
        return Sums(
            jobs=len(jobs),
            operations=math.fsum(each.operations for each in own),
            gpu_hours=math.fsum(each.operations / rate / HOUR for each, rate in zip(own, rates, strict=True) if rate),
            disk=math.fsum(each.disk + each.vectors for each in own),
            ram=max(map(self.memory, jobs), default=0.0),
            gpu_memory=max((each.gpu_memory for each in own if self.machine.peak), default=0.0),
        )

    @cached_property
    def core_hours(self) -> float:
        """Hours of one core that all missing jobs take; without a GPU the models' operations are among them."""
        models = 0.0 if self.machine.peak else self.total.operations / CORE
        return (math.fsum(job.needs.core_seconds for job in self.missing) + models) / HOUR

    def memory(self, job: Needed) -> float:
        """Bytes of RAM of a job; without a GPU also what a GPU would hold."""
        return job.needs.memory + (0.0 if self.machine.peak else job.needs.gpu_memory)

    def seconds(self, job: Needed) -> float:
        """How long a job takes, on a core without a GPU."""
        return job.seconds(self.machine.flops_a_second(job.needs.precision or self.precision) or CORE)

    @property
    def to_download(self) -> float:
        """Bytes that are still to come, as far as their publishers say."""
        return math.fsum(each.missing or 0.0 for each in self.downloads)

    @property
    def unknown_downloads(self) -> list[str]:
        """Names of missing downloads whose size is unknown."""
        return [each.name for each in self.downloads if each.bytes is None and not each.here]

    @cached_property
    def disk(self) -> dict[str, float]:
        """Bytes at the peak: of what stays, by the kind of its folder, and of what is on the disk for a while."""
        found: dict[str, float] = {}
        vectors: dict[str, float] = {}  # by model
        for job in self.missing:
            kind, owner = job.artifact.folder.split("/")[1], job.artifact.owner
            found[kind] = found.get(kind, 0.0) + job.needs.disk
            vectors[owner] = vectors.get(owner, 0.0) + job.needs.vectors
        kept = self.sizes.plan.config.execution.keep_vectors
        found["vectors"] = math.fsum(sorted(vectors.values(), reverse=True)[: None if kept else 1 + self.gpus])
        found["downloads"] = self.to_download
        checkpoints = sorted((job.needs.checkpoint for job in self.missing), reverse=True)
        found["checkpoints"] = math.fsum(checkpoints[: self.gpus])
        return {kind: count for kind, count in found.items() if count >= 1}

    @property
    def peak_disk(self) -> float:
        """Bytes in addition to what is there now; a run removes only checkpoints, and vectors if that is set."""
        return math.fsum(self.disk.values())

    @cached_property
    def counts(self) -> list[ComparedCount]:
        """Counts of ours and published ones, equal ones together; none if other data replace the papers'."""
        plan = self.sizes.plan
        found: dict[tuple[str, float, float, str], dict[str, None]] = {}
        for job in self.jobs if not plan.config.proxy_data else ():
            for entry in plan.catalogue.counts_of(job.artifact) if job.needs.counts else ():
                ours = round(job.needs.counts[entry.count], 1)
                same = (entry.count, ours, entry.published, entry.place)
                found.setdefault(same, {})[step_name(job.artifact)] = None
        return [ComparedCount(tuple(steps), *same) for same, steps in found.items()]

    def complaints(self, limits: Limits) -> list[str]:
        """What exceeds a limit, free disk, a day or a node's memory, or had to be assumed, one line each."""
        reached = {
            "download_gb": self.to_download / GB,
            "disk_gb": self.peak_disk / GB,
            "gpu_hours": self.total.gpu_hours,
            "gpu_memory_gb": self.total.gpu_memory / GB,
            "ram_gb": self.total.ram / GB,
        }
        found = [
            f"limits.{name}: {_number(value)} is needed, {limit:g} is allowed"
            for name, value in reached.items()
            if (limit := getattr(limits, name)) is not None and value > limit
        ]
        if self.missing and not self.machine.computes_in(self.precision):
            found.append(
                f"numerics.precision: {self.machine.device} does not compute in {self.precision}; set `numerics: "
                "precision: fp32`, or take a machine with an A100 or later"
            )
        lacking = lacks_to_compile() if self.sizes.plan.config.numerics.compiled and not self.machine.peak else ""
        if self.missing and lacking:
            found.append(f"numerics.compiled: trainings need {lacking}, which this machine has not; install it first")
        if self.peak_disk > self.free:
            found.append(
                f"disk: {_number(self.peak_disk / GB)} GB is needed, {_number(self.free / GB)} GB is free here"
            )
        if (memory := self.machine.gpu_memory_gb) and self.total.gpu_memory / GB > memory:
            found.append(
                f"GPU memory: one example at a time takes {self.total.gpu_memory / GB:,.4g} GB, the GPU has {memory:g}"
            )
        return [*found, *self._too_large_or_long(), *self._assumed()]

    def _too_large_or_long(self) -> Iterator[str]:
        """The jobs that no node has the memory for, or that take over a day and do not resume, by rule."""
        room = self.memory_here or self.machine.node_memory_gb * GB
        where = "this machine" if self.memory_here else "a node"
        for rule in self.rules:
            own = [job for job in self.missing if job.rule == rule]
            if large := {_name(job): size for job in own if (size := job.processes * self.memory(job)) > room}:
                most = f"a job of {rule} takes {_number(max(large.values()) / GB)} GB"
                yield f"memory: {most}, {where} has {_number(room / GB)}: {', '.join(large)}"
            long = {_name(job): time for job in own if (time := self.seconds(job)) > DAY}
            if long and not stages.load(rule).resumes:
                most = f"a job of {rule} takes {max(long.values()) / HOUR:,.0f} hours"
                yield f"time: {most}, over a day: {', '.join(long)}"

    def _assumed(self) -> Iterator[str]:
        """Counts of collections that nobody has said."""
        for made in self._collections:
            if assumed := self.sizes.of(made).assumed:
                yield f"size: {self.sizes.dataset(made)}: {'; '.join(assumed)}: give its counts in config/sizes.yaml"

    @property
    def _collections(self) -> list[Artifact]:
        return [job.artifact for job in self.jobs if job.rule == "collection"]

    @property
    def notes(self) -> list[str]:
        """What had to be assumed, each once."""
        of = self.sizes.of
        found = [f"{self.sizes.dataset(each)}: {note}" for each in self._collections for note in of(each).notes]
        found += [f"{job.artifact.name}: {note}" for job in self.missing for note in job.needs.notes]
        if self.sizes.plan.config.numerics.compiled and self.machine.peak:
            found.insert(0, "numerics.compiled: machines that train need a C compiler and Python's headers")
        return list(dict.fromkeys([*found, *self._training_queries(), *self._short(), *self._coarse()]))

    def _training_queries(self) -> Iterator[str]:
        """Trainings that ask for more queries than there are."""
        for job in self.missing:
            if learned := job.needs.counts.get("queries"):
                step = job.artifact.typed(Finetune).training
                if step.queries and learned < step.queries:
                    dataset = self.sizes.dataset(job.artifact.inputs["collection"])
                    found = f"{dataset}: {step.train_split} has {learned:,.0f} queries"
                    yield f"{found}, and steps ask for {step.queries:,}; all are taken"

    def _short(self) -> Iterator[str]:
        """Fine-tunings for less than an epoch, next to others on the same queries for more (a table says so too)."""
        epochs: dict[tuple[str, str], dict[str, float]] = {}
        for job in self.jobs:
            if "epochs" in job.needs.counts:
                split = job.artifact.typed(Finetune).training.train_split
                place = self.sizes.dataset(job.artifact.inputs["collection"]), split
                epochs.setdefault(place, {})[job.artifact.name.partition("-s")[0]] = job.needs.counts["epochs"]
        for (dataset, split), own in epochs.items():
            short, most = {name: count for name, count in own.items() if count < 1}, max(own.values())
            if short and most > 1:
                said = f"{len(short)} fine-tunings read {min(short.values()):.2f} of an epoch or little more"
                yield f"{dataset}, {split}: {said}, and others {most:.2f}; compare rows of one or more epochs"

    def _coarse(self) -> Iterator[str]:
        """Validations on so few questions that one of them is more than the gain that verdicts are asked for."""
        tables = map(self.sizes.plan.catalogue.tables.get, self.sizes.plan.config.tables)
        margins = [each.significance.margin for each in tables if each and each.significance]
        gain = min((margin or GAIN for margin in margins), default=GAIN)
        for job in self.missing:
            if 1 / (count := job.needs.counts.get("validation_queries", math.inf)) > gain:
                split = job.artifact.typed(Finetune).training.valid_split
                dataset = self.sizes.dataset(job.artifact.inputs["collection"])
                few = f"{dataset}: fine-tunings validate on {count:,} questions of {split}"
                yield f"{few}, and one is more than a gain of {gain:g}; take more, or train fixed epochs"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _name(job: Needed) -> str:
    return job.artifact.folder.removeprefix("results/")


def forecast(plan: Plan, names: Iterable[str], machine: Machine, gpus: int = 1) -> Forecast:
    """Estimate what tables, figures and other targets still need, or everything that the configuration declares."""
    targets = requested_targets(plan, names)
    sizes = CollectionSizes(plan, read_stated())
    wanted = [read for reads in reads_of_targets(plan, targets).values() for read in reads]
    fetches = Fetches(plan, listed("downloads"))
    jobs = Jobs(plan, sizes, machine, fetches).behind(wanted)
    done = {job.artifact.folder: job.finished for job in jobs}
    needed = {made.folder for made in upstream(wanted, lambda made: not done[made.folder])}
    missing = [job for job in jobs if job.artifact.folder in needed]
    shown = targets or requested_targets(plan, plan.config.tables)
    made = [  # finished if the product's file and all that it reads are there
        Needed(each, Path(file).is_file() and all(done[folder] for folder in each.inputs))
        for each, file in requested_products(plan, shown)
    ]
    return Forecast(
        title=plan.config.title,
        machine=machine,
        gpus=gpus,
        precision=plan.config.numerics.precision,
        jobs=[*jobs, *made],
        missing=[*missing, *(each for each in made if not each.finished)],
        downloads=fetched(plan, missing, sizes, fetches),
        sizes=sizes,
        free=float(shutil.disk_usage(".").free),
        memory_here=None if machine.peak else float(memory()),
    )

"""The forecast of a run: which jobs are missing, what these need by rule, and what exceeds a limit."""

import math
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from encore.commands.preflight import costs, shapes, trainings
from encore.commands.preflight.costs import Machine
from encore.commands.preflight.downloads import Download, Fetches, published
from encore.commands.preflight.jobs import TRAINING, Jobs, Needed, fetched
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.config.run import Limits
from encore.plan.artifact import upstream
from encore.plan.plan import Plan
from encore.plan.published_counts import published_counts, share_with_triples, step_name
from encore.products.targets import reads_of_targets, requested_products, requested_targets

HOUR, GB = 3600.0, 1e9


@dataclass(frozen=True)
class Needs:
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
    def rules(self) -> dict[str, Needs]:
        """What the missing jobs of each rule need, in the order of their first artifact."""
        return {
            rule: self.needs([job for job in self.missing if job.rule == rule])
            for rule in dict.fromkeys(job.rule for job in self.missing)
        }

    @cached_property
    def total(self) -> Needs:
        """What all missing jobs need; ``disk`` counts all vectors, also those that are removed, and no checkpoints."""
        return self.needs(self.missing)

    def needs(self, jobs: Sequence[Needed]) -> Needs:
        """What some missing jobs need."""
        rates = [self.machine.flops_a_second(job.precision(self.precision)) for job in jobs]
        return Needs(
            jobs=len(jobs),
            operations=math.fsum(job.operations for job in jobs),
            gpu_hours=math.fsum(job.operations / rate / HOUR for job, rate in zip(jobs, rates, strict=True) if rate),
            disk=math.fsum(map(disk_of, jobs)),
            ram=max(map(self.memory, jobs), default=0.0),
            gpu_memory=max((job.gpu_memory for job in jobs if self.machine.peak), default=0.0),
        )

    @cached_property
    def core_hours(self) -> float:
        """Hours of one core that all missing jobs take; without a GPU the models' operations are among them."""
        models = 0.0 if self.machine.peak else self.total.operations / costs.CORE
        # As on one core, since a job that shares its work among several takes each of them as long.
        others = (costs.core_seconds(job.artifact.stage, job.amounts | {"cores": 1.0}) for job in self.missing)
        return (math.fsum(others) + models) / HOUR

    def memory(self, job: Needed) -> float:
        """Bytes of RAM of a job; without a GPU also what a GPU would hold."""
        own = costs.memory(job.artifact.stage, job.amounts)
        return own + (0.0 if self.machine.peak else job.gpu_memory)

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
            encodes, parts = job.rule == "encode", job.artifact.folder.split("/")
            kinds, kind = (vectors, job.artifact.owner) if encodes else (found, parts[1])
            kinds[kind] = kinds.get(kind, 0.0) + disk_of(job)
        kept = self.sizes.plan.config.execution.keep_vectors
        found["vectors"] = math.fsum(sorted(vectors.values(), reverse=True)[: None if kept else 1 + self.gpus])
        found["downloads"] = self.to_download
        trained = [job for job in self.missing if job.rule in TRAINING]
        checkpoints = [costs.CHECKPOINT[job.rule] * job.amounts["parameters"] for job in trained]
        found["checkpoints"] = math.fsum(sorted(checkpoints, reverse=True)[: self.gpus])
        return {kind: count for kind, count in found.items() if count >= 1}

    @property
    def peak_disk(self) -> float:
        """Bytes in addition to what is there now; a run removes only checkpoints, and vectors if that is set."""
        return math.fsum(self.disk.values())

    @cached_property
    def counts(self) -> list[ComparedCount]:
        """Counts of ours and published ones, equal ones together; none if other data replace the papers'."""
        catalogue = self.sizes.plan.catalogue
        found: dict[tuple[str, float, float, str], dict[str, None]] = {}
        for made in (job.artifact for job in self.jobs if job.rule in TRAINING):
            entries, size = published_counts(catalogue, made), self.sizes.behind(made)
            if entries and size and not self.sizes.plan.config.proxy_data:
                ours = trainings.counts(shapes.step_of(made), size, share_with_triples(catalogue, made))
                for entry in entries:
                    same = (entry.count, round(ours[entry.count], 1), entry.published, entry.place)
                    found.setdefault(same, {})[step_name(made)] = None
        return [ComparedCount(tuple(steps), *same) for same, steps in found.items()]

    def complaints(self, limits: Limits) -> list[str]:
        """What exceeds a limit, one line each; free disk and the machine's memory are limits too."""
        reached = {
            "download_gb": self.to_download / GB,
            "disk_gb": self.peak_disk / GB,
            "gpu_hours": self.total.gpu_hours,
            "gpu_memory_gb": self.total.gpu_memory / GB,
            "ram_gb": self.total.ram / GB,
        }
        found = [
            f"limits.{name}: {value:,.4g} is needed, {limit:g} is allowed"
            for name, value in reached.items()
            if (limit := getattr(limits, name)) is not None and value > limit
        ]
        if self.missing and not self.machine.computes_in(self.precision):
            found.append(
                f"numerics.precision: {self.machine.device} does not compute in {self.precision}; set `numerics: "
                "precision: fp32`, or take a machine with an A100 or later"
            )
        if self.peak_disk > self.free:
            found.append(f"disk: {self.peak_disk / GB:,.4g} GB is needed, {self.free / GB:,.4g} GB is free here")
        if (memory := self.machine.gpu_memory_gb) and self.total.gpu_memory / GB > memory:
            found.append(
                f"GPU memory: one example at a time takes {self.total.gpu_memory / GB:,.4g} GB, the GPU has {memory:g}"
            )
        if self.memory_here and self.total.ram > self.memory_here:
            found.append(
                f"memory: a job takes {self.total.ram / GB:,.4g} GB, this machine has {self.memory_here / GB:,.4g}"
            )
        return found

    @property
    def notes(self) -> list[str]:
        """What had to be assumed, each once."""
        missing = {job.artifact.folder for job in self.missing}
        found = [
            f"{self.sizes.dataset(job.artifact) if job.rule == 'collection' else job.artifact.name}: {note}"
            for job in self.jobs
            if job.rule == "collection" or job.artifact.folder in missing
            for note in job.notes
        ]
        return list(dict.fromkeys([*found, *self._training_queries()]))

    def _training_queries(self) -> Iterator[str]:
        """Trainings that ask for more queries than there are."""
        for made in (job.artifact for job in self.missing if job.rule == "finetune"):
            step, size = made.spec["step"], self.sizes.behind(made)
            share = share_with_triples(self.sizes.plan.catalogue, made)
            learned = size.topics(step["train_split"], share=share) if size else None
            if learned and step["queries"] and learned < step["queries"]:
                yield (
                    f"{self.sizes.dataset(made.inputs['collection'])}: {step['train_split']} has {learned:,.0f} "
                    f"queries, and steps ask for {step['queries']:,}; all are taken"
                )


def disk_of(job: Needed) -> float:
    """Bytes that a job leaves on the disk."""
    return costs.disk(job.artifact.stage, job.amounts)


def forecast(plan: Plan, names: Iterable[str], machine: Machine, gpus: int = 1) -> Forecast:
    """Estimate what tables, figures and other targets still need, or everything that the configuration declares."""
    targets = requested_targets(plan, names)
    sizes = CollectionSizes(plan, read_stated())
    wanted = [read for reads in reads_of_targets(plan, targets).values() for read in reads]
    fetches = Fetches(plan, published())
    jobs = Jobs(plan, sizes, machine, fetches).behind(wanted)
    done = {job.artifact.folder: job.finished for job in jobs}
    needed = {made.folder for made in upstream(wanted, lambda made: not done[made.folder])}
    missing = [job for job in jobs if job.artifact.folder in needed]
    shown = targets or requested_targets(plan, plan.config.tables)
    made = [  # finished if the product's file and all that it reads are there
        Needed(each, each.stage, Path(file).is_file() and all(done[folder] for folder in each.inputs), {})
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
        memory_here=None if machine.peak else float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")),
    )

"""The forecast of a run: what is missing, what that needs by rule, how long it takes, and what is beyond a limit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from encore.commands.preflight.counts import ComparedCount, compared_counts
from encore.commands.preflight.downloads import Download, published
from encore.commands.preflight.fetches import Fetches
from encore.commands.preflight.jobs import TRAINING, Jobs, Needed, fetched
from encore.commands.preflight.machine import Machine
from encore.commands.preflight.rates import CPU, Rates
from encore.commands.preflight.schedule import Job, Schedule, schedule
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.config.run import Limits
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.plan.published_counts import share_with_triples, triples_of
from encore.products import requested
from encore.products.targets import declared_reads, reads_of
from encore.storage import manifest
from encore.storage.shards import has_no_vectors

HOUR, GB = 3600.0, 1e9
OPERATIONS = ("flops", "products", "graph")
PRODUCTS = {"table", "figure", "reproduce", "curves", "draw", "claims", "claims_printed", "report"}


@dataclass(frozen=True)
class RuleForecast:
    """What the missing jobs of a rule need together, and the largest of them."""

    rule: str
    finished: int
    missing: int
    seconds: float
    gpu_hours: float
    flops: float
    kept: float
    ram: float
    gpu_memory: float


@dataclass(frozen=True)
class Forecast:
    """The forecast of a run: its jobs, downloads, disk, memory, time and energy."""

    title: str
    machine: Machine
    rates: Rates
    gpus: int
    cores: int
    precision: str
    jobs: list[Needed]
    missing: list[Needed]
    downloads: list[Download]
    sizes: CollectionSizes
    free: float
    memory_here: float | None

    def seconds(self, job: Needed) -> float:
        """Seconds that a job takes on this machine."""
        rate = self.machine.flops_a_second(job.precision(self.precision)) if self.on_gpu(job) else None
        return self.rates.seconds(job.artifact.stage, job.amounts, self.threads(job), rate, job.processes, job.feeding)

    def threads(self, job: Needed) -> int:
        """Threads that a job is given: those that its rule asks for, as far as there are cores."""
        return min(job.threads, self.cores)

    def processor_seconds(self, job: Needed) -> float:
        """Seconds of the processor, of all threads together, that a job takes without a GPU."""
        return self.rates.seconds(job.artifact.stage, job.amounts, threads=1)

    def on_gpu(self, job: Needed) -> bool:
        """Whether a job occupies a GPU of this machine."""
        return job.computes and self.gpus > 0

    def memory(self, job: Needed) -> float:
        """Bytes of RAM of a job; what a GPU would hold lies there too where there is none."""
        own = self.rates.of(job.artifact.stage).ram.of(job.amounts)
        return own + (0.0 if self.on_gpu(job) else job.gpu_memory)

    def disk_of(self, job: Needed) -> float:
        """Bytes that a job leaves on the disk."""
        return self.rates.of(job.artifact.stage).disk.of(job.amounts)

    @cached_property
    def rules(self) -> list[RuleForecast]:
        """Every rule that something is needed of, in the order of their first artifact."""
        names = dict.fromkeys(job.rule for job in self.jobs)
        return [self._of_rule(name) for name in names]

    def _of_rule(self, rule: str) -> RuleForecast:
        missing = [job for job in self.missing if job.rule == rule]
        return RuleForecast(
            rule=rule,
            finished=sum(job.rule == rule and job.finished for job in self.jobs),
            missing=len(missing),
            seconds=sum(self.seconds(job) for job in missing),
            gpu_hours=sum(self._gpu_seconds(job) for job in missing) / HOUR,
            flops=sum(job.amounts.get(name, 0.0) for job in missing for name in OPERATIONS),
            kept=sum(self.disk_of(job) for job in missing),
            ram=max(map(self.memory, missing), default=0.0),
            gpu_memory=max((job.gpu_memory for job in missing if self.on_gpu(job)), default=0.0),
        )

    def _gpu_seconds(self, job: Needed) -> float:
        return self.seconds(job) * job.processes if self.on_gpu(job) else 0.0

    @cached_property
    def schedule(self) -> Schedule:
        """The missing jobs side by side."""
        return schedule([self._job(job) for job in self.missing], self.gpus, self.cores)

    def _job(self, job: Needed) -> Job:
        gpus = job.processes if self.on_gpu(job) else 0
        after = tuple(part.folder for part in job.artifact.inputs.values())
        return Job(job.artifact.folder, self.seconds(job), after, gpus, self.threads(job))

    @property
    def gpu_hours(self) -> float:
        """GPU hours of all missing jobs."""
        return sum(rule.gpu_hours for rule in self.rules)

    @property
    def core_hours(self) -> float:
        """Hours of the processor in jobs that occupy no GPU."""
        own = [job for job in self.missing if not self.on_gpu(job)]
        return sum(self.seconds(job) * self.threads(job) for job in own) / HOUR

    @property
    def energy_kwh(self) -> float:
        """Of GPUs with their share of the host, and of cores that work next to them."""
        machine = self.machine
        core = machine.host_watts / machine.cores if machine.peak else machine.watts
        return (self.gpu_hours * (machine.watts + machine.host_watts) + self.core_hours * core) / 1000

    @property
    def ram(self) -> float:
        """Bytes of RAM of the largest missing job."""
        return max((rule.ram for rule in self.rules), default=0.0)

    @property
    def gpu_memory(self) -> float:
        """Bytes of GPU memory of the largest missing job."""
        return max((rule.gpu_memory for rule in self.rules), default=0.0)

    @property
    def to_download(self) -> float:
        """Bytes that are still to come, as far as their publishers say."""
        return sum(each.missing or 0.0 for each in self.downloads)

    @cached_property
    def finished_bytes(self) -> float:
        """What the finished jobs left on the disk, as their manifests say."""
        records = [Path(job.artifact.folder) for job in self.jobs if Path(job.artifact.manifest).is_file()]
        there = [folder for folder in records if not has_no_vectors(folder)]
        outputs = [each for folder in there for each in manifest.read_manifest(folder)["outputs"].values()]
        return float(sum(each["bytes"] for each in outputs))

    @property
    def unknown_downloads(self) -> list[str]:
        """Names of missing downloads whose size is not known."""
        return [each.name for each in self.downloads if each.bytes is None and not each.here]

    @cached_property
    def disk(self) -> dict[str, float]:
        """Bytes that will be written: what stays, by the kind of its folder, and at most at once for a while."""
        found: dict[str, float] = {}
        for job in self.missing:
            if job.rule != "encode":
                kind = job.artifact.folder.split("/")[1]
                found[kind] = found.get(kind, 0.0) + self.disk_of(job)
        found["indexes"] = found.get("indexes", 0.0) + self._vectors
        found["downloads"] = self.to_download
        together = max(1, self.gpus)
        found["checkpoints of trainings"] = sum(
            sorted((self._scratch(job) for job in self.missing if job.rule in TRAINING), reverse=True)[:together]
        )
        return {kind: count for kind, count in found.items() if count >= 1}

    @property
    def _vectors(self) -> float:
        """Bytes of the missing vectors; where they are removed after use, of the models at work and one more."""
        by_model: dict[str, float] = {}
        for job in self.missing:
            if job.rule == "encode":
                by_model[job.artifact.owner] = by_model.get(job.artifact.owner, 0.0) + self.disk_of(job)
        execution, threads = self.sizes.plan.config.execution, self.sizes.plan.config.numerics.threads
        at_once = None if execution.keep_vectors else 1 + max(1, self.gpus or self.cores // threads)
        return sum(sorted(by_model.values(), reverse=True)[:at_once])

    def _scratch(self, job: Needed) -> float:
        return self.rates.of(job.artifact.stage).scratch.of(job.amounts)

    @property
    def peak_disk(self) -> float:
        """Bytes beyond what is there now; a run removes nothing but checkpoints, and vectors where that is set."""
        return sum(self.disk.values())

    @cached_property
    def counts(self) -> list[ComparedCount]:
        """Ours next to published ones; none where other data stand for the papers'."""
        return [] if self.sizes.plan.config.proxy_data else compared_counts(self.jobs, self.sizes)

    def complaints(self, limits: Limits) -> list[str]:
        """What is beyond a limit, one line each; free disk and the machine's memory are limits too."""
        reached = {
            "download_gb": self.to_download / GB,
            "disk_gb": self.peak_disk / GB,
            "gpu_hours": self.gpu_hours,
            "gpu_memory_gb": self.gpu_memory / GB,
            "ram_gb": self.ram / GB,
            "wall_hours": self.schedule.wall / HOUR,
            "energy_kwh": self.energy_kwh,
        }
        found = []
        for name, value in reached.items():
            limit = getattr(limits, name)
            if limit is not None and value > limit:
                found.append(f"limits.{name}: {value:,.4g} is needed, {limit:g} is allowed")
        if self.missing and not self.machine.computes_in(self.precision):
            found.append(
                f"numerics.precision: {self.machine.device} does not compute in {self.precision}; set `numerics: "
                "precision: fp32`, or take a machine with an A100 or later"
            )
        if self.peak_disk > self.free:
            found.append(f"disk: {self.peak_disk / GB:,.4g} GB is needed, {self.free / GB:,.4g} GB is free here")
        if (memory := self.machine.gpu_memory_gb) and self.gpu_memory / GB > memory:
            found.append(
                f"GPU memory: one example at a time takes {self.gpu_memory / GB:,.4g} GB, the GPU has {memory:g}"
            )
        if self.memory_here and self.ram > self.memory_here:
            found.append(f"memory: a job takes {self.ram / GB:,.4g} GB, there are {self.memory_here / GB:,.4g} GB here")
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
        unknown = sorted({job.rule for job in self.missing if not self.rates.knows(job.artifact.stage)} - PRODUCTS)
        found += self._without_triples()
        found += self._fewer_queries()
        found += [f"nothing is known of rule {rule}; it is taken to start and to do no more" for rule in unknown]
        return list(dict.fromkeys(found))

    def _without_triples(self) -> Iterator[str]:
        """Files of triples that lack some of the queries: how many are learned from was not counted here."""
        for job in (job for job in self.missing if job.rule == "finetune"):
            share = share_with_triples(self.sizes.plan.catalogue, job.artifact)
            size, split = self.sizes.behind(job.artifact), job.artifact.spec["step"]["train_split"]
            if size and share < 1:
                learned, all_of_them = size.topics(split, share=share), size.topics(split)
                yield (
                    f"{self.sizes.dataset(job.artifact.inputs['collection'])}: {learned:,.0f} of {all_of_them:,.0f} "
                    f"{split} queries are in {triples_of(job.artifact)}, as published"
                )

    def _fewer_queries(self) -> Iterator[str]:
        """Collections that have fewer training queries than steps ask for."""
        for job in (job for job in self.missing if job.rule == "finetune"):
            step, size = job.artifact.spec["step"], self.sizes.behind(job.artifact)
            share = share_with_triples(self.sizes.plan.catalogue, job.artifact)
            has = share * size.queries.get(step["train_split"], 0) if size else None
            if has and step["queries"] and has < step["queries"]:
                yield (
                    f"{self.sizes.dataset(job.artifact.inputs['collection'])}: {step['train_split']} has {has:,.0f} "
                    f"queries, and steps ask for {step['queries']:,}; all are taken"
                )


def forecast(
    plan: Plan, names: Iterable[str], machine: Machine, rates: Rates, gpus: int, cores: int, sizes_file: Path
) -> Forecast:
    """Estimate what tables, figures and other targets still need, or everything that the configuration declares.

    Raises:
        EncoreError: nothing makes what is named, or a file of the catalogue is wrong.
    """
    targets = requested.requested_targets(plan, names)
    sizes = CollectionSizes(plan, read_stated(sizes_file))
    wanted = [read for target in targets for read in reads_of(plan, target)] if targets else list(declared_reads(plan))
    fetches = Fetches(plan, published())
    forks = plan.config.execution.fork_jobs and machine.peak is None
    jobs = Jobs(plan, sizes, machine, fetches, forks).behind(wanted)
    missing = _missing(wanted, jobs)
    done = {job.artifact.folder: job.finished for job in jobs}
    shown = targets or requested.requested_targets(plan, plan.config.tables)
    made = [_product(artifact, file, done) for artifact, file in requested.requested_products(plan, shown)]
    if rates.device != CPU and machine.peak is None:
        raise EncoreError(
            f"these rates were measured on a GPU ({rates.device}); name a machine that has one: --machine"
        )
    return Forecast(
        title=plan.config.title,
        machine=machine,
        rates=rates,
        gpus=gpus if machine.peak else 0,
        cores=cores,
        precision=plan.config.numerics.precision,
        jobs=[*jobs, *made],
        missing=[*missing, *(each for each in made if not each.finished)],
        downloads=fetched(plan, missing, sizes, fetches),
        sizes=sizes,
        free=float(shutil.disk_usage(".").free),
        memory_here=None if machine.peak else float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")),
    )


def _missing(wanted: list[Artifact], jobs: list[Needed]) -> list[Needed]:
    """What has to be made: what is not finished, and what that is made from; nothing behind what is finished."""
    by = {job.artifact.folder: job for job in jobs}
    kept, waiting = dict[str, None](), [artifact.folder for artifact in wanted]
    while waiting:
        folder = waiting.pop()
        if folder in kept or by[folder].finished:
            continue
        kept[folder] = None
        waiting += [part.folder for part in by[folder].artifact.inputs.values()]
    return [job for job in jobs if job.artifact.folder in kept]


def _product(artifact: Artifact, file: str, done: dict[str, bool]) -> Needed:
    """A table, a figure, the claims or the report, which is finished where its file and all that it reads are there."""
    there = Path(file).is_file() and all(done[folder] for folder in artifact.inputs)
    return Needed(artifact, artifact.stage, there, {"start": 1.0})

"""Which jobs a run still needs, by the manifests that are there, and what each costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from encore.commands.preflight import downloads, retrieval, texts, training
from encore.commands.preflight.cost import Cost, Work
from encore.commands.preflight.downloads import Download
from encore.commands.preflight.fetches import Fetches
from encore.commands.preflight.machine import Machine
from encore.commands.preflight.sizes import CollectionSizes
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan

Estimator = Callable[[Artifact, CollectionSizes], Cost]
STAGES: dict[str, Estimator] = {
    "collection": texts.collection,
    "tokenizer": texts.tokenizer,
    "tokens": texts.tokens,
    "start": texts.start,
    "count_pairs": texts.count_pairs,
    "negatives": texts.negatives,
    "negatives_from_file": texts.negatives,
    "negatives_from_dataset": texts.negatives,
    "merged_negatives": texts.merged,
    "evaluate": texts.evaluate,
    "nested_corpora": texts.nested_corpora,
    "train_doc2query": texts.train_doc2query,
    "predict_queries": texts.predict_queries,
    "encode": retrieval.encode,
    "search": retrieval.search,
    "build_index": retrieval.build_index,
    "search_index": retrieval.search_index,
    "lucene_index": retrieval.lucene_index,
    "lucene_search": retrieval.lucene_search,
    "fuse": retrieval.fuse,
    "tune_fusion": retrieval.tune_fusion,
    "rerank": retrieval.rerank,
    "teacher_scores": retrieval.teacher_scores,
    "measure_latency": retrieval.latency,
    "masked_loss": retrieval.masked_loss,
    "inspect_model": retrieval.inspect_model,
}
FETCHING = ("fetch_source", "fetch_ir_datasets", "fetch_checkpoint")
UNPACKED = 3.0  # bytes of an unpacked source for a byte of it, which is kept too


@dataclass(frozen=True)
class Needed:
    """An artifact that a run needs: the rule that makes it, what that costs, and whether it is there."""

    artifact: Artifact
    rule: str
    finished: bool
    cost: Cost


def upstream_jobs(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Artifacts with all that they are made from, each once, what is made from others after these."""
    found: dict[str, Artifact] = {}
    waiting = [(artifact, False) for artifact in reversed(list(artifacts))]
    while waiting:
        artifact, seen = waiting.pop()
        if artifact.folder in found:
            continue
        if seen:
            found[artifact.folder] = artifact
            continue
        waiting.append((artifact, True))
        waiting += [(part, False) for part in artifact.inputs.values() if part.folder not in found]
    return list(found.values())


def needed(
    plan: Plan, wanted: list[Artifact], sizes: CollectionSizes, machine: Machine, fetches: Fetches
) -> list[Needed]:
    """Every artifact behind the wanted ones, with its cost."""
    estimate = partial(cost_of, plan, sizes, machine, fetches)
    return [
        Needed(each, rule_of(each), Path(each.manifest).is_file(), estimate(each)) for each in upstream_jobs(wanted)
    ]


def cost_of(plan: Plan, sizes: CollectionSizes, machine: Machine, fetches: Fetches, artifact: Artifact) -> Cost:
    """What the job that makes an artifact needs on a machine."""
    memory = (machine.gpu_memory_gb or float("inf")) * 1e9 if machine.gpus else float("inf")
    return _cost(plan, sizes, memory, fetches, artifact)


def rule_of(artifact: Artifact) -> str:
    """The rule that makes an artifact: its stage, without the kind."""
    return artifact.stage.partition(".")[0]


def fetched(plan: Plan, jobs: Iterable[Needed], sizes: CollectionSizes, fetches: Fetches) -> list[Download]:
    """What the artifacts need from the network, or from the user's own hand."""
    found: list[Download] = []
    for job in jobs:
        if job.artifact.source and not Path(job.artifact.source).exists():
            stated = sizes.stated.get(sizes.dataset(job.artifact)) if job.rule == "collection" else None
            found.append(downloads.by_hand(plan, job.artifact, stated.bytes if stated else None))
        if job.rule in FETCHING:
            found.append(fetches.of(job.artifact))
    return list({each.name: each for each in found}.values())


def _cost(plan: Plan, sizes: CollectionSizes, memory: float, fetches: Fetches, artifact: Artifact) -> Cost:
    rule = rule_of(artifact)
    if rule in ("pretrain", "finetune"):
        return training.cost(artifact, sizes, plan.config.execution.processes, memory)
    if rule == "prepare":
        return texts.prepare(artifact, sizes, plan.config.execution.processes)
    if rule in FETCHING:
        return _fetch(rule, fetches.of(artifact))
    if rule not in STAGES:
        return Cost(notes=(f"nothing is known of rule {rule}",))
    return STAGES[rule](artifact, sizes)


def _fetch(rule: str, one: Download) -> Cost:
    """A download; a checkpoint stays in ``data_root`` alone, which is counted where all that is fetched is."""
    missing = one.missing or 0.0
    unpacked = {"fetch_source": UNPACKED * (one.bytes or 0.0), "fetch_ir_datasets": missing}.get(rule, 0.0)
    return Cost(works=(Work("download", missing),), kept=unpacked, download=one.missing, licence=one.licence)

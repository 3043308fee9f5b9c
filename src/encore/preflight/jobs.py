"""Which jobs a run still needs, by the manifests that are there, and what each costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from encore.errors import EncoreError
from encore.growth import growing_artifacts
from encore.plan import Plan
from encore.planning.artifact import Artifact
from encore.preflight import downloads, retrieval, shapes, texts, training
from encore.preflight.cost import Cost, Work
from encore.preflight.downloads import Download
from encore.preflight.machine import Machine
from encore.preflight.sizes import Sizes
from encore.tables import table_reads
from encore.targets import lineage_targets

Reckon = Callable[[Artifact, Sizes], Cost]
STAGES: dict[str, Reckon] = {
    "collection": texts.collection,
    "tokenizer": texts.tokenizer,
    "tokens": texts.tokens,
    "start": texts.start,
    "prepare": texts.prepare,
    "negatives": texts.negatives,
    "listed_negatives": texts.negatives,
    "merged_negatives": texts.merged,
    "evaluate": texts.evaluate,
    "grow": texts.grow,
    "train_expander": texts.train_expander,
    "expand": texts.expand,
    "encode": retrieval.encode,
    "search": retrieval.search,
    "build_index": retrieval.build_index,
    "search_index": retrieval.search_index,
    "lucene_index": retrieval.lucene_index,
    "lucene_search": retrieval.lucene_search,
    "fuse": retrieval.fuse,
    "tune_fusion": retrieval.tune_fusion,
    "rerank": retrieval.rerank,
    "teach": retrieval.teach,
    "measure_latency": retrieval.latency,
}
UNPACKED = 3.0  # bytes of an unpacked source for a byte of it, which is kept too


@dataclass(frozen=True)
class Needed:
    """An artifact that a run needs: the rule that makes it, what that costs, and whether it is there."""

    artifact: Artifact
    rule: str
    finished: bool
    cost: Cost


def roots(plan: Plan, tables: Iterable[str]) -> list[Artifact]:
    """What the tables read, and, where all declared ones are meant, what else the configuration declares.

    Raises:
        EncoreError: a table is not declared.
    """
    chosen = list(tables)
    for name in chosen:
        if name not in plan.config.tables:
            raise EncoreError(f"this run does not declare table {name!r}; it has {', '.join(plan.config.tables)}")
    found = [read for name in chosen or plan.config.tables for read in table_reads(plan, name)]
    if not chosen:
        found += growing_artifacts(plan)
        targets = [target for name in plan.config.lineages for target in lineage_targets(plan, name)]
        found += [plan.find(str(Path(target).parent)) for target in targets]
    return found


def behind(artifacts: Iterable[Artifact]) -> list[Artifact]:
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


def needed(plan: Plan, wanted: list[Artifact], sizes: Sizes, machine: Machine) -> list[Needed]:
    """Every artifact behind the wanted ones, with its cost."""
    memory = (machine.gpu_memory_gb or float("inf")) * 1e9 if machine.gpus else float("inf")
    reckon = partial(_cost, plan, sizes, memory)
    return [Needed(each, rule_of(each), Path(each.manifest).is_file(), reckon(each)) for each in behind(wanted)]


def rule_of(artifact: Artifact) -> str:
    """The rule that makes an artifact: its stage, without the kind."""
    return artifact.stage.partition(".")[0]


def fetched(plan: Plan, jobs: Iterable[Needed], sizes: Sizes) -> list[Download]:
    """What the artifacts need from the network, or from the user's own hand."""
    known = downloads.published()
    found: list[Download | None] = []
    for job in jobs:
        if job.artifact.source and not Path(job.artifact.source).exists():
            stated = sizes.stated.get(sizes.dataset(job.artifact)) if job.rule == "collection" else None
            found.append(downloads.by_hand(plan, job.artifact, stated.bytes if stated else None))
        if job.rule == "fetch_source":
            found.append(downloads.of_source(plan, job.artifact))
        elif job.rule == "fetch_ir_datasets":
            found.append(downloads.of_ir_datasets(plan, job.artifact, known))
        elif job.rule == "fetch_checkpoint":
            found.append(_of_checkpoint(plan, job.artifact))
    return list({each.name: each for each in found if each}.values())


def _cost(plan: Plan, sizes: Sizes, memory: float, artifact: Artifact) -> Cost:
    rule = rule_of(artifact)
    if rule in ("pretrain", "finetune"):
        return training.cost(artifact, sizes, plan.config.execution.processes, memory)
    if rule == "fetch_checkpoint":  # its bytes are counted where all that is fetched is
        one = _of_checkpoint(plan, artifact)
        return Cost(works=(Work("download", one.missing or 0.0),), download=one.missing, licence=one.licence)
    if rule in ("fetch_source", "fetch_ir_datasets"):
        return _fetch(plan, rule, artifact)
    if rule not in STAGES:
        return Cost(notes=(f"nothing is known of rule {rule}",))
    return STAGES[rule](artifact, sizes)


def _of_checkpoint(plan: Plan, artifact: Artifact) -> Download:
    """What a checkpoint needs from the network: as large as the largest model that begins with it."""
    backbones = (each for each in plan.catalogue.backbones.values() if each.checkpoint == artifact.spec["id"])
    sizes = [float(shapes.parameters(shapes.shape_of_backbone(backbone))) for backbone in backbones]
    return downloads.of_checkpoint(plan, artifact, max(sizes, default=texts.T5_BASE))


def _fetch(plan: Plan, rule: str, artifact: Artifact) -> Cost:
    one = (downloads.of_source if rule == "fetch_source" else downloads.of_ir_datasets)(plan, artifact)
    missing = one.missing or 0.0
    kept = missing + (UNPACKED * (one.bytes or 0.0) if rule == "fetch_source" else missing)
    return Cost(works=(Work("download", missing),), kept=kept, download=one.missing, licence=one.licence)

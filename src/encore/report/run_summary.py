"""Tables of what was run: data, training and its cost, cost by stage, latency and sizes of indexes."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from encore.report.artifacts import duration, seconds, size
from encore.report.markup import PROSE, Content, count, html_table, joined, link
from encore.report.records import ArtifactRecords, RecordedArtifact
from encore.report.slice import ReportSlice

LATENCY = "latency.json"
TRAINED = ("pretrain", "finetune", "train_doc2query")
INDEXES = ("encode", "build_index", "lucene_index")


def data_table(records: ArtifactRecords, site: ReportSlice) -> str:
    """The collections, with what each counts."""
    found = [each for each in records.all() if each.stage.startswith("collection")]
    header = ["Collection", "Kind", "Passages", "Queries", "Splits: queries, judgments", "Stands for"]
    return html_table("Data", header, [_collection(each, site) for each in found], PROSE)


def training_table(records: ArtifactRecords) -> str:
    """Every training step, its seeds together: what of, how long, with how many operations."""
    groups: dict[tuple[str, str], list[RecordedArtifact]] = defaultdict(list)
    for artifact in records.all():
        if artifact.stage.split(".")[0] in TRAINED:
            spec = {key: value for key, value in artifact.spec.items() if key != "seed"}
            groups[artifact.stem, json.dumps(spec, sort_keys=True)].append(artifact)
    header = ["Model", "Step", "On", "Steps", "Examples", "Batch", "Learning rate", "Operations", "Seeds", "Time"]
    header.append("Device")
    return html_table("Training", header, [_trained(stem, own) for (stem, _), own in sorted(groups.items())])


def cost_table(records: ArtifactRecords) -> str:
    """What the stages took together."""
    groups: dict[str, list[RecordedArtifact]] = defaultdict(list)
    for artifact in records.all():
        groups[artifact.stage.split(".")[0] or "not here"].append(artifact)
    rows: list[list[Content]] = [
        [stage, f"{len(own):,}", duration(_spent(own)), _memory(own), size(sum(each.bytes for each in own))]
        for stage, own in sorted(groups.items(), key=lambda group: (-_spent(group[1]), group[0]))
    ]
    return html_table("Cost by stage", ["Stage", "Artifacts", "Time of all jobs", "Most memory", "Size"], rows)


def efficiency_tables(records: ArtifactRecords) -> str:
    """Latencies with their machines, and sizes of indexes."""
    measured = [each for each in records.all() if LATENCY in each.outputs]
    header = ["System", "Queries", "Median, ms", "Stages: median, ms", "Index", "Bytes a passage", "Measured on"]
    rows = [row for each in measured if (row := _measured(each))]
    latency = html_table("Latency", header, rows, PROSE) if rows else "<p>No latency was measured for these tables.</p>"
    sizes = [_index(each) for each in records.all() if each.stage in INDEXES]
    return latency + html_table("Indexes", ["Index", "Stage", "Passages", "Size"], sizes)


def _index(artifact: RecordedArtifact) -> list[Content]:
    called = link(artifact.key, artifact.folder.removeprefix("results/indexes/"))
    return [called, artifact.stage, count(artifact.results.get("passages", "")), size(artifact.bytes)]


def _collection(artifact: RecordedArtifact, site: ReportSlice) -> list[Content]:
    results, known = artifact.results, site.datasets.get(artifact.stem)
    splits = (
        f"{name}: {count(each.get('queries'))}, {count(each.get('judgments'))}"
        for name, each in sorted(results.get("splits", {}).items())
    )
    return [
        link(artifact.key, artifact.name),
        str(artifact.spec.get("kind", "")),
        count(results.get("passages", "")),
        count(results.get("queries", "")),
        "; ".join(splits),
        known.note if known else "",
    ]


def _trained(stem: str, own: Sequence[RecordedArtifact]) -> list[Content]:
    first = own[0]
    step: dict[str, Any] = first.spec.get("step", {})
    devices = sorted({str(each.run["device"]) for each in own if each.run})
    return [
        stem,
        first.stage,
        str(step.get("collection", "")),
        _range(own, "steps"),
        _range(own, "examples"),
        count(step.get("batch", "")),
        str(step.get("learning_rate", "")),
        _operations(own),
        joined(link(each.key, str(each.seed if each.seed is not None else "–")) for each in own),
        duration(_spent(own)),
        ", ".join(devices),
    ]


def _range(own: Iterable[RecordedArtifact], key: str) -> str:
    """One number where all seeds have the same, else the least and the most."""
    found = sorted({each.results[key] for each in own if key in each.results})
    return " to ".join(count(each) for each in dict.fromkeys([*found[:1], *found[-1:]]))


def _operations(own: Iterable[RecordedArtifact]) -> str:
    found = sorted({f"{each.results['flops']:.3g}" for each in own if "flops" in each.results}, key=float)
    return " to ".join(dict.fromkeys([*found[:1], *found[-1:]]))


def _measured(artifact: RecordedArtifact) -> list[Content]:
    try:
        record = json.loads((Path(artifact.folder) / LATENCY).read_text())
    except (OSError, ValueError):
        return []
    machine, index = record["hardware"], record["index"]
    stages = "; ".join(f"{each['stage']} {_ms(each['median_ms'])}" for each in record["stages"])
    threads = f"{machine['threads']} thread{'s' if machine['threads'] != 1 else ''}"
    device = ", ".join(filter(None, [machine["processor"], machine["gpu"], threads, f"load {machine['load']}"]))
    called = link(artifact.key, artifact.folder.removeprefix("results/").partition("/")[2])
    median = _ms(record["total"]["median_ms"])
    a_passage = str(index["bytes_per_passage"])
    return [called, count(record["queries"]), median, stages, size(index["bytes"]), a_passage, device]


def _ms(value: float) -> str:
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _spent(own: Iterable[RecordedArtifact]) -> float:
    return sum(seconds(each.run) for each in own)


def _memory(own: Iterable[RecordedArtifact]) -> str:
    known = [each.run["peak_memory_mb"] for each in own if each.run.get("peak_memory_mb")]
    return f"{max(known):,} MB" if known else ""

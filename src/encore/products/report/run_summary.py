"""What was run: the data of the headline table, training steps, cost by stage, latencies and indexes."""

import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.products.report.records import ArtifactRecords, RecordedArtifact
from encore.products.report.tables import ShownTable
from encore.storage.files import canonical, readable_object

LATENCY = "latency.json"
TRAINED = ("pretrain", "finetune", "train_doc2query")
INDEXES = ("encode", "build_index", "lucene_index")
SIZE = ("architecture", "layers", "hidden", "parameters")  # of a model


@dataclass(frozen=True)
class JobGroup:
    """Artifacts of one stage: all of them, or those of one training step under each seed."""

    stage: str
    artifacts: list[RecordedArtifact]

    @property
    def stem(self) -> str:
        """What their names have in common."""
        return self.artifacts[0].stem

    @property
    def step(self) -> dict[str, Any]:
        """The training step's parameters."""
        return {"collection": "", "batch": "", "learning_rate": ""} | self.artifacts[0].spec.get("step", {})

    @property
    def seconds(self) -> float:
        """Seconds of all jobs."""
        return math.fsum(each.seconds for each in self.artifacts)

    @property
    def memory(self) -> int:
        """The most memory that a job had, in MB; 0 where it is not recorded."""
        return max(each.run.get("peak_memory_mb") or 0 for each in self.artifacts)

    @property
    def bytes(self) -> int:
        """Bytes of all outputs."""
        return sum(each.bytes for each in self.artifacts)

    @property
    def devices(self) -> list[str]:
        """The devices that it ran on."""
        return sorted({str(each.run["device"]) for each in self.artifacts if each.run})

    def range(self, key: str) -> list[float]:
        """The least and the most of a result; one number where all have the same."""
        found = sorted({each.results[key] for each in self.artifacts if key in each.results})
        return list(dict.fromkeys([*found[:1], *found[-1:]]))


def headline_data(shown: ShownTable, records: ArtifactRecords) -> dict[str, list[Any]]:
    """On what data a table is: collections searched, queries judged, seeds, sizes of models."""
    made_of = records.upstream(shown.folders())
    searched = {each.inputs.get("collection", "") for each in made_of if each.kind == "evaluate"}
    cells = (row.cells[column.id] for column in shown.table.shown() for row in shown.table.rows)
    judged = dict.fromkeys(cell.ours.judged for cell in cells if cell.ours and cell.ours.judged is not None)
    started = [each.spec["backbone"] | each.results for each in made_of if "backbone" in each.spec]
    sizes = [{key: found[key] for key in SIZE if key in found} for found in started]
    return {
        "collections": records.of(sorted(searched - {""})),
        "queries": list(judged),
        "seeds": shown.table.seeds,
        "backbones": list({canonical(size): size for size in sizes}.values()),
    }


def summarise_run(records: ArtifactRecords) -> dict[str, list[Any]]:
    """Everything that was run, by kind; a latency is with its record."""
    artifacts = records.all()
    trained: dict[tuple[str, str], list[RecordedArtifact]] = defaultdict(list)
    stages: dict[str, list[RecordedArtifact]] = defaultdict(list)
    for each in artifacts:
        stages[each.kind].append(each)
        if each.kind in TRAINED:
            without_seed = canonical({key: value for key, value in each.spec.items() if key != "seed"})
            trained[each.stem, without_seed].append(each)
    by_stage = [JobGroup(kind, own) for kind, own in stages.items()]
    timed = (each for each in artifacts if LATENCY in each.outputs)
    return {
        "collections": [each for each in artifacts if each.kind == "collection"],
        "trained": [JobGroup(own[0].stage, own) for _, own in sorted(trained.items())],
        "stages": sorted(by_stage, key=lambda one: (-one.seconds, one.stage)),
        "latencies": [(each, record) for each in timed if (record := readable_object(Path(each.folder, LATENCY)))],
        "indexes": [each for each in artifacts if each.stage in INDEXES],
    }

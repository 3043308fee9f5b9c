"""What comes from the network: how many bytes, under which licence, and what lies in ``data_root`` already."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from encore.config.checkpoints import WEIGHTS
from encore.datasets.download.checkpoint import lies_at
from encore.datasets.download.ir_datasets import HOME
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan

WHOLE = ("collectionandqueries", "docs", "queries")  # entries that any part of a collection needs
PARTS = ("queries", "qrels")  # of a split
SHORT = {"natural-questions": "nq", "trivia-qa": "tqa"}  # what DPR's files are called
Entries = dict[tuple[str, str], dict[str, Any]]  # of ir_datasets' list of files, by collection and file


@dataclass(frozen=True)
class Download:
    """One thing to fetch: ``bytes`` is None where its publisher says nothing; ``here`` is a part of it, or all."""

    name: str
    kind: str  # source, ir_datasets, checkpoint, by hand
    bytes: float | None
    here: float
    licence: str

    @property
    def missing(self) -> float | None:
        """Bytes that are still to come."""
        return None if self.bytes is None else max(0.0, self.bytes - self.here)


def of_source(plan: Plan, made: Artifact) -> Download:
    """An entry of ``sources.yaml``."""
    name = made.name.rpartition("-")[0]
    source, root = plan.catalogue.sources[name], Path(plan.config.execution.data_root) / name
    sizes = [remote.bytes or _on_disk(root / remote.file) or remote.about_bytes for remote in source.files]
    here = sum(_on_disk(root / remote.file) or 0 for remote in source.files)
    total = None if None in sizes else float(sum(size or 0 for size in sizes))
    return Download(name, "source", total, float(here), source.licence)


def of_ir_datasets(plan: Plan, made: Artifact, entries: Entries) -> Download:
    """What ir_datasets downloads of a dataset; its entries are those that count for it."""
    dataset = made.name.rpartition("-")[0]
    home = Path(plan.config.execution.data_root) / HOME
    fields = plan.resolve.dataset_fields(dataset) if dataset in plan.resolve.dataset_names() else None
    total = float(sum(entry.get("size_hint") or 0 for entry in entries.values()))
    here = sum(_on_disk(home / top / str(entry.get("cache_path"))) or 0 for (top, _), entry in entries.items())
    return Download(dataset, "ir_datasets", total, min(float(here), total), getattr(fields, "licence", ""))


def of_checkpoint(plan: Plan, made: Artifact, parameters: float) -> Download:
    """A checkpoint of Hugging Face's hub: its weights in fp32 and its vocabulary."""
    name = made.spec["id"]
    place = lies_at(name, made.spec["revision"], Path(plan.config.execution.data_root))
    here, total = float(_on_disk(place) or 0), 4.0 * parameters + 1e6
    whole = any((place / weights).is_file() for weights in WEIGHTS)  # other files are small
    return Download(name, "checkpoint", total, total if whole else min(here, total), "see its page on the hub")


def by_hand(plan: Plan, made: Artifact, size: float | None) -> Download:
    """A file or folder of the user's that is not there yet."""
    dataset = made.name.rpartition("-")[0]
    fields = plan.resolve.dataset_fields(dataset) if dataset in plan.resolve.dataset_names() else None
    licence = getattr(fields, "licence", "") or getattr(fields, "access", "")
    return Download(str(made.source), "by hand", size, 0.0, licence)


def published() -> dict[str, dict[str, Any]]:
    """The sizes that ir_datasets knows, by collection and file; nothing where the library is not installed."""
    spec = find_spec("ir_datasets")
    folders = list(spec.submodule_search_locations or []) if spec else []
    path = Path(folders[0], "etc", "downloads.json") if folders else Path()
    return json.loads(path.read_text()) if path.is_file() else {}


def wanted(ids: list[str], known: dict[str, dict[str, Any]]) -> Entries:
    """The entries that datasets need, by collection and file, each once."""
    found: Entries = {}
    for each in ids:
        top, *rest = each.split("/")
        entries = known.get(top, {})
        names = [*WHOLE, *_files(rest, entries)]
        found |= {(top, name): entries[name] for name in names if name in entries}
    return found


def _files(rest: list[str], entries: dict[str, Any]) -> list[str]:
    """What a part of a collection needs: the archive called as its beginning is, queries and judgments of it."""
    beginnings = ["/".join(rest[:count]) for count in range(len(rest), 0, -1)]
    archive = next(([name] for name in beginnings if name in entries), [])
    files = [f"{name}/{part}" for name in beginnings for part in PARTS]
    short = ["-".join([SHORT[rest[0]], *rest[1:2]])] if rest and rest[0] in SHORT else []
    return [*archive, *files, *short]


def _on_disk(path: Path) -> int | None:
    """Bytes of a file or of a folder's files; None where there is nothing."""
    if path.is_file():
        return path.stat().st_size
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return None

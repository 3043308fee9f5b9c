"""What comes from the network: how many bytes, under which licence, and how much of it ``data_root`` has already."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.commands.preflight import shapes
from encore.config.checkpoints import WEIGHTS, folder_of
from encore.config.systems import T5_BASE
from encore.datasets.download.ir_datasets import HOME
from encore.models.flops import parameters
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.stages.fetch_checkpoint import FetchCheckpoint
from encore.stages.fetch_ir_datasets import FetchIrDatasets

WHOLE = ("collectionandqueries", "docs", "documents", "main", "passages", "queries", "source")  # of any part
PARTS = ("queries", "qrels")  # of a split
# Whose passages are made of the files of all splits, and numbered as two other collections' are.
QNA = ("msmarco-qna/train", "msmarco-qna/dev", "msmarco-qna/eval", "msmarco-passage", "msmarco-document")
SHORT = {"natural-questions": "nq", "trivia-qa": "tqa"}  # names of DPR's files
Entries = dict[tuple[str, str], dict[str, Any]]  # of ir_datasets' list of files, by collection and file


@dataclass(frozen=True)
class Download:
    """One thing to fetch: ``bytes`` is None if its publisher does not say it; ``here`` is the part that is there."""

    name: str
    kind: str  # source, ir_datasets, checkpoint, by hand
    bytes: float | None
    here: float
    licence: str

    @property
    def missing(self) -> float | None:
        """Bytes that are still to come."""
        return None if self.bytes is None else max(0.0, self.bytes - self.here)


class Fetches:
    """What the ``fetch_*`` jobs of a run download; a file that several of them need counts for the first one alone."""

    def __init__(self, plan: Plan, known: dict[str, dict[str, Any]]) -> None:
        """``known``: the sizes of ir_datasets' files, by collection and file."""
        self.plan, self.known = plan, known
        self._found: dict[str, Download] = {}
        self._counted: set[tuple[str, str]] = set()

    def of(self, made: Artifact) -> Download:
        """What a job downloads."""
        if made.folder not in self._found:
            new = {"fetch_source": of_source, "fetch_checkpoint": _of_checkpoint}.get(made.stage)
            self._found[made.folder] = new(self.plan, made) if new else self._of_ir_datasets(made)
        return self._found[made.folder]

    def _of_ir_datasets(self, made: Artifact) -> Download:
        dataset, home = made.name.rpartition("-")[0], Path(self.plan.config.execution.data_root) / HOME
        entries = wanted(made.typed(FetchIrDatasets).ids, self.known)
        own = {key: entry for key, entry in entries.items() if key not in self._counted}
        self._counted |= entries.keys()
        total = float(sum(entry.get("size_hint") or 0 for entry in own.values()))
        here = sum(_on_disk(home / top / str(entry.get("cache_path"))) or 0 for (top, _), entry in own.items())
        licence = self.plan.resolve.own(dataset).fields.licence
        return Download(dataset, "ir_datasets", total if entries else None, min(float(here), total), licence)


def of_source(plan: Plan, made: Artifact) -> Download:
    """An entry of ``sources.yaml``."""
    name = made.name.rpartition("-")[0]
    source, root = plan.catalogue.sources[name], Path(plan.config.execution.data_root) / name
    sizes = [remote.bytes or _on_disk(root / remote.file) or remote.about_bytes for remote in source.files]
    here = sum(_on_disk(root / remote.file) or 0 for remote in source.files)
    total = None if None in sizes else float(sum(size or 0 for size in sizes))
    return Download(name, "source", total, float(here), source.licence)


def _of_checkpoint(plan: Plan, made: Artifact) -> Download:
    """Weights in fp32 and vocabulary of a checkpoint: as large as the largest model that begins with it."""
    wants, root = made.typed(FetchCheckpoint), Path(plan.config.execution.data_root)
    backbones = (each for each in plan.catalogue.backbones.values() if each.checkpoint == wants.id)
    sizes = [float(parameters(shapes.shape_of_backbone(backbone))) for backbone in backbones]
    place = folder_of(wants.id, wants.revision, root)
    here, total = float(_on_disk(place) or 0), 4.0 * max(sizes, default=T5_BASE) + 1e6
    whole = any((place / weights).is_file() for weights in WEIGHTS)  # other files are small
    return Download(wants.id, "checkpoint", total, total if whole else min(here, total), "see its page on the hub")


def by_hand(plan: Plan, made: Artifact, size: float | None) -> Download:
    """A file or folder that the user has to put there, and that is missing."""
    note = ""
    if made.stage.startswith("collection."):
        fields = plan.resolve.own(made.name.rpartition("-")[0]).fields
        note = fields.licence or fields.access
    return Download(str(made.source), "by hand", size, 0.0, note)


def wanted(ids: list[str], known: dict[str, dict[str, Any]]) -> Entries:
    """The entries that datasets need, by collection and file, each once."""
    found: Entries = {}
    for each in [*ids, *(QNA if any(each.startswith("msmarco-qna") for each in ids) else ())]:
        top, *rest = each.split("/")
        entries = known.get(top, {})
        beginnings = ["/".join(rest[:count]) for count in range(len(rest), 0, -1)]
        archive = next(([name] for name in beginnings if name in entries), [])  # named as its beginning is
        files = [f"{name}/{part}" for name in beginnings for part in PARTS]
        short = ["-".join([SHORT[rest[0]], *rest[1:2]])] if rest and rest[0] in SHORT else []
        names = [*WHOLE, *archive, *files, *short]
        found |= {(top, name): entries[name] for name in names if name in entries}
    return found


def _on_disk(path: Path) -> int | None:
    """Bytes of a file or of a folder's files; None if it is missing."""
    if path.is_file():
        return path.stat().st_size
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return None

"""The published encoder of ``encore new --checkpoint``: a folder, an archive or an id of the hub becomes a backbone."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from encore.config import checkpoints
from encore.config.adapters import ADAPTER, read_adapter
from encore.config.entries import Backbone
from encore.config.published import SHAPE, UNNAMED, Said, said_by
from encore.config.run import RunConfig
from encore.config.sources import digest_of
from encore.datasets.download import checkpoint as hub
from encore.datasets.download.unpack import Kind, unpack
from encore.errors import EncoreError
from encore.plan.groups import names_of
from encore.storage.files import sha256

PAPERS_START = "bert-base"  # what the rows of our tables begin with, and the encoder replaces
ZIPPED, TARRED = (".zip", ".whl"), (".tar", ".gz", ".tgz", ".bz2", ".xz")  # ends of names of archives
RATES = (1e-5, 3e-5, 1e-4)  # that a fine-tuning tries: none is known for an encoder and a few judgments
LONGEST = 256  # tokens that a model is fine-tuned with, where its checkpoint says nothing


@dataclass
class PublishedEncoder:
    """Entries of the encoder's backbone and, of an archive, of its source; and what it says of itself."""

    name: str  # of both
    backbone: dict[str, Any]
    said: dict[str, Any]
    files: dict[str, str]  # which of its files says each
    source: dict[str, Any] = field(default_factory=dict)

    @property
    def is_bert(self) -> bool:
        """True if it runs by our own code, so that it can be pre-trained further."""
        return "architecture" not in self.said

    def sentence(self) -> str:
        """What it is, for the head of a run's file."""
        prompts = [f"prompt {self.said[name]!r}" for name in ("query_marker", "passage_marker") if self.said.get(name)]
        known = [f"{name} {self.said[name]}" for name in ("pooling", "similarity", "length") if name in self.said]
        unsaid = [name for name in ("pooling", "similarity") if name not in self.said]
        usual = ", ".join(f"{name} {Backbone.model_fields[name].default}" for name in unsaid)
        told = f"; it does not say {' and '.join(unsaid)}, so {usual}" if unsaid else ""
        if self.files.get("similarity") == UNNAMED:
            told += "; it names no similarity, so cosine as in sentence-transformers (or write similarity: dot)"
        layers, hidden = self.said["layers"], self.said["hidden"]
        return f"{self.backbone['checkpoint']}: {', '.join([f'{layers} layers of {hidden}', *known, *prompts])}{told}."

    def scale(self, base: RunConfig, steps: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """What it changes of a run's scale: the start, and the lengths and learning rates of steps.

        Learning rates of the other run were chosen for its own start. Those of pre-training are then the catalogue's,
        for published models; a fine-tuning tries some on validation.

        Args:
            steps: those that the rows take, by name.
        """
        length = self.said.get("length", min(LONGEST, self.said["max_length"]))
        lengths = {"length": length, "query_length": self.said.get("query_length", min(64, length))}
        own = {key: _without_rate(fields) for key, fields in base.scale.steps.items()}
        tuned = {
            name: own.get(name, {}) | {"learning_rates": [*RATES]}
            for name, fields in steps.items()
            if fields["kind"] == "finetune"
        }
        further = _without_rate(base.scale.pretrain)
        further |= {"length": min(further["length"], self.said["max_length"])} if "length" in further else {}
        return {
            "backbones": base.scale.backbones | {PAPERS_START: self.name},
            "pretrain": further,
            "finetune": _without_rate(base.scale.finetune) | lengths,
            "steps": {key: fields for key, fields in own.items() if fields and set(names_of(key, steps)) & set(steps)}
            | tuned,
        }


def published_encoder(run: str, checkpoint: str, pinned: str | None, data_root: Path) -> PublishedEncoder:
    """Look at a checkpoint's files; those of the hub are fetched.

    Args:
        run: the name of the new run.
        checkpoint: a folder, an archive, or an id of Hugging Face's hub.
        pinned: the sha256 of the archive, or of the weights.
        data_root: where fetched files are kept.
    """
    name, path = f"{run}-encoder".lower(), Path(checkpoint)
    with TemporaryDirectory() as place:
        if path.is_dir():
            written = checkpoint if path.is_absolute() else f"./{path}"
            if not (path / ADAPTER).is_file():
                return _of_folder(name, written, path, pinned)
            found = _of_folder(name, written, _with_base(path, Path(place), data_root), pinned)
            return PublishedEncoder(name, {**found.backbone, **found.said}, found.said, found.files)
        if path.is_file():
            return _of_archive(name, path, pinned, Path(place) / "unpacked")
        if checkpoints.is_folder(checkpoint):
            raise EncoreError(f"there is no {checkpoint}; name a folder, an archive, or an id of Hugging Face's hub")
        commit = hub.fetch(checkpoint, None, data_root, Path(place) / "fetched")["commit"]
        found, revision = _of_folder(name, checkpoint, Path(place) / "fetched", pinned), {}
        with suppress(OSError):  # files of a data_root that can only be read are found without a commit alone
            if commit:
                hub.keep_pinned(checkpoint, commit, data_root)
                revision = {"revision": commit}
        return PublishedEncoder(name, {**found.backbone, **revision, **found.said}, found.said, found.files)


def _of_folder(name: str, written: str, folder: Path, pinned: str | None) -> PublishedEncoder:
    """A user's folder as a backbone; its values are read whenever a run is planned."""
    files = checkpoints.chosen(checkpoints.names_in(folder), written)
    digests = {file: sha256(folder / file) for file in files}
    if pinned and pinned not in (
        weights := {digests[each] for each in files if "safetensors" in each or "bin" in each}
    ):
        raise EncoreError(f"{written}: the sha256 of its weights is {', '.join(sorted(weights))}, not {pinned}")
    entry = {"start": "checkpoint", "checkpoint": written, "sha256": digests}
    return PublishedEncoder(name, entry, *_whole(folder))


def _with_base(adapter: Path, place: Path, data_root: Path) -> Path:
    """A user's adapter together with its base, which may have to be fetched."""
    base, revision, *_ = read_adapter(adapter)
    if not checkpoints.is_folder(base):
        hub.fetch(base, revision, data_root, place / "base")
    there = Path(base) if checkpoints.is_folder(base) else place / "base"
    return checkpoints.with_base(adapter, there, place / "joined")


def _of_archive(name: str, archive: Path, pinned: str | None, place: Path) -> PublishedEncoder:
    """An archive as a source and a backbone, with what its files say now."""
    digest = digest_of(archive, "sha256")
    if pinned and digest != f"sha256:{pinned}":
        raise EncoreError(f"{archive} has the {digest}, not {pinned}; download it again")
    if archive.suffix not in ZIPPED + TARRED:
        known = ", ".join(ZIPPED + TARRED)
        raise EncoreError(f"{archive} is no archive that is known ({known}); unpack it, and name its folder")
    kind: Kind = "zip" if archive.suffix in ZIPPED else "tar"
    unpack(archive, kind, (), place)
    said, files = _whole(checkpoints.inside(place))
    address = archive.resolve().as_uri()
    file = {"url": address, "digest": digest, "bytes": archive.stat().st_size, "unpack": kind}
    source = {"licence": "see its publisher", "terms": address, "files": [file]}
    return PublishedEncoder(name, {"start": "checkpoint", "checkpoint": name, **said}, said, files, source)


def _whole(folder: Path) -> Said:
    said = said_by(folder)
    if lacking := [theirs[0] for ours, theirs in SHAPE.items() if ours not in said.values]:
        raise EncoreError(f"{folder}/config.json does not say {lacking[0]}; name a checkpoint of an encoder")
    return said


def _without_rate(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "learning_rate"}

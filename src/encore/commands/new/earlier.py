"""What an earlier run calls the same texts and the same encoder: under one name what it has made is used again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from encore.commands.new.encoder import PublishedEncoder
from encore.commands.new.run_text import entry_of
from encore.commands.new.source import Source


def take_names(source: Source, encoder: PublishedEncoder | None, folder: Path) -> str | None:
    """Give a collection, and its encoder, the names that a run's file in a folder has for them; what to say of it.

    A collection is named after its dataset, whatever splits a run uses, and all that is made of it after both.
    """
    entry, splits = entry_of(source)
    own, place = _identity({**entry, "splits": splits}), "path" if "path" in entry else "id"
    for path in sorted(folder.glob("*.yaml")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if f"{place}: {entry[place]}\n" not in text:
            continue
        run = yaml.safe_load(text)
        named = [name for name, each in (run.get("datasets") or {}).items() if _identity(each) == own]
        if named:
            source.name = str(named[0])
            also = encoder is not None and _named_alike(encoder, run)
            return f"{path} has the same texts{' and encoder' if also else ''}: what is made of them is used by both."
    return None


def _identity(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What decides an entry's collection."""
    decides = ("role", "file", "id", "grades")
    splits = {name: [each.get(key) for key in decides] for name, each in entry.get("splits", {}).items()}
    return {name: value for name, value in entry.items() if name != "zero_shot"} | {"splits": splits}


def _named_alike(encoder: PublishedEncoder, run: Mapping[str, Any]) -> bool:
    """Give an encoder the name that a run has for it; whether it has one."""
    sources, backbones = run.get("sources") or {}, run.get("backbones") or {}

    def identity(fields: Mapping[str, Any], files: Mapping[str, Any]) -> dict[str, Any]:
        digests = [file.get("digest") for file in files.get("files", ())]
        return {**fields, **({"checkpoint": digests} if digests else {})}

    own = identity(encoder.backbone, encoder.source)
    for name, fields in backbones.items():
        if identity(fields, sources.get(fields.get("checkpoint"), {})) == own:
            encoder.name = str(name)
            encoder.backbone |= {"checkpoint": encoder.name} if encoder.source else {}
            return True
    return False

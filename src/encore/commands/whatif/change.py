"""A configuration with some values changed, next to the one that is there: ``steps.costa.temperature=0.05``.

The first word names a file of the catalogue; any other path is one in the run's own file. Values are YAML. What other
entries inherit from the changed one (``<<: *costa``) changes with it, as it would if the file were edited.
"""

import shutil
from pathlib import Path
from typing import Any

import yaml

from encore.config.run_file import EXTENDS, run_content
from encore.config.validation import nearest, read_yaml, yaml_reason
from encore.errors import EncoreError

FILES = ("backbones", "datasets", "doc2query", "indexes", "sources", "steps", "systems")
MERGE = "<<"


def changed(catalogue: Path, run: Path, changes: list[str], folder: Path) -> tuple[Path, Path]:
    """Copy a catalogue and a run's file into ``folder`` with the changes made; returns both places.

    Raises:
        EncoreError: a change is not ``path=value``, or its place does not exist.
    """
    copied = folder / catalogue.name
    shutil.copytree(catalogue, copied)
    own = folder / run.name
    if EXTENDS in read_yaml(run):  # what it takes over can be changed too
        own.write_text(yaml.safe_dump(run_content(run), sort_keys=False), encoding="utf-8")
    else:
        shutil.copyfile(run, own)
    for change in changes:
        place, sign, value = change.partition("=")
        if not sign or not place or place != place.strip():
            raise EncoreError(f"{change!r} is not a change; write it like steps.costa.temperature=0.05")
        first, _, rest = place.partition(".")
        path, inner = (copied / f"{first}.yaml", rest) if first in FILES and rest else (own, place)
        _change(path, inner.split("."), value, change)
    return copied, own


def _change(path: Path, keys: list[str], value: str, change: str) -> None:
    root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    node = root
    for depth, key in enumerate(keys[:-1]):
        node = _inner(node, key, ".".join(keys[: depth + 1]), change, path.name)
    try:
        new = yaml.compose(value, Loader=yaml.SafeLoader) or yaml.compose("null", Loader=yaml.SafeLoader)
        _set(node, keys[-1], new, change)
        content = yaml.SafeLoader("").construct_document(root)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise EncoreError(f"{change!r}: the value is not YAML: {yaml_reason(error)}") from error
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def _inner(node: Any, key: str, place: str, change: str, file: str) -> Any:
    """The mapping under a key, which is added if a run's file has none."""
    known = {each.value: value for each, value in _pairs(node, change)}
    if key in known:
        return known[key]
    if any(each.value == MERGE for each, _ in node.value):
        raise EncoreError(f"{change!r}: {place} is inherited; change it where {file} has it")
    if file.removesuffix(".yaml") in FILES:
        raise EncoreError(f"{change!r}: {file} has no {place}{nearest(key, known)}")
    empty = yaml.MappingNode("tag:yaml.org,2002:map", [])
    node.value.append((yaml.ScalarNode("tag:yaml.org,2002:str", key), empty))
    return empty


def _set(node: Any, key: str, new: Any, change: str) -> None:
    for place, (name, _) in enumerate(_pairs(node, change)):
        if name.value == key:
            node.value[place] = (name, new)
            return
    node.value.append((yaml.ScalarNode("tag:yaml.org,2002:str", key), new))


def _pairs(node: Any, change: str) -> list[Any]:
    if not isinstance(node, yaml.MappingNode):
        raise EncoreError(f"{change!r}: there are no keys below that; give the whole value instead")
    pairs: list[Any] = node.value
    return pairs

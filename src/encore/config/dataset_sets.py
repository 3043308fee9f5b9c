"""Reading ``datasets.yaml``: an entry with ``sets:`` is one dataset for each of them, such as those of BEIR.

The entry's name has one placeholder, ``beir-{set}``, for the name of a set. That and the values that a set gives, or
``vars:`` for all, replace their name in braces in the fields.
"""

import re
from pathlib import Path
from typing import Any

from encore.config.validation import read_yaml
from encore.errors import EncoreError

SETS, VARS = "sets", "vars"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def read_datasets(path: Path) -> dict[str, Any]:
    """The entries of a ``datasets.yaml``, each with its own fields, not yet checked.

    Raises:
        EncoreError: the file is no YAML, or an entry with sets is wrong; one line with file and place.
    """
    found: dict[str, Any] = {}
    for name, entry in read_yaml(path).items():
        several = isinstance(entry, dict) and SETS in entry
        for own, fields in (_each(name, entry, f"{path}: {name}") if several else {name: entry}).items():
            if own in found:
                raise EncoreError(f"{path}: {own} is there twice, once under `{SETS}`; keep one of them")
            found[own] = fields
    return found


def _each(name: str, entry: dict[str, Any], place: str) -> dict[str, Any]:
    placeholders = _PLACEHOLDER.findall(str(name))
    if len(placeholders) != 1:
        raise EncoreError(f"{place}: an entry with `{SETS}` has the place of a set's name in its own, as beir-{{set}}")
    (key,) = placeholders
    sets, common = entry[SETS], entry.get(VARS, {})
    for what, values in ((SETS, sets), (VARS, common)):
        if not isinstance(values, dict):
            raise EncoreError(f"{place}.{what}: must be a mapping (found {str(values)[:60]!r})")
    fields = {field: value for field, value in entry.items() if field not in (SETS, VARS)}
    used = set(_PLACEHOLDER.findall(str(fields)))
    found = {}
    for own, given in sets.items():
        if not isinstance(given or {}, dict):
            raise EncoreError(f"{place}.{SETS}.{own}: must be a mapping of values (found {str(given)[:60]!r})")
        values = {key: own, **common, **(given or {})}
        if idle := sorted(values.keys() - used - {key}):
            raise EncoreError(f"{place}.{SETS}.{own}: no field has {{{idle[0]}}}; leave it out")
        if missing := sorted(used - values.keys() - {"data_root"}):
            raise EncoreError(f"{place}.{SETS}.{own}: {{{missing[0]}}} has no value; give one here or under `{VARS}`")
        values = {called: _filled(value, {key: own}) for called, value in values.items()}
        found[_filled(name, values)] = _filled(fields, values)
    return found


def _filled(value: Any, values: dict[str, Any]) -> Any:
    """A value with known placeholders replaced; what is one placeholder alone keeps the type of its value."""
    if isinstance(value, dict):
        return {key: _filled(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    if not isinstance(value, str):
        return value
    if (alone := _PLACEHOLDER.fullmatch(value)) and alone[1] in values:
        return values[alone[1]]
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), value)

"""A choice that no paper states is written down, and what is written down is what runs."""

from pathlib import Path

import pytest
import yaml

CONFIG = Path(__file__).parents[2] / "config"
ENTRIES = [
    (path, entry) for path in sorted(CONFIG.glob("papers/*/ledger.yaml")) for entry in yaml.safe_load(path.read_text())
]


def stands(field):
    """The value at ``file.path.in.it``."""
    file, *keys = field.split(".")
    value = yaml.safe_load((CONFIG / f"{file}.yaml").read_text())
    for key in keys:
        value = value[key]
    return value


@pytest.mark.parametrize("entry", [entry for _, entry in ENTRIES], ids=lambda entry: entry["field"])
def test_the_ledger_says_what_stands_in_the_configuration(entry):
    assert set(entry) == {"field", "value", "from", "why"}
    assert entry["from"] in ("paper", "code", "inferred", "ours")
    assert entry["why"].endswith(".")
    assert stands(entry["field"]) == entry["value"]


def test_no_field_has_two_entries():
    fields = [entry["field"] for _, entry in ENTRIES]
    assert len(fields) > 10
    assert len(set(fields)) == len(fields)

"""The schema that editors read is the one that the typed models give."""

import json
from pathlib import Path

import pytest

from encore.config.run import RunConfig
from encore.config.validation import checked, read_yaml
from encore.errors import EncoreError

ROOT = Path(__file__).parents[3]


def test_the_shipped_schema_is_generated_from_the_models():
    shipped = json.loads((ROOT / "config/schema.json").read_text())
    assert shipped == RunConfig.model_json_schema(), "run `encore schema > config/schema.json`"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seedz": [1]}, "unknown key; did you mean seeds"),
        ({"scale": {"pretrian": {}}}, "did you mean pretrain"),
        ({"numerics": {"precision": "fp8"}}, "numerics.precision"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "seeds must be different"),
        ({"schema_version": 2}, "schema_version"),
        ({"execution": {"shards": 0}}, "execution.shards"),
    ],
)
def test_a_mistake_is_said_in_one_line_with_its_place(change, says):
    content = read_yaml(ROOT / "config/nano.yaml") | change
    with pytest.raises(EncoreError, match=says) as refused:
        checked(RunConfig, content, "config/nano.yaml")
    assert str(refused.value).startswith("config/nano.yaml")
    assert "\n" not in str(refused.value)


def test_a_missing_key_is_asked_for():
    content = read_yaml(ROOT / "config/nano.yaml")
    del content["seeds"]
    with pytest.raises(EncoreError, match=r"seeds: is required"):
        checked(RunConfig, content, "x.yaml")

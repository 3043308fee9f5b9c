"""What a folder's name is made of: which keys of a spec are fields, which are inputs, and what stays out of it."""

from pathlib import Path
from typing import Any

import pytest

from encore import objectives, stages
from encore.errors import EncoreError

A, B, C = (Path(name) for name in "abc")


@pytest.mark.parametrize(
    ("stage", "folders", "fields"),
    [
        ("search", {"shard0": A, "shard1": B, "subset": C}, {"shards": [A, B], "subset": C}),
        ("search", {"shard10": B, "shard9": A}, {"shards": [A, B], "subset": None}),  # as JSON sorts them
        ("search", {"hit0": A, "hit1": B}, {"hits": [A, B], "shards": [], "subset": None}),
        ("finetune", {"teacher0": A, "teacher1": B, "weights": C}, {"teachers": [A, B], "weights": C, "shards": []}),
        ("collection", {"source.wikipedia": A, "source.squad-1.1": B}, {"sources": {"wikipedia": A, "squad-1.1": B}}),
        ("collection", {"collection": C, "part.10": B, "part.2": A}, {"collection": C, "parts": [A, B]}),
        ("tokens", {"part.0": A, "part_token.0": B}, {"parts": [A], "part_tokens": [B], "collection": None}),
        ("measure_latency", {"part0": A, "shard0": B, "first": C}, {"parts": [A], "shards": [B], "first": C}),
    ],
)
def test_roles_with_a_number_or_a_name_are_one_field(
    stage: str, folders: dict[str, Path], fields: dict[str, Any]
) -> None:
    roles = stages.load(stage).roles
    others = {name: Path("other") for name, field in roles.model_fields.items() if field.is_required()}
    found = roles.of({name: folder for name, folder in others.items() if name not in fields} | folders, "a folder")
    assert {name: getattr(found, name) for name in fields} == fields
    assert {*folders.values()} <= {*found.folders()}


def test_a_role_that_a_stage_has_not_is_refused() -> None:
    with pytest.raises(EncoreError, match=r"results/x.*tokenz: unknown key; did you mean tokens"):
        stages.load("masked_loss").roles.of({"model": A, "tokens": B, "tokenz": C}, "results/x")


NUMERICS = {"precision": "fp32", "threads": 1}


@pytest.mark.parametrize(
    ("stage", "fields", "inputs", "spec"),
    [
        # A field without a value stays out; one whose value is the default's does not.
        ("encode", {"length": 8, "numerics": NUMERICS}, {"model": "m", "tokens": "t"}, {"impl": 2}),
        ("encode", {"length": 8, "numerics": {}, "vectors": "fp32"}, {"model": "m", "tokens": "t"}, {"impl": 2}),
        # Of shards and of parts the number decides nothing.
        ("build_index", {"index": {}, "vectors": "v"}, {"shard0": None, "shard1": None}, {"impl": 2}),
        ("tokens", {"collection": "c"}, {"part.0": None, "part_token.0": None, "tokenizer": "t"}, {"impl": 1}),
        ("finetune", {"step": {}, "seed": 0, "numerics": {}}, {"shard0": None, "teacher0": "t"}, {"impl": 4}),
        # A field may be called as no name in Python can.
        ("merged_negatives", {"from": ["a", "b"]}, {"bm25": "n", "mined": "m"}, {"impl": 1}),
        # Each kind of dataset has fields and a version of its own.
        ("collection.beir", {"kind": "beir", "files": {}}, {"source.x": "s", "part.0": "p"}, {"impl": 2}),
    ],
)
def test_a_spec_has_the_version_the_given_fields_and_the_names_of_inputs(
    stage: str, fields: dict[str, Any], inputs: dict[str, str | None], spec: dict[str, Any]
) -> None:
    """An input without a name is one that stays out."""
    folders = {role: name or "left out" for role, name in inputs.items()}
    named = {role: name for role, name in inputs.items() if name}
    assert stages.load(stage).planned(fields, folders) == (stage, spec | fields | named)


def test_an_objective_is_in_the_name_of_the_stage_and_in_its_version() -> None:
    fields = {"step": {"objective": "ict"}, "seed": 0, "numerics": NUMERICS}
    assert stages.load("pretrain").planned(fields, {"weights": "w"}) == (
        "pretrain.ict",
        {"impl": [stages.load("pretrain").impl, objectives.load("ict").impl], **fields, "weights": "w"},
    )


@pytest.mark.parametrize(
    ("stage", "fields", "says"),
    [
        ("encode", {"lenght": 8}, "lenght"),
        ("encode", {"length": 8, "numerics": {}, "vectors": "fp8"}, "vectors"),
        ("search", {"split": "test"}, "depth"),
    ],
)
def test_a_wrong_field_never_gets_into_a_name(stage: str, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        stages.load(stage).planned(fields, {})


def test_an_unknown_stage_is_refused_with_the_nearest() -> None:
    with pytest.raises(EncoreError, match="stage 'searchh' is unknown; did you mean search"):
        stages.load("searchh")

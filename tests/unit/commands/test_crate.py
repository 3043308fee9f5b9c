"""Results as an RO-Crate: whole, verifiable, and described by the Workflow Run profile."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from encore.commands.crate import METADATA, write_crate
from encore.errors import EncoreError
from encore.storage import manifest
from encore.storage.files import sha256, write_json, write_text
from encore.storage.root import compute_root, write_root

RUN = Path("config/a run.yaml")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of one artifact, in a small repository; the place of a crate."""
    monkeypatch.chdir(tmp_path)
    for name in ("workflow/Snakefile", "LICENSE", "workflow/rules/a.smk", str(RUN), "config/papers/p/tables.yaml"):
        write_text(Path(name), name)
    scores = Path("results/scores/a-00000001/b-00000002")
    with manifest.record(scores, stage="evaluate", spec={}, inputs=[]):
        write_text(scores / "scores.parquet", "scores")
    table = Path("results/tables/costa/table1.csv")
    write_text(table, "id,reproduced\n")
    reads = {str(scores / manifest.MANIFEST): manifest.describe(scores / manifest.MANIFEST)}
    content = {"stage": "table", "spec": {}, "inputs": reads, "outputs": {table.name: manifest.describe(table)}}
    write_json(table.with_name("table1.manifest.json"), content)
    write_text(Path("results/logs/a.log"), "not in the crate")
    write_root()
    return tmp_path / "crates/one"


def entities(crate: Path) -> dict[str, Any]:
    return {entity["@id"]: entity for entity in json.loads((crate / METADATA).read_text())["@graph"]}


def test_a_crate_has_all_that_is_behind_its_products_and_the_same_root(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = compute_root()
    files = write_crate("Nano", RUN, made)
    present = sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file())
    assert len(present) == files + 1 == 12
    assert "results/scores/a-00000001/b-00000002/run.json" in present
    assert "results/logs/a.log" not in present
    monkeypatch.chdir(made)
    assert compute_root() == before


def test_every_file_is_described_as_it_is(made: Path) -> None:
    write_crate("Nano", RUN, made)
    known = entities(made)
    parts = {part["@id"] for part in known["./"]["hasPart"]}
    assert "config/a%20run.yaml" in parts
    for path in made.rglob("*"):
        name = str(path.relative_to(made)).replace(" ", "%20")
        if path.is_file() and name != METADATA:
            assert name in parts
            assert (known[name]["sha256"], known[name]["contentSize"]) == (sha256(path), str(path.stat().st_size))


def test_the_parts_that_the_profile_requires(made: Path) -> None:
    """https://w3id.org/ro/wfrun/workflow/0.5; the public validator accepted a crate of nano."""
    write_crate("Nano", RUN, made)
    known = entities(made)
    root, action = known["./"], known["#run"]
    assert known[METADATA]["about"] == {"@id": "./"}
    assert {profile["@id"] for profile in root["conformsTo"]} <= known.keys()
    assert "ComputationalWorkflow" in known[root["mainEntity"]["@id"]]["@type"]
    assert known[known["workflow/Snakefile"]["programmingLanguage"]["@id"]]["@type"] == "ComputerLanguage"
    assert root["mentions"] == {"@id": "#run"}
    assert action["@type"] == "CreateAction"
    assert action["instrument"] == root["mainEntity"]
    assert action["object"] == {"@id": "config/a%20run.yaml"}
    assert {result["@id"] for result in action["result"]} >= {"results/tables/costa/table1.csv"}
    assert known[root["license"]["@id"]]["@type"] == "CreativeWork"


def test_another_disk_has_copies(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    write_crate("Nano", RUN, made)
    assert (made / "workflow/Snakefile").read_text() == "workflow/Snakefile"


def test_what_cannot_be_a_crate_is_one_line(made: Path) -> None:
    made.mkdir(parents=True)
    with pytest.raises(EncoreError, match="is there already; name a new folder"):
        write_crate("Nano", RUN, made)
    with pytest.raises(EncoreError, match=r"^\.\./own\.yaml is not below this folder, of which the crate is made"):
        write_crate("Nano", Path.cwd().parent / "own.yaml", made / "new")
    Path("results/scores/a-00000001/b-00000002/scores.parquet").unlink()
    with pytest.raises(EncoreError, match=r"scores.parquet is missing; run `encore audit`"):
        write_crate("Nano", RUN, made / "new")
    Path("results").rename("elsewhere")
    with pytest.raises(EncoreError, match="no table, figure or claims are made yet"):
        write_crate("Nano", RUN, made / "other")

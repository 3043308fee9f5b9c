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

RUN, BASE, OTHER = Path("config/a run.yaml"), Path("config/base.yaml"), Path("config/private.yaml")
TABLE = Path("results/tables/costa/table1.manifest.json")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of one artifact, in a small repository; the place of a crate."""
    monkeypatch.chdir(tmp_path)
    for name in ("workflow/Snakefile", "LICENSE", "workflow/rules/a.smk", "config/papers/p/tables.yaml"):
        write_text(Path(name), name)
    write_text(RUN, f"extends: {BASE}\n")
    write_text(BASE, "title: a base\n")
    write_text(OTHER, "title: not to be given away\n")
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
    files = write_crate("Nano", RUN, [TABLE], made)
    present = sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file())
    assert len(present) == files + 1 == 13
    assert "results/scores/a-00000001/b-00000002/run.json" in present
    assert "results/logs/a.log" not in present
    assert {str(RUN), str(BASE)} <= {*present}
    assert str(OTHER) not in present
    monkeypatch.chdir(made)
    assert compute_root() == before


def test_every_file_is_described_as_it_is(made: Path) -> None:
    write_crate("Nano", RUN, [TABLE], made)
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
    write_crate("Nano", RUN, [TABLE], made)
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
    write_crate("Nano", RUN, [TABLE], made)
    assert (made / "workflow/Snakefile").read_text() == "workflow/Snakefile"


def test_what_cannot_be_a_crate_is_one_line(made: Path) -> None:
    made.mkdir(parents=True)
    with pytest.raises(EncoreError, match="is there already; take it as it is, or remove it"):
        write_crate("Nano", RUN, [TABLE], made)
    with pytest.raises(EncoreError, match=r"^\.\./own\.yaml is not below this folder, of which the crate is made"):
        write_crate("Nano", Path.cwd().parent / "own.yaml", [TABLE], made / "new")
    Path("results/scores/a-00000001/b-00000002/scores.parquet").unlink()
    with pytest.raises(EncoreError, match=r"scores.parquet is missing; run `encore audit`"):
        write_crate("Nano", RUN, [TABLE], made / "new")
    assert [*made.iterdir()] == []
    with pytest.raises(EncoreError, match=r"would be in results, of which the crate is made"):
        write_crate("Nano", RUN, [TABLE], Path("results/crate"))
    with pytest.raises(EncoreError, match=r"no table, figure or claims of config/a run\.yaml are made yet"):
        write_crate("Nano", RUN, [], made / "other")


def test_only_products_of_the_run_are_its_results(made: Path) -> None:
    other = Path("results/figures/costa/figure2.csv")
    write_text(other, "id\n")
    content = {"stage": "figure", "spec": {}, "inputs": {}, "outputs": {other.name: manifest.describe(other)}}
    write_json(other.with_name("figure2.manifest.json"), content)
    write_crate("Nano", RUN, [TABLE], made)
    known = entities(made)
    results = {result["@id"] for result in known["#run"]["result"]}
    assert str(TABLE) in results
    assert str(other) not in results
    assert {"@id": str(other)} in known["./"]["hasPart"]


def test_a_full_disk_leaves_nothing(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr("shutil.copy2", refuse)
    with pytest.raises(EncoreError, match=r"^cannot write .*/crates/one: No space left on device; make room"):
        write_crate("Nano", RUN, [TABLE], made)
    assert [*made.parent.iterdir()] == []

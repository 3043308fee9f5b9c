"""A run that an earlier version of Encore made is explained, not called bad."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from encore.commands.audit import audit, prune
from encore.plan.artifact import Artifact
from encore.plan.index import spec_file
from encore.storage import manifest
from encore.storage.files import write_json, write_text

OLD = Artifact("evaluate", "results/scores/bm25-00000001/d.test-00000002", {"impl": 1})
NEW = Artifact("evaluate", "results/scores/bm25-00000003/d.test-00000004", {"impl": 1, "depth": 1000})
NOTE = (
    "results/ holds 1 folder of an earlier version of Encore, whose names were made otherwise; "
    "they stay as they are, this version makes its own (see CHANGELOG.md)"
)
REPEAT = "table table1 was made by an earlier version; run snakemake for it again"


class FakePlan:
    """One row, which this version reads from another folder than the earlier one."""

    config = SimpleNamespace(tables={"table1": "all"}, figures=[])
    made = {NEW.folder: NEW}

    def find(self, folder):
        return self.made[folder]


def declared(plan):
    cells = {"rr": {"reads": [{"folder": NEW.folder}]}}
    return {"table1": {"rows": [{"label": "BM25", "cells": cells}], "proxy_data": True}}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A finished run of an earlier version, table included."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audit, "published_products", declared)
    with manifest.record(Path(OLD.folder), stage=OLD.stage, spec=OLD.spec, inputs=[]):
        write_text(Path(OLD.folder) / "file", "scores")
    record("table1", {"rows": [], "stand_in": True})
    return FakePlan()


def record(name, spec):
    """A table with its manifest."""
    write_text(Path(f"results/tables/{name}.csv"), "cells")
    made = {
        "spec": spec,
        "inputs": {OLD.manifest: manifest.describe(Path(OLD.manifest))},
        "outputs": {f"{name}.csv": manifest.describe(Path(f"results/tables/{name}.csv"))},
    }
    write_text(Path(f"results/tables/{name}.manifest.json"), json.dumps(made))


@pytest.mark.parametrize("spec", [{"rows": [], "stand_in": True}, {"rows": []}])
def test_a_table_of_an_earlier_version_is_a_note_and_is_not_pruned(results, spec):
    record("table1", spec)
    report = audit.audit(results)
    assert (report.findings, report.notes) == ([], [REPEAT, NOTE])
    assert prune.to_prune(results, report) == []
    assert Path(OLD.folder).is_dir()
    assert Path("results/tables/table1.csv").is_file()


def test_a_folder_of_another_configuration_of_this_version_is_none(results):
    write_json(spec_file(OLD.folder), OLD.spec)
    record("table1", {"rows": []})
    report = audit.audit(results)
    assert report.notes == []
    assert any("another plan than the configuration" in str(finding) for finding in report.findings)


def test_a_manifest_of_something_else_is_none(results):
    write_text(Path("results/sources/archive/manifest.json"), "{}")
    assert audit.audit(results).notes == [REPEAT, NOTE]

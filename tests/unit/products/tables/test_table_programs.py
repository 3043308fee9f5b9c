"""The programs that make tables and figures: files, manifests, and what they refuse."""

import json
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.products import slices
from encore.products.tables import layout
from encore.storage.files import full_digest
from tests.support import inside
from tests.support.small_table import plan


def test_the_programs_write_files_and_manifests_and_check_their_scores(tmp_path: Path) -> None:
    path = tmp_path / "table1.json"
    path.write_text(json.dumps(plan(tmp_path, seeds=1)))
    for script, endings in (("table", {"csv", "json", "md", "tex", "html"}), ("figure", {"csv", "png", "svg"})):
        spec = json.dumps({"name": "table1", "sha256": full_digest(json.loads(path.read_text()))})
        done = inside.product(script, path, tmp_path / script, "--spec", spec)
        assert done.returncode == 0, done.stderr
        manifest = json.loads((tmp_path / script / "table1.manifest.json").read_text())
        assert set(manifest["outputs"]) == {f"table1.{ending}" for ending in endings}
        assert len(manifest["inputs"]) == 5
        assert manifest["spec"] == json.loads(path.read_text())
    with (tmp_path / "ict-s0" / scores.FILE).open("ab") as file:
        file.write(b"!")
    done = inside.product("table", path, tmp_path / "again")
    assert done.returncode == 1
    assert "ict-s0/scores.parquet has" in done.stderr
    assert not (tmp_path / "again").exists()


def test_a_wrong_plan_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="is missing"):
        slices.read(tmp_path / "none.json", layout.Layout.model_validate)
    (tmp_path / "t.json").write_text('{"name": "t", "paper": "p", "title": "", "rows": [], "columns": [{"id": "x"}]}')
    with pytest.raises(EncoreError, match=r"columns\.0\.label: Field required"):
        slices.read(tmp_path / "t.json", layout.Layout.model_validate)
    for damaged in ("{", "[" * 100_000):
        (tmp_path / "t.json").write_text(damaged)
        with pytest.raises(EncoreError, match=r"t\.json cannot be used \(.*\); delete it, the workflow"):
            slices.read(tmp_path / "t.json", layout.Layout.model_validate)


def test_a_plan_that_another_run_rewrote_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table1.json"
    path.write_text(json.dumps(plan(tmp_path, seeds=1)))
    right = full_digest(json.loads(path.read_text()))
    for spec in ({"name": "table1", "sha256": "0" * 64}, {"name": "other", "sha256": right}):
        done = inside.product("table", path, tmp_path / "out", "--spec", json.dumps(spec))
        assert (done.returncode, (tmp_path / "out").exists()) == (1, False)
        assert "was rewritten by another run" in done.stderr

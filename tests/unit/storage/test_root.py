"""One digest over all that is made: it changes with every byte of it, and a copy is audited by it elsewhere."""

import json
import shutil
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

import pytest

from encore.commands.__main__ import main
from encore.commands.audit import copies
from encore.errors import EncoreError
from encore.storage import manifest, root
from encore.storage.files import write_json
from tests.support.audited_chain import OTHER, A, B, C

TABLE = Path("results/tables/table1.manifest.json")


@pytest.fixture
def copy(results: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a finished run under another name; its made-up table is not made again."""
    monkeypatch.setattr(copies, "remake_products", lambda report: None)
    Path("config").mkdir()
    shutil.copytree("results", tmp_path / "from elsewhere")
    return tmp_path / "from elsewhere"


def reasons(folder: Path, expected: str | None = None) -> list[str]:
    """What the audit of a copy finds."""
    report, wrong, _ = copies.audit_copy(folder, expected)
    return [str(finding) for finding in report.findings] + ([wrong] if wrong else [])


def forge(folder: Path) -> None:
    """Change a file, and every digest above it up to the table."""
    chain = [A, B, C]
    (folder.parent / A.folder / "file").write_text("forged")
    for name in [f"{artifact.folder}/manifest.json" for artifact in (*chain, OTHER)] + [str(TABLE)]:
        path = folder.parent / name
        record = json.loads(path.read_text())
        for kind, place in (("outputs", path.parent), ("inputs", folder.parent)):
            record[kind] = {each: manifest.describe(place / each) for each in record[kind]}
        write_json(path, record)


def test_the_root_covers_a_product_and_all_behind_it(results: Any) -> None:
    content = root.compute_root()
    assert content is not None
    assert content["manifests"].keys() == {str(TABLE), *(artifact.manifest for artifact in (A, B, C, OTHER))}
    assert root.write_root() == content["root"]
    assert root.read_root() == content
    before = root.ROOT.stat().st_mtime_ns
    assert root.write_root() == content["root"]
    assert root.ROOT.stat().st_mtime_ns == before, "the same root is not written again"


def test_every_manifest_changes_the_root(results: Any) -> None:
    content = root.compute_root()
    assert content is not None
    seen = {content["root"]}
    for name in content["manifests"]:
        before = Path(name).read_bytes()
        for damage in (before + b" ", b"", b"\xff", b"[]", b'{"inputs": 5}', None):
            Path(name).unlink() if damage is None else Path(name).write_bytes(damage)
            changed = root.compute_root()
            if damage is not None or Path(name) != TABLE:
                assert changed is not None
                assert changed["root"] not in seen, (name, damage)
        Path(name).write_bytes(before)
    assert root.compute_root() == content


def test_nothing_made_has_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert root.write_root() is None
    assert not root.ROOT.exists()
    assert root.compare_root(None) == (None, "no root: nothing is made")
    assert root.compare_root("12345678")[0] == "nothing is made, so there is no root"


@pytest.mark.parametrize("damage", ["{", "[]", '{"root": }', "\0"])
def test_a_damaged_root_file_is_as_good_as_none(damage: str, results: Any) -> None:
    root.ROOT.write_text(damage)
    assert root.read_root() is None
    wrong, text = root.compare_root(None)
    assert wrong is None
    assert text.endswith("(results/root.json cannot be read)")


def test_a_root_file_that_was_edited_is_told(results: Any) -> None:
    """A digest in it, an extra key, or the root; the root of the results is computed, not read."""
    whole = root.write_root()
    assert root.compare_root(whole) == (None, f"root {whole}")
    content = json.loads(root.ROOT.read_text())
    first = min(content["manifests"])
    write_json(root.ROOT, content | {"manifests": content["manifests"] | {first: "0" * 64}})
    told = f"root {whole} (results/root.json was edited: entries besides the root differ)"
    assert root.compare_root(whole) == (None, told)
    write_json(root.ROOT, content | {"signed": "by nobody"})
    assert root.compare_root(whole) == (None, told)
    write_json(root.ROOT, content | {"root": "0" * 64})
    assert root.compare_root(None) == (None, f"root {whole} (when the last run ended: {'0' * 64})")
    assert root.write_root() == whole
    assert json.loads(root.ROOT.read_text()) == content


@pytest.mark.parametrize("expected", ["", "1234567", "8 digits", "3f2a9c51", "a" * 15, "a" * 65])
def test_what_is_no_root_is_refused(expected: str, results: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="is not the first 16 to 64 digits of a root"):
        root.beginning_of_root(expected)


def test_a_copy_under_any_name_is_clean_and_has_the_same_root(copy: Path) -> None:
    whole = root.write_root()
    assert reasons(copy, whole) == []
    shutil.move(copy, copy.parent / "moved" / "results")
    assert reasons(copy.parent / "moved", whole) == []


def test_a_copy_is_verified_file_by_file(copy: Path) -> None:
    folder = copy.parent / B.folder.replace("results", copy.name)
    (folder / "file").write_text("altered")
    assert "has 7 bytes" in reasons(copy)[0]
    (folder / "file").write_text(B.folder)
    (folder / "added").write_text("added")
    assert "added was added" in reasons(copy)[0]
    (folder / "added").unlink()
    (copy / "tables/table1.csv").write_text("forged")
    assert reasons(copy) == ["results/tables/table1.csv was altered; affects table1: every cell"]


def test_what_was_forged_with_every_digest_above_it_differs_from_the_root(results: Any, copy: Path) -> None:
    whole = root.write_root()
    shutil.move(copy, copy.parent / "forged" / "results")
    forge(copy.parent / "forged" / "results")
    assert reasons(copy.parent / "forged") == []
    assert whole is not None
    for expected in (whole, whole[:16]):
        (wrong,) = reasons(copy.parent / "forged", expected)
        assert f"not {expected}: they are other ones" in wrong


def test_a_folder_without_products_is_refused(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EncoreError, match="has no manifest of a table, a figure or claims; give a results folder"):
        copies.audit_copy(tmp_path / "empty", None)
    (tmp_path / "empty/run.json").touch()
    with pytest.raises(EncoreError, match=r"empty is a record, which `python docs/judge_again.py .*empty` judges"):
        copies.audit_copy(tmp_path / "empty", None)


def test_the_command_audits_a_copy(
    copy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = root.write_root()
    for given, code, last in (
        ([], 0, f"root {whole} (results/root.json is missing)"),
        (["--root", "0" * 64], 1, f"bad: the root of these results is {whole}, not {'0' * 64}: they are other ones"),
    ):
        monkeypatch.setattr("sys.argv", ["encore", "audit", str(copy), *given])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code
        lines = capsys.readouterr().out.splitlines()
        assert "5 artifacts verified by their own manifests, 0 bad; compared with no configuration" in lines[-3]
        assert lines[-1] == last

"""Whatever was done to a folder of results, the audit ends with findings of one line each, and prunes."""

import json
import os
import random
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from encore.commands import audit as audit_command
from encore.commands.audit import audit, recompute
from encore.commands.audit.findings import REPORT, AuditReport
from encore.errors import EncoreError
from encore.products.record import make_product
from encore.products.report.records import ArtifactRecords, read_run
from encore.storage import manifest
from encore.storage.files import write_json
from tests.support import inside, small_report
from tests.support.audited_chain import OTHER, B, pruned, tamper

VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    10**30,
    "",
    "\ud800",
    "a\nb",
    "../../x",
    "/etc/passwd",
    "n" * 5000,
    "\0",
    [],
    [{}],
    {},
    {"sha256": 5, "bytes": "many"},
    {"": {"sha256": "0", "bytes": 0}},
    {"n" * 5000: {"sha256": "0", "bytes": 0}},
    {"\ud800\n": {"sha256": "0", "bytes": 0}},
]
BYTES = [b"", b"\xff\xfe", b"\0" * 100, b"[" * 100_000, b'{"a":' * 50_000, b"1" * 10_000, b"NaN", b"{}", b"[]", b'"x"']


def changed(value: Any, rng: random.Random) -> Any:
    """JSON with one part replaced, dropped or added, anywhere."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(sorted(value))
        if rng.random() < 0.25:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: changed(value[key], rng)}
    return rng.choice([each for each in VALUES if each != value])


def damage(path: Path, rng: random.Random) -> None:
    kind = rng.choice(("bytes", "flip", "cut", "gone", "folder", "link", "loop", "json", "json", "json", "json"))
    content = path.read_bytes()
    if kind == "flip":
        place = rng.randrange(len(content))
        content = content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]
    elif kind == "cut":
        content = content[: rng.randrange(len(content))]
    elif kind == "json" and path.suffix == ".json":
        content = json.dumps(changed(json.loads(content), rng)).encode()
    elif kind in ("bytes", "json"):
        content = rng.choice(BYTES)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind in ("link", "loop"):
        path.symlink_to("nowhere" if kind == "link" else path.name)
    elif kind != "gone":
        path.write_bytes(content)


def plain(reasons: list[str]) -> None:
    for reason in reasons:
        assert "\n" not in reason
        assert not re.search(r"\b[A-Z]\w*(Error|Exception|Invalid)\b|\[Errno", reason), "in words, and not in Python's"
        reason.encode()


def again(backup: Path) -> None:
    shutil.rmtree("results")
    shutil.copytree(backup, "results")


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 250), marks=pytest.mark.slow)], ids=str)
def test_any_damage_is_a_finding_and_is_pruned(seeds: range, results: Any, tmp_path: Path) -> None:
    shutil.copytree("results", tmp_path / "backup")
    files = sorted(path for path in Path("results").rglob("*") if path.is_file())
    for seed in seeds:
        rng = random.Random(seed)
        path = rng.choice(files)
        before = path.read_bytes()
        damage(path, rng)
        report = audit.audit(results)
        plain([str(finding) for finding in report.findings])
        if path.name == "run.json":
            assert not report.findings
        elif path.name != "table1.manifest.json" and not (path.is_file() and path.read_bytes() == before):
            assert report.findings, f"{path}, seed {seed}"
        audit.prune(audit.to_prune(results, report))
        if report.findings and path.name != "run.json":
            left = audit.audit(results).findings
            assert not left, f"{path}, seed {seed}: {left}"
        again(tmp_path / "backup")


@pytest.mark.parametrize("content", [{"spec": {}, "results": {}, "inputs": {}, "outputs": {}}, {"stage": "tokens"}])
def test_a_manifest_without_its_parts_is_a_finding(results: Any, content: Any) -> None:
    write_json(Path(B.manifest), content)
    report = audit.audit(results)
    assert f"{B.manifest} is not a manifest" in str(report.findings[0])
    assert B.folder in audit.to_prune(results, report)


def test_a_folder_that_is_a_file_or_a_link_is_pruned(results: Any) -> None:
    for folder in (B.folder, OTHER.folder):
        shutil.rmtree(folder)
    Path(B.folder).write_text("a file")
    Path(OTHER.folder).symlink_to("nowhere")
    pruned(results)
    assert not Path(B.folder).exists()
    assert not os.path.lexists(OTHER.folder)


@pytest.mark.parametrize("name", ["segments_2", ".hidden", "deeper/file", "manifest.json.tmp.bin", "deeper/run.json"])
def test_a_file_that_was_added_is_a_finding(name: str, results: Any) -> None:
    path = Path(B.folder, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text("one more")
    report = audit.audit(results)
    assert [finding.place for finding in report.findings] == [B.folder]
    assert f"{path} was added" in report.findings[0].reason
    assert "BoW [s]" in str(report.findings[0])
    with pytest.raises(EncoreError, match="was added"):
        manifest.verify(Path(B.folder))


@pytest.mark.parametrize("to", ["nowhere", "file", "."])
def test_a_link_that_was_added_is_a_finding(to: str, results: Any) -> None:
    Path(B.folder, "link").symlink_to(to)
    assert "link was added" in audit.audit(results).findings[0].reason


@pytest.mark.parametrize("record", [B.manifest, f"{B.folder}/run.json", "results/tables/table1.manifest.json"])
@pytest.mark.parametrize("kind", ["a pipe", "a link to a device"])
def test_a_record_that_has_no_end_is_one_line(record: str, kind: str, results: Any) -> None:
    """Nobody writes into the pipe: whoever reads it waits."""
    path = Path(record)
    path.unlink()
    os.mkfifo(path) if kind == "a pipe" else path.symlink_to("/dev/zero")
    with pytest.raises(EncoreError, match=f"{record} is a pipe or a device and no file; remove it, then repeat"):
        audit.audit(results)


@pytest.mark.parametrize("name", ["half.tmp", "file~", ".file.swp", ".nfs0001", ".DS_Store"])
def test_what_editors_and_file_systems_leave_is_none(name: str, results: Any) -> None:
    Path(B.folder, name).write_text("litter")
    assert not audit.audit(results).findings


@pytest.mark.slow
def test_any_damage_to_what_a_page_shows_is_a_finding_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_json(Path("report.json"), small_report.products(tmp_path))
    make_product("report", Path("report.json"), None, inside.files("report", "report", REPORT.parent))
    monkeypatch.setattr(recompute, "report_plan", lambda plan: json.loads(REPORT.read_text())["spec"])
    shutil.copytree("results", tmp_path / "backup")
    files = sorted(path for path in Path("results").rglob("*") if path.is_file())
    found = 0
    for seed in range(20):
        rng = random.Random(seed)
        damage(rng.choice(files), rng)
        report = AuditReport()
        plan = SimpleNamespace(catalogue=None)
        recompute.remake_products(report)
        recompute.remake_page(report)
        recompute.recompute_report(plan, report)  # type: ignore[arg-type]
        plain([str(finding) for finding in report.findings])
        assert {finding.place for finding in report.findings} <= {str(REPORT)}
        found += bool(report.findings)
        again(tmp_path / "backup")
    assert found > 6


@pytest.mark.parametrize(
    "content",
    [
        '{"seconds": 1}',
        "[]",
        '{"seconds": 1, "device": "cpu", "python": "3", "packages": ["torch"]}',
        '{"seconds": NaN, "device": "cpu", "python": "3", "packages": {}}',
        "\udcff",
        "[" * 100_000,
    ],
)
def test_a_damaged_run_json_is_as_good_as_none(content: str, results: Any) -> None:
    Path(B.folder, "run.json").write_bytes(content.encode(errors="surrogateescape"))
    assert manifest.read_run(Path(B.folder)) == {}
    assert ArtifactRecords([B.folder], read_run)[B.folder].run == {}
    assert not audit.audit(results).findings


def test_a_run_json_is_read_as_it_was_written(results: Any) -> None:
    path = Path(B.folder)
    assert manifest.read_run(path) == json.loads((path / "run.json").read_text()) != {}


@pytest.mark.parametrize("other", [{"tables": ("table1",)}, {"prune": True}])
def test_a_deep_audit_takes_no_flag_that_it_would_ignore(other: dict[str, Any]) -> None:
    flags = {"folder": None, "config": Path("run.yaml"), "deep": True, "prune": False, "tables": (), "root": None}
    with pytest.raises(EncoreError, match="--deep checks all results and removes nothing; give it without --tables"):
        audit_command.answer(SimpleNamespace(**flags | other))  # type: ignore[arg-type]


def test_findings_are_printed_before_anything_is_made_again(
    results: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(*arguments: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("encore.commands.plan.plan_of", lambda arguments: results)
    monkeypatch.setattr(results, "catalogue", None, raising=False)
    monkeypatch.setattr(recompute, "remake_products", crash)
    tamper(f"{B.folder}/file")
    with pytest.raises(ZeroDivisionError):
        audit_command.answer(
            SimpleNamespace(folder=None, config=Path("run.yaml"), deep=False, prune=False, tables=(), root=None)  # type: ignore[arg-type]
        )
    assert f"bad: {B.folder}/file was altered" in capsys.readouterr().out

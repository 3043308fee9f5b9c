"""The audit finds what Snakemake does not look at, and prunes exactly what descends from it."""

import argparse
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from encore.commands import audit as command
from encore.commands.audit import audit, recompute
from encore.errors import EncoreError
from encore.plan import index
from encore.products.kinds import BY_RULE, ProductKind
from encore.storage import manifest
from encore.storage.files import json_text, write_json, write_text
from tests.support.audited_chain import OTHER, A, B, C, declared, pruned, tamper, write_product


def test_a_finished_run_is_clean(results):
    report = audit.audit(results)
    assert not report.findings
    assert report.verified == 5
    assert not report.notes


def test_a_tampered_file_is_named_with_the_cells_behind_it(results):
    tamper(f"{B.folder}/file")
    (finding,) = audit.audit(results).findings
    assert finding.place == B.folder
    assert f"{B.folder}/file was altered" in str(finding)
    assert finding.cells == ("table1: BoW [s]",)


def test_what_other_tables_stand_on_is_left_out(results, monkeypatch):
    """Of two tables each artifact belongs to one, or to both."""
    table = declared(None)["table1"]
    alone = {"table1": table, "table2": table | {"name": "table2", "rows": table["rows"][:1]}}
    monkeypatch.setattr(audit, "published_products", lambda plan: alone)
    write_product(Path("results/tables/table2"), "table", alone["table2"], [C])
    tamper(f"{OTHER.folder}/file")
    assert audit.audit(results, only=["table2"]).findings == []
    assert [each.place for each in audit.audit(results, only=["table1"]).findings] == [OTHER.folder]
    assert audit.audit(results, only=["table2"]).verified == 4
    with pytest.raises(EncoreError, match="--tables 'tabel2' is no table or figure of this run; did you mean table2"):
        audit.audit(results, only=["tabel2"])


def test_an_audit_of_much_says_how_long_it_takes_and_how_far_it_is(results, monkeypatch, capsys):
    audit.audit(results)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(audit, "LONG", 1)
    monkeypatch.setattr(audit, "EVERY", 0)
    monkeypatch.setattr(audit, "_bytes", lambda folder: 3e11)
    audit.audit(results)
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.startswith("audit: 1,200 GB are read; about ")
    assert [line.partition(" read,")[0] for line in lines] == [
        f"audit: {done} of 1,200.0 GB" for done in ("300.0", "600.0", "900.0", "1,200.0")
    ]


def test_pruning_removes_the_bad_artifact_its_descendants_and_the_table_only(results):
    tamper(f"{B.folder}/file")
    removed = pruned(results)
    files = {f"results/tables/table1.{ending}" for ending in (*BY_RULE["table"].endings, "manifest.json")}
    assert set(removed) == {B.folder, C.folder, *files}
    assert Path(A.folder).is_dir()
    assert Path(OTHER.folder).is_dir()
    assert not Path("results/tables/table1.csv").exists()


def test_pruning_removes_what_was_made_from_a_folder_that_is_gone(results):
    """Snakemake, which makes the folder again for that alone, would not miss it."""
    shutil.rmtree(C.folder)
    assert set(pruned(results)) == {
        f"results/tables/table1.{ending}" for ending in (*BY_RULE["table"].endings, "manifest.json")
    }


def test_pruning_a_clean_run_removes_nothing(results):
    before = {path: path.read_bytes() for path in Path("results").rglob("*") if path.is_file()}
    assert pruned(results) == []
    assert before == {path: path.read_bytes() for path in before}
    assert Path("results/tables/table1.csv") in before


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda: Path(B.folder, "file").unlink(), "is missing"),
        (lambda: (Path(B.folder, "file").unlink(), os.mkfifo(Path(B.folder, "file"))), "file is no file"),
        (lambda: Path(B.folder, "file").write_text("short"), "bytes, its manifest says"),
        (lambda: Path(B.manifest).unlink(), "is missing"),
        (lambda: Path(B.manifest).write_text("{"), "is not JSON"),
        (lambda: Path(B.manifest).write_text("{}"), "is not a manifest"),
        (lambda: Path(B.manifest).write_text('{"outputs": {}}'), "is not a manifest"),
        (lambda: Path(B.manifest).write_text("[]"), "is not a manifest"),
    ],
)
def test_every_kind_of_damage_is_said(results, damage, says):
    damage()
    found = [finding for finding in audit.audit(results).findings if finding.place == B.folder]
    assert says in str(found[0])
    assert "\n" not in str(found[0])


def test_another_spec_than_the_plans_is_found(results):
    record = json.loads(Path(OTHER.manifest).read_text())
    Path(OTHER.manifest).write_text(json.dumps(record | {"spec": {"impl": 2}}))
    reasons = [str(finding) for finding in audit.audit(results).findings]
    assert any("another spec than the plan" in reason for reason in reasons)


def test_an_input_that_was_made_anew_is_found(results):
    record = json.loads(Path(A.manifest).read_text())
    write_json(Path(A.manifest), record | {"results": {"pieces": 9}})
    places = {finding.place for finding in audit.audit(results).findings}
    assert places == {B.folder, OTHER.folder}


def test_a_changed_table_is_found_and_pruned(results):
    tamper("results/tables/table1.csv")
    report = audit.audit(results)
    assert [finding.place for finding in report.findings] == ["results/tables/table1.manifest.json"]
    assert "results/tables/table1.csv" in pruned(results)


@pytest.mark.parametrize(
    ("key", "says"),
    [("inputs", "was made from other folders than the plan says"), ("outputs", "lists other files than are made")],
)
def test_an_entry_struck_from_a_products_manifest_is_found(results, key, says):
    """What is not listed is not compared: the plan says what has to be."""
    place = Path("results/tables/table1.manifest.json")
    record = json.loads(place.read_text())
    record[key].popitem()
    write_json(place, record)
    (finding,) = audit.audit(results).findings
    assert finding.place == str(place)
    assert says in str(finding)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda record: json_text({key: value for key, value in record.items() if key != "code"}), "is not a manifest"),
        (lambda record: json_text(record | {"signed": "by nobody"}), "is not a manifest"),
        (lambda record: json_text(record | {"stage": "judge"}), "is a manifest of stage 'judge' and not of 'table'"),
        (lambda record: json_text(record | {"results": {"matplotlib": "0"}}), "says other things of how it was made"),
        (lambda record: json_text(record) + " ", "is not written as Encore writes it"),
        (lambda record: json.dumps(record), "is not written as Encore writes it"),
    ],
)
def test_a_products_manifest_is_what_encore_writes(results, change, says):
    """Blanks behind one gave its digest any first digits; what other code had made was compared with less."""
    place = Path("results/tables/table1.manifest.json")
    write_text(place, change(json.loads(place.read_text()) | {"code": "0"}))
    (finding,) = audit.audit(results).findings
    assert says in str(finding)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda record: json_text(record | {"stage": "judge"}), "has another stage than the plan"),
        (lambda record: json_text(record | {"signed": "by nobody"}), "is not a manifest"),
        (lambda record: json_text(record) + " ", "is not written as Encore writes it"),
    ],
)
def test_an_artifacts_manifest_is_what_encore_writes(results, change, says):
    """Its own stage decided what ``--deep`` compares: scores that called themselves otherwise were not."""
    write_text(Path(C.manifest), change(json.loads(Path(C.manifest).read_text())))
    assert says in str(audit.audit(results).findings[0])


def test_vectors_that_are_gone_are_not_audited_unless_the_run_removes_them(results, monkeypatch):
    """Whoever empties a file may not decide that nobody compares it."""
    shard = Path(C.folder, "000-of-001")
    with manifest.record(shard, stage="encode", spec={}, inputs=[]):
        write_text(shard / "index", "")
    monkeypatch.setattr(audit, "cells_behind", lambda plan, slices: {str(shard): ["table1: BoW [s]"]})
    report = audit.audit(results)
    assert report.not_audited == f"NOT audited: 1 file: {shard}/index (removed, though this run keeps vectors)"
    assert report.is_partial
    monkeypatch.setattr(results.config.execution, "keep_vectors", False)
    report = audit.audit(results)
    assert (report.left_out, report.is_partial) == ({}, False)
    assert report.notes == ["the vectors of 1 shards were removed, as this run plans, and not compared"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "/tmp/x"),
        PermissionError(errno.EACCES, "Permission denied", "results"),
        MemoryError(),
        FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
        ModuleNotFoundError("No module named 'matplotlib'"),
        RuntimeError("write failed: No space left on device"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_the_machine_lacks_ends_the_audit_and_is_no_finding(results, monkeypatch, error):
    """With a full TMPDIR good tables were bad, and pruned: 20 files."""

    def fails(*arguments):
        try:
            raise error
        except type(error) as cause:
            raise EncoreError("cannot write a picture") from cause

    monkeypatch.setattr(ProductKind, "write", fails)
    report = audit.audit(results)
    with pytest.raises(EncoreError, match="cannot write a picture"):
        recompute.remake_products(report)
    assert report.findings == []
    monkeypatch.setattr(manifest, "sha256", fails)
    with pytest.raises(EncoreError, match="cannot write a picture"):
        audit.audit(results)


def test_a_table_without_its_manifest_is_found_and_pruned(results):
    Path("results/tables/table1.manifest.json").unlink()
    tamper("results/tables/table1.csv")
    report = audit.audit(results)
    assert ["is missing" in str(finding) for finding in report.findings] == [True]
    assert pruned(results) == sorted(f"results/tables/table1.{ending}" for ending in BY_RULE["table"].endings)


def test_a_lost_record_of_the_run_is_no_finding(results):
    Path(B.folder, "run.json").write_text("{")
    Path(C.folder, "run.json").unlink()
    assert (audit.audit(results).findings, audit.audit(results).notes) == ([], [])


def test_the_record_of_a_run_names_what_computed(results):
    run = json.loads(Path(B.folder, "run.json").read_text())
    assert run["device"]
    assert {"commit", "python", "packages", "seconds", "peak_memory_mb"} <= run.keys()


def test_changed_code_is_a_note_and_no_finding(results):
    run = Path(B.folder) / "run.json"
    run.write_text(json.dumps(json.loads(run.read_text()) | {"code": "another"}))
    report = audit.audit(results)
    assert not report.findings
    assert any("code that has changed" in note and "BoW" in note for note in report.notes)


def test_a_table_that_was_not_made_is_a_note(results):
    for path in Path("results/tables").iterdir():
        path.unlink()
    report = audit.audit(results)
    assert (report.findings, report.verified, report.notes) == ([], 0, ["table table1 is not made yet"])


def test_a_job_refuses_a_tampered_input(results):
    tamper(f"{A.folder}/file")
    with (
        pytest.raises(EncoreError, match="was altered"),
        manifest.record(Path("out"), stage="start", spec={}, inputs=[Path(A.folder)]),
    ):
        pytest.fail("the body must not run")


def test_a_failed_job_leaves_no_manifest(results):
    with pytest.raises(ZeroDivisionError), manifest.record(Path(B.folder), stage="start", spec={}, inputs=[]):
        _ = 1 / 0
    assert not Path(B.manifest).exists()


def test_what_a_killed_job_was_writing_is_removed_by_the_next(results):
    """A signal 9 leaves a temporary file, of gigabytes where a teacher's vectors are written."""
    left = Path(B.folder) / ".passages.vectors.bin.host.1234.tmp"
    code = f"import os, signal, pathlib; pathlib.Path({str(left)!r}).write_bytes(b'half'); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert left.exists()
    with manifest.record(Path(B.folder), stage="start", spec={}, inputs=[]):
        write_text(Path(B.folder) / "whole", "x")
    assert not left.exists()
    assert "whole" in manifest.read_manifest(Path(B.folder))["outputs"]


def test_what_editors_and_file_systems_leave_enters_no_manifest(results):
    """It lay there when a folder was made again, and a copy without it was bad."""
    for name in (".nfs0001", "file~", ".file.swp", ".DS_Store"):
        write_text(Path(B.folder) / name, "x")
    with manifest.record(Path(B.folder), stage="start", spec={}, inputs=[]):
        pass
    assert manifest.read_manifest(Path(B.folder))["outputs"].keys() == {"file"}


def test_a_manifest_holds_no_time_host_or_absolute_path(results):
    text = Path(C.manifest).read_text()
    assert str(Path.cwd()) not in text
    assert os.uname().nodename not in json.loads(text)["inputs"]
    with manifest.record(Path(C.folder), stage="encode", spec=C.spec, inputs=[Path(B.folder)]):
        pass
    assert Path(C.manifest).read_text() == text


def test_the_figure_of_pre_training_is_checked_and_pruned_with_its_models(results, monkeypatch):
    rows = [{"label": "ICT", "step": "ict", "lineage": "bert+ict", "seeds": [{"seed": 0, "model": B.folder}]}]
    made = {"pretraining": {"name": "pretraining", "rows": rows}}
    monkeypatch.setattr(audit, "published_products", lambda plan: made)
    assert audit.audit(results).notes == ["figure pretraining is not made yet"]
    figure = Path("results/figures/pretraining.png")
    write_product(figure.with_suffix(""), "curves", {"name": "pretraining", "rows": rows}, [B])
    assert (audit.audit(results).findings, audit.audit(results).verified) == ([], 3)
    tamper(f"{B.folder}/file")
    report = audit.audit(results)
    assert [finding.cells for finding in report.findings] == [("pretraining: ICT",)]
    assert {B.folder, str(figure)} <= set(pruned(results))
    assert not figure.exists()


def test_the_figure_of_pre_training_that_was_drawn_before_a_table_was_declared_is_checked_as_it_is(
    results, monkeypatch
):
    """The new table may call the same step otherwise, and its models need not be made."""
    steps = {"ict": B.folder, "wlp": C.folder}.items()
    ict, wlp = ({"step": name, "lineage": name, "seeds": [{"seed": 0, "model": folder}]} for name, folder in steps)
    planned = {
        "pretraining": {"name": "pretraining", "rows": [{"label": "ICT (ours)", **ict}, {"label": "WLP", **wlp}]}
    }
    monkeypatch.setattr(audit, "published_products", lambda plan: dict(planned))
    figure, drawn = Path("results/figures/pretraining"), {"name": "pretraining", "rows": [{"label": "ICT", **ict}]}
    write_product(figure, "curves", drawn, [B])
    shutil.rmtree(C.folder)
    report = audit.audit(results)
    assert (report.findings, report.verified) == ([], 3)
    assert report.notes == ["figure pretraining does not show all that is declared; run snakemake for it again"]
    assert [product.content for product in report.products] == [drawn]
    tamper(f"{B.folder}/file")
    assert [finding.cells for finding in audit.audit(results).findings] == [("pretraining: ICT",)]
    other = {"label": "ICT", **ict, "seeds": [{"seed": 0, "model": "results/models/of-another-plan"}]}
    write_product(figure, "curves", drawn | {"rows": [other]}, [A])
    assert any("has another plan" in finding.reason for finding in audit.audit(results).findings)


def test_what_another_run_made_is_named_and_left_to_its_own_audit(results):
    """Another run's table has another slice; this one's advice removed it, with figures and the report."""
    table, report = Path("results/tables/table1.manifest.json"), Path("results/report/manifest.json")
    about = declared(None)["table1"]
    theirs = about | {"rows": [about["rows"][0] | {"label": "ICT", "cells": {}}]}
    write_product(Path("results/tables/table1"), "table", theirs, [])
    write_text(report, json.dumps({"spec": {"run": "config/own.yaml"}, "outputs": {"index.html": {}}}))
    write_text(report.with_name("index.html"), "theirs")
    write_text(Path("config/own.yaml"), "{}")
    index.write("config/own.yaml", {}, products=[str(table), str(report)])
    tamper(f"{B.folder}/file")
    found = audit.audit(results)
    why = "of another run: `encore audit --config config/own.yaml` looks at it"
    assert found.not_audited == f"NOT audited: 2 files: {table}, {report} ({why})"
    assert found.is_partial
    assert found.findings == []
    assert not [note for note in found.notes if "not made yet" in note]
    assert pruned(results) == []
    assert table.is_file()
    index.write("config/config.yaml", {}, products=[str(table)])  # this run made it, by an earlier plan
    assert {finding.place for finding in audit.audit(results).findings} == {B.folder, str(table)}
    files = {f"results/tables/table1.{ending}" for ending in (*BY_RULE["table"].endings, "manifest.json")}
    assert set(pruned(results)) == {B.folder, C.folder, *files}
    assert report.with_name("index.html").is_file()


def test_with_tables_the_page_is_neither_judged_nor_another_runs_pruned(results, monkeypatch, capsys):
    """It was made again and called bad, and pruned with a bad table, whoever's it was."""
    page = Path("results/report/index.html")
    write_text(page, "theirs")
    write_text(page.with_name("manifest.json"), json.dumps({"spec": {"run": "config/own.yaml"}, "outputs": {}}))
    monkeypatch.setattr(results, "catalogue", None, raising=False)
    monkeypatch.setattr("encore.commands.plan.plan_of", lambda arguments: results)
    monkeypatch.setattr(recompute, "recompute_product", lambda product, report: None)
    parser = argparse.ArgumentParser()
    command.add_flags(parser)

    def answered(words):
        arguments = parser.parse_args(words.split(), argparse.Namespace(config=Path("config/config.yaml")))
        return command.answer(arguments), capsys.readouterr().out

    code, said = answered("--tables table1")
    assert code == 0
    assert "audit: 5 artifacts verified, 0 bad\n" in said
    assert "NOT audited: 1 file: results/report/manifest.json (of a run whose file is not here" in said
    tamper("results/tables/table1.csv")
    assert answered("--tables table1 --prune --yes")[0] == 0
    assert not Path("results/tables/table1.csv").exists()
    assert page.is_file()


def test_an_index_that_was_edited_sends_the_audit_nowhere(results, capsys):
    """One word of it, and a forged page passed as another run's; a name that is no file was put into the note."""
    table, report = Path("results/tables/table1.manifest.json"), Path("results/report/manifest.json")
    write_text(report, json.dumps({"spec": {"run": ""}, "inputs": {}, "outputs": {"index.html": {}}}))
    write_text(report.with_name("index.html"), "forged")
    tamper("results/tables/table1.csv")
    for name in ("config/own.yaml", "config/nowhere.yaml", 7, "", None, "\0", "x" * 9999):
        edited = {"artifacts": {}, "patterns": {}, "products": {str(table): name, str(report): name}}
        write_text(index.INDEX, json.dumps(edited))
        found = audit.audit(results)
        assert {finding.place for finding in found.findings} == {str(table), str(report)}
        assert found.not_audited == ""
    write_text(table, json.dumps({"spec": {"rows": []}}))
    for name in (7, "config/nowhere.yaml", "x" * 9999):
        write_text(index.INDEX, json.dumps(edited | {"products": {str(table): name}}))
        assert re.search(r"of a run whose file is not here: [7'].{,90}\)$", audit.audit(results).not_audited)


def test_a_table_that_no_run_plans_is_counted(results):
    """Whoever adds one with a manifest of its own adds nothing that was audited, and no reason to call others bad."""
    write_product(Path("results/tables/planted"), "table", {"rows": []}, [])
    found = audit.audit(results)
    assert (found.findings, found.is_partial, found.verified) == ([], False, 5)
    assert found.not_audited == (
        "NOT audited: 1 file: results/tables/planted.manifest.json (built from no plan of this run)"
    )


@pytest.mark.parametrize(("judged", "fails"), [("all", False), (["C08"], True)])
def test_claims_that_the_run_names_are_not_left_out(results, monkeypatch, judged, fails):
    """Whoever forges them can edit their plan in their own manifest; claims that no run names may be another's."""
    about = {"name": "claims", "claims": {}, "shapes": {}, "tables": {}, "figures": {}}
    planned = {"claims": about}
    monkeypatch.setattr(audit, "published_products", lambda plan: declared(plan) | planned)
    write_product(Path("results/claims"), "claims", about | {"spread": {"p/t": 0.5}}, [])
    monkeypatch.setattr(results.config, "claims", judged)
    found = audit.audit(results)
    assert [finding.place for finding in found.findings] == ["results/claims.manifest.json"] * fails
    assert [*found.left_out] == ["results/claims.manifest.json"] * (not fails)


@pytest.mark.parametrize(
    "name", ["tables/evil.csv", "tables/table1.xlsx", "figures/a/evil.png", "report/evil.html", "claims_new.html"]
)
def test_a_file_that_was_added_among_products_is_found_and_pruned(results, name):
    write_text(Path("results/report/manifest.json"), json.dumps({"spec": {"run": "config/own.yaml"}, "outputs": {}}))
    write_text(Path("results", name), "evil")
    (finding,) = audit.audit(results).findings
    assert str(finding) == f"results/{name} was added: no product's manifest lists it"
    assert pruned(results) == [f"results/{name}"]
    assert audit.audit(results).findings == []


def test_a_signed_root_is_clean(results):
    """Its signature was called added, and pruned."""
    write_text(Path("results/root.json"), "{}")
    write_text(Path("results/root.json.sig"), "-----BEGIN SSH SIGNATURE-----")
    assert audit.audit(results).findings == []
    assert pruned(results) == []


def test_what_two_runs_would_make_alike_is_audited_under_both(results):
    index.write("config/own.yaml", {}, products=["results/tables/table1.manifest.json"])
    tamper("results/tables/table1.csv")
    for run in ("", "config/own.yaml"):
        assert [finding.place for finding in audit.audit(results, run).findings] == [
            "results/tables/table1.manifest.json"
        ]

"""A run's file is looked at before Snakemake reads it, which would execute what stands in one."""

import re
import sys
from pathlib import Path

import pytest

import snakemake_logger_plugin_encore as plugin
from encore.errors import EncoreError
from tests.support.clones import BIN, REPOSITORY, Clone

PROGRAM = '__use_yte__: true\ntitle: ?open("executed", "w").write("x")\n'


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("-n --configfile a.yaml --profile local", ["a.yaml"]),
        ("--configfiles a.yaml b.yaml", ["a.yaml", "b.yaml"]),
        ("--configfile=a.yaml results/x", ["a.yaml"]),
        ("results/x --cores 2", []),
        ("--config word=again --configfile a.yaml", ["a.yaml"]),
    ],
)
def test_the_files_of_a_command_line(words: str, files: list[str]) -> None:
    found = plugin.given([*words.split(), "--snakefile", str(REPOSITORY / "workflow/Snakefile")])
    assert found is not None
    assert [str(path) for path in found.configfile] == files


@pytest.mark.parametrize("snakefile", ["Snakefile", "workflow/Snakefile", "deep/workflow/rules/Snakefile"])
def test_other_workflows_are_not_looked_at(snakefile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / snakefile).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / snakefile).touch()
    assert plugin.given(["--configfile", "a.yaml", "-s", snakefile]) is None
    assert plugin.given(["--configfile", "a.yaml"]) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-e kubernetes", "--executor kubernetes: Encore's jobs share files, .*shared file system"),
        ("--executor nowhere", "--executor nowhere needs a package: pip install snakemake-executor-plugin-nowhere"),
        ("--profile theirs", "--executor some-where needs a package: pip install snakemake-executor-plugin-some-where"),
    ],
)
def test_an_executor_that_cannot_be_used_is_one_line_with_what_to_install(
    words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/config.yaml").write_text("jobs: 5\nexecutor: some-where\n")
    monkeypatch.setattr(sys, "argv", ["snakemake", "-s", str(REPOSITORY / "workflow/Snakefile"), *words.split()])
    with pytest.raises(SystemExit, match=f"^error: {says}$"):
        plugin.main()


def slurm_with(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at Encore's SLURM profile with another line for its GPUs."""
    text = (REPOSITORY / "profiles/slurm/config.yaml").read_text()
    assert text.count("  gpu: gres=gpu  ") == 1
    (folder / "config.yaml").write_text(text.replace("  gpu: gres=gpu  ", f"  gpu: {line}  "))
    words = ["-s", str(REPOSITORY / "workflow/Snakefile"), "--profile", str(folder)]
    monkeypatch.setattr(sys, "argv", ["snakemake", *words])
    plugin.main()


@pytest.mark.parametrize("line", ["gpu:a100", "gres", "'--gpus'", "gpus=", "gres=gpu:", ""])
def test_another_form_of_slurms_line_for_gpus_is_refused_in_one_line(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = re.escape(f"gpu: {line.strip(chr(39))} is none of gres=gpu, gres=gpu:TYPE, gpus, gpus=TYPE; correct it")
    with pytest.raises(SystemExit, match=f"^error: {re.escape(str(tmp_path))}/config.yaml: {says}$"):
        slurm_with(line, tmp_path, monkeypatch)


@pytest.mark.parametrize("line", ["gres=gpu", "gres=gpu:a100", "gpus", "'gpus=a100'", '"gres=gpu:h100_nvl"'])
def test_its_forms_are_taken(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm_with(line, tmp_path, monkeypatch)


@pytest.mark.parametrize("words", ["--executor slurm", "--profile profiles/slurm", "--profile local", "-e dryrun", ""])
def test_an_executor_that_is_there_is_used(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(sys, "argv", ["snakemake", *words.split()])
    plugin.main()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"title: [1\nb: 2\n", r"run\.yaml is not YAML: .*line 2"),
        ("title: é\n".encode("latin-1"), r"run\.yaml is not YAML: .*utf-8"),
        (b"", r"run\.yaml must hold a mapping"),
        (PROGRAM.encode(), r"run\.yaml: __use_yte__ would have Snakemake execute what stands in the file; remove"),
        (None, r"run\.yaml: there is no such file; name a run's, and targets before it"),
    ],
)
def test_what_is_wrong_is_one_line(
    content: bytes | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.yaml"
    if content is not None:
        path.write_bytes(content)
    snakefile = str(REPOSITORY / "workflow/Snakefile")
    monkeypatch.setattr(sys, "argv", ["snakemake", "-n", "-s", snakefile, "--configfile", str(path)])
    with pytest.raises(SystemExit, match=says) as ended:
        plugin.main()
    assert str(ended.value.code).startswith("error: ")
    assert "\n" not in str(ended.value.code)


def test_a_target_after_configfile_is_told_from_a_run(tmp_path: Path) -> None:
    """A table that exists is taken for a second file of the run."""
    (tmp_path / "table1.csv").write_text("id,label\n")
    with pytest.raises(EncoreError, match=r"table1\.csv: this is no run's file; name a run's, and targets before it$"):
        plugin.refuse(tmp_path / "table1.csv")


def test_snakemake_executes_nothing_of_it(clone: Clone) -> None:
    (clone.root / "run.yaml").write_text(PROGRAM)
    command = (str(BIN / "snakemake"), "-n", "--profile", "local", "--configfile", "run.yaml")
    done = clone.run(*command, env={"PYTHONPATH": str(REPOSITORY / "src")})
    assert "run.yaml: __use_yte__ would have Snakemake execute" in done.error()
    assert not (clone.root / "executed").exists()

"""A run's file is looked at before Snakemake reads it, which would execute what stands in one."""

import sys
from pathlib import Path

import pytest

import snakemake_logger_plugin_encore as plugin
from tests.support.clones import BIN, REPOSITORY, Clone

PROGRAM = '__use_yte__: true\ntitle: ?open("executed", "w").write("x")\n'


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("-n --configfile a.yaml --profile local", ["a.yaml"]),
        ("--configfiles a.yaml b.yaml", ["a.yaml", "b.yaml"]),
        ("--configfile=a.yaml results/x", ["a.yaml"]),
        ("results/x --cores 2", []),
    ],
)
def test_the_files_of_a_command_line(words: str, files: list[str]) -> None:
    assert [str(path) for path in plugin.run_files(words.split())] == files


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
    monkeypatch.setattr(sys, "argv", ["snakemake", "-n", "--configfile", str(path)])
    with pytest.raises(SystemExit, match=says) as ended:
        plugin.main()
    assert str(ended.value.code).startswith("error: ")
    assert "\n" not in str(ended.value.code)


def test_snakemake_executes_nothing_of_it(clone: Clone) -> None:
    (clone.root / "run.yaml").write_text(PROGRAM)
    command = (str(BIN / "snakemake"), "-n", "--profile", "local", "--configfile", "run.yaml")
    done = clone.run(*command, env={"PYTHONPATH": str(REPOSITORY / "src")})
    assert "run.yaml: __use_yte__ would have Snakemake execute" in done.error()
    assert not (clone.root / "executed").exists()

"""What the environment says in numbers: read in one place, and refused in one line where it says something else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.storage import environment
from encore.training import launch

SOURCE = Path(environment.__file__).parents[1]
ODD = ["x", "-1", "1.5", "0x1", "1 2", "٣x", "9" * 5000, "nan", " ", "1;id"]


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("name", environment.NUMBERS)
def test_what_is_no_number_is_one_line_with_the_variable(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(
        EncoreError, match=rf"^{name} is '.*'…? in the environment, and can be .*; correct or unset it$"
    ):
        environment.number(name)


def test_what_is_unset_or_empty_counts_as_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"RANK": 0, "WORLD_SIZE": 1, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1}
    expected |= {"ENCORE_ALLOW_CPU": 0, "ENCORE_KEEP_VECTORS": 1}
    for name in expected:
        monkeypatch.delenv(name, raising=False)
    assert {name: environment.number(name) for name in expected} == expected
    for name in expected:
        monkeypatch.setenv(name, "")
    assert {name: environment.number(name) for name in expected} == expected
    monkeypatch.setenv("ENCORE_KEEP_VECTORS", "0")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert (environment.number("ENCORE_KEEP_VECTORS"), environment.number(environment.SIZE)) == (0, 8)


@pytest.mark.parametrize("name", ["ENCORE_ALLOW_CPU", "ENCORE_KEEP_VECTORS"])
def test_a_switch_is_0_or_1(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "2")
    with pytest.raises(EncoreError, match=f"{name} is '2' in the environment, and can be 0 or 1"):
        environment.number(name)


def test_a_rank_that_was_left_over_is_refused_and_not_trained_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of another rank than 0 writes nothing, and would do so without a word."""
    monkeypatch.setenv("RANK", "3")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(EncoreError, match="RANK is 3 in the environment and WORLD_SIZE 1; unset both"):
        launch.leads()
    with pytest.raises(EncoreError, match="unset both"):
        launch.start_processes(1)
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert not launch.leads()


def test_an_empty_variable_starts_processes_as_an_unset_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.gpu_leases, "lease", lambda processes: None)
    monkeypatch.setattr(launch.os, "execv", lambda *command: started.append(command))
    monkeypatch.delenv("RANK", raising=False)
    started: list[object] = []
    monkeypatch.setenv("WORLD_SIZE", "")
    launch.start_processes(2)
    assert len(started) == 1


def test_one_module_reads_these_variables() -> None:
    named = re.compile(r"""["'](?:(?:LOCAL_)?RANK|(?:LOCAL_)?WORLD_SIZE|ENCORE_[A-Z_]+)["']""")
    modules = {path.name for path in SOURCE.rglob("*.py") if named.search(path.read_text())}
    around = re.compile(r"environment\.[A-Z_]+ in os\.|os\.environ(?:\.get\(|\[)environment\.[A-Z_]+\b(?!\] = )")
    assert modules == {"environment.py"}
    assert [path.name for path in SOURCE.rglob("*.py") if around.search(path.read_text())] == []


@pytest.mark.parametrize("left", [{"RANK": "x"}, {"WORLD_SIZE": "abc"}, {"RANK": "2"}])
def test_a_program_that_trains_ends_in_one_line(left: dict[str, str]) -> None:
    program = (
        "from encore.storage.program import run; from encore.training import launch; "
        "run(lambda: launch.start_processes(1))"
    )
    kept = {name: value for name, value in os.environ.items() if name not in environment.NUMBERS}
    done = subprocess.run(
        [sys.executable, "-c", program], env=kept | left, capture_output=True, text=True, check=False, timeout=600
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {next(iter(left))} is ")
    assert done.returncode == 1

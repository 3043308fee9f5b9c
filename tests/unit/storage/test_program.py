"""How a program ends when it is interrupted."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from encore.commands.__main__ import main
from encore.storage import program
from encore.storage.release import __version__

ROOT = Path(__file__).parents[3]
TWICE = """
import os, signal, time
from encore.storage.program import run

def main():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    finally:
        os.kill(os.getpid(), signal.SIGINT)

run(main)
"""


def test_a_second_interruption_does_not_cut_the_farewell() -> None:
    ended = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=False)
    assert ended.returncode == 130
    assert ended.stderr == "error: interrupted; the same command continues from here\n"


@pytest.mark.parametrize(("command", "flag"), [("audit", "--queries=-1")])
def test_a_number_that_counts_nothing_is_refused(
    command: str, flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["encore", *command.split(), flag])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    name, _, number = flag.partition("=")
    assert f"error: argument {name}: '{number}' is not a whole number above 0" in capsys.readouterr().err


FAILED = """
import atexit, sys
from encore.errors import EncoreError
from encore.storage.program import run

atexit.register(print, "waited for the others")

def main():
    {failure}

run(main)
"""


@pytest.mark.parametrize(
    ("failure", "says"),
    [("raise EncoreError('the disk is full')", "error: the disk is full"), ("1 / 0", "ZeroDivisionError")],
)
@pytest.mark.parametrize("processes", [1, 2])
def test_one_of_several_processes_that_fails_does_not_wait_for_the_others(
    failure: str, says: str, processes: int
) -> None:
    command = [sys.executable, "-c", FAILED.format(failure=failure)]
    own = {**os.environ, "WORLD_SIZE": str(processes)}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=own)
    assert ended.returncode == 1
    assert says in ended.stderr
    assert ("waited for the others" in ended.stdout) is (processes == 1)


SWALLOWED = """
import os, signal
from encore.storage.program import run

def main():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("cannot load module more than once per process")

run(main)
"""


def test_an_interruption_that_a_library_makes_another_error_of_is_one_line_too() -> None:
    ended = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, check=False)
    assert ended.returncode == 130
    assert ended.stderr == "error: interrupted; the same command continues from here\n"


WHILE_IMPORTING = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # as from a terminal: what starts the tests may ignore it
from encore.storage.program import run
os.kill(os.getpid(), signal.SIGINT)
"""


def test_an_interruption_of_the_imports_is_one_line_too() -> None:
    ended = subprocess.run([sys.executable, "-c", WHILE_IMPORTING], capture_output=True, text=True, check=False)
    assert ended.returncode == -2, "a shell says 130"
    assert ended.stderr == "error: interrupted; the same command continues from here\n"


def test_a_bug_in_the_imports_keeps_its_traceback() -> None:
    bug = "import encore.storage.program\nimport encore.no_such_module"
    ended = subprocess.run([sys.executable, "-c", bug], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Traceback" in ended.stderr
    assert "no_such_module" in ended.stderr


@pytest.mark.parametrize("script", sorted((ROOT / "workflow/scripts").glob("*.py")), ids=lambda path: path.stem)
def test_nothing_slow_is_imported_before(script: Path) -> None:
    imported = [node for node in ast.parse(script.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imported]
    before = names[: names.index("encore.storage.program")] if "encore.storage.program" in names else names
    assert {name.partition(".")[0] for name in before} <= sys.stdlib_module_names


def test_a_reader_who_has_enough_is_no_mistake() -> None:
    """As in ``encore claims | head -1``: nothing more is said, and the program has not failed."""
    program = "from encore.storage.program import run\nrun(lambda: print(*range(100000), sep='\\n'))"
    command, piped = [sys.executable, "-c", program], subprocess.PIPE
    writer = subprocess.Popen(command, stdout=piped, stderr=piped, text=True)
    assert writer.stdout
    assert writer.stderr
    assert writer.stdout.readline() == "0\n"
    writer.stdout.close()
    assert (writer.stderr.read(), writer.wait()) == ("", 0)
    writer.stderr.close()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ("MemoryError()", "error: out of memory; give the program more, then repeat\n"),
        pytest.param(
            "__import__('torch').OutOfMemoryError('CUDA out of memory')",
            "error: out of memory on the GPU; take a larger one that nothing else uses\n",
            marks=pytest.mark.slow,
        ),
        (
            "RuntimeError('CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`')",
            "error: out of memory on the GPU; take a larger one that nothing else uses\n",
        ),
        ("OSError(12, 'Cannot allocate memory')", "error: a file: Cannot allocate memory; fix that, then repeat\n"),
    ],
)
def test_too_little_memory_is_one_line(error: str, says: str) -> None:
    program = f"from encore.storage.program import run\ndef main():\n    raise {error}\nrun(main)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, says)


@pytest.mark.parametrize(
    ("python", "platform", "says"),
    [
        ((3, 10), "linux", r"this is Python 3\.10, and Encore needs 3\.11 or newer; install it .*PYTHON="),
        ((3, 12), "win32", r"Encore runs on Linux and macOS, and this is win32; .*WSL"),
    ],
)
def test_what_encore_cannot_run_on_is_one_line_with_what_to_install(
    python: tuple[int, int],
    platform: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(program.sys, "version_info", (*python, 0))
    monkeypatch.setattr(program.sys, "platform", platform)
    with pytest.raises(SystemExit) as ended:
        program.run(lambda: pytest.fail("nothing is started"))
    assert ended.value.code == 1
    assert re.fullmatch(f"error: {says}.*\n", capsys.readouterr().err)


def test_a_missing_package_is_one_line_with_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        raise ModuleNotFoundError("No module named 'faiss.swig'", name="faiss.swig")

    with pytest.raises(SystemExit):
        program.run(main)
    assert re.fullmatch(r"error: the Python package 'faiss' is missing in .*pip install.*\n", capsys.readouterr().err)


def test_python_runs_the_command_as_a_module() -> None:
    asked = subprocess.run([sys.executable, "-m", "encore", "--version"], capture_output=True, text=True, check=False)
    assert (asked.returncode, asked.stdout) == (0, f"encore {__version__}\n")

"""What ``pip install`` of a clone installs: a wheel with all that runs, and with its needs declared."""

import ast
import subprocess
import sys
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import encore
from encore.storage.release import HOME
from tests.support.clones import REPOSITORY, Clone
from tests.support.locks import lock


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clone = Clone.fresh(tmp_path_factory.mktemp("package") / "clone")
    command = (
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        "wheels",
        ".",
    )
    done = clone.run(*command)
    assert done.code == 0, done.output
    (found,) = (clone.root / "wheels").iterdir()
    return found


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(packed.read(name).decode())


def test_the_wheel_has_the_library_the_rules_their_programs_and_the_catalogue(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    tracked = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        if name.startswith("src/encore/") and (REPOSITORY / name).is_file():
            assert name.removeprefix("src/") in names
        if name.startswith(("workflow/", "config/", "envs/")):
            assert f"encore/program/{name}" in names
    assert "encore/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]


def test_it_says_what_it_is_and_where(metadata: Message) -> None:
    assert metadata["Version"] == encore.__version__
    assert metadata["Requires-Python"] == "<3.15,>=3.11"
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert urls.keys() == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert urls["Homepage"] == HOME, "the address that every request names"
    assert {"cpu", "gpu", "test", "docs"} == set(metadata.get_all("Provides-Extra", []))
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_what_it_needs_is_what_the_locks_have(metadata: Message) -> None:
    """So that ``pip install`` takes versions with which the tests have passed, or newer ones."""
    needs = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    locked = lock("cpu.txt")
    for need in needs:
        if need.marker is None or need.marker.evaluate({"extra": "cpu"}) or need.marker.evaluate({"extra": "test"}):
            assert need.specifier.contains(locked[need.name.lower().replace("_", "-")]), need


def test_all_that_the_library_imports_is_declared(metadata: Message) -> None:
    declared = {Requirement(line).name.lower().replace("_", "-") for line in metadata.get_all("Requires-Dist", [])}
    known = packages_distributions()
    imported = set[str]()
    for path in (*Path(REPOSITORY, "src").rglob("*.py"), *Path(REPOSITORY, "workflow").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    others = imported - sys.stdlib_module_names - {"encore", "server", "client"}
    packages = {name: {each.lower().replace("_", "-") for each in known[name]} for name in others}
    assert "torch" in packages
    assert {name for name, found in packages.items() if not found & declared} <= {"pydantic_core"}, "pydantic's own"


def test_in_an_empty_environment_it_names_its_version_and_what_is_missing(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "empty")
    python = tmp_path / "empty/bin/python"
    (place,) = (tmp_path / "empty/lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(place)

    def answer(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(python), "-I", "-m", "encore.commands", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert answer("--version").stdout == f"encore {encore.__version__}\n"
    missing = answer("targets", "bert-base")
    assert missing.returncode == 1
    assert missing.stderr.startswith("error: the Python package 'pydantic' is missing in ")
    assert missing.stderr.count("\n") == 1

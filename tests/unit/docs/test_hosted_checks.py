"""The hosted checks name targets that are there, and every Python for which packages are locked."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").iterdir()}


def test_their_commands_are_targets_of_make() -> None:
    steps = [step for each in WORKFLOWS.values() for job in each["jobs"].values() for step in job["steps"]]
    words = [word for step in steps for word in re.findall(r"^make (.*)$", step.get("run", ""), re.M)]
    named = {word for line in words for word in line.split() if "=" not in word}
    assert named >= {"test", "lint", "spelling", "locks", "docs", "demo", "env"}
    assert named <= set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))


def test_unit_tests_run_on_every_python_that_has_packages() -> None:
    matrix = WORKFLOWS["tests"]["jobs"]["unit"]["strategy"]["matrix"]
    (minors,) = re.findall(r"=~ \^3\\\.1\[(\d)-(\d)\]\$", (ROOT / "envs/install.sh").read_text())
    first, last = map(int, minors)
    assert matrix["python"] == [f"3.1{minor}" for minor in range(first, last + 1)]


def test_the_release_takes_its_text_from_the_changelog() -> None:
    (step,) = [
        step for step in WORKFLOWS["release"]["jobs"]["package"]["steps"] if "CHANGELOG.md" in step.get("run", "")
    ]
    assert "/^## /{own = $2 == version} own" in step["run"]
    assert re.search(r"^## \d+\.\d+\.\d+\b", (ROOT / "CHANGELOG.md").read_text(), re.M)

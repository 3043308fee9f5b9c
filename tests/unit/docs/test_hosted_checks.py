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
    assert named >= {"test-all", "lint", "spelling", "locks", "docs", "env"}
    assert named <= set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))


def test_unit_tests_run_on_every_python_that_has_packages() -> None:
    matrix = WORKFLOWS["tests"]["jobs"]["unit"]["strategy"]["matrix"]
    (minors,) = re.findall(r"=~ \^3\\\.1\[(\d)-(\d)\]\$", (ROOT / "envs/install.sh").read_text())
    first, last = map(int, minors)
    assert matrix["python"] == [f"3.1{minor}" for minor in range(first, last + 1)]


def test_actions_are_named_by_commits_and_leave_no_password_behind() -> None:
    """A tag can be moved by whoever takes over an action; a comment says for people which version a commit is."""
    lines = [
        line
        for path in (ROOT / ".github/workflows").iterdir()
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert lines
    assert [line for line in lines if not re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []
    versions = {tuple(line.split("uses: ")[1].split("@")) for line in lines}
    assert len(versions) == len({name for name, _ in versions}), "one version of each"
    steps = [step for each in WORKFLOWS.values() for job in each["jobs"].values() for step in job["steps"]]
    fetched = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"] == {"persist-credentials": False} for step in fetched)


def test_the_package_and_the_demo_are_tried_on_every_python() -> None:
    jobs = WORKFLOWS["tests"]["jobs"]
    pythons = jobs["unit"]["strategy"]["matrix"]["python"]
    assert jobs["package"]["strategy"]["matrix"]["python"] == pythons
    _, setup, compared = jobs["demo"]["steps"]
    assert setup["with"]["python-version"].split() == pythons
    assert compared["run"].split()[2:] == [f"python{version}" for version in pythons]
    for step in (compared, jobs["package"]["steps"][-1]):
        assert (ROOT / step["run"].split()[1]).is_file()


def test_the_release_takes_its_text_from_the_changelog() -> None:
    (step,) = [
        step for step in WORKFLOWS["release"]["jobs"]["package"]["steps"] if "CHANGELOG.md" in step.get("run", "")
    ]
    assert "/^## /{own = $2 == version} own" in step["run"]
    assert re.search(r"^## \d+\.\d+\.\d+\b", (ROOT / "CHANGELOG.md").read_text(), re.M)

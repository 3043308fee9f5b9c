"""Clones of the repository that several folders of tests share."""

import os
from pathlib import Path

import pytest
from clones import Clone
from filelock import FileLock


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A fresh clone, in a folder with a blank in its name."""
    return Clone.fresh(tmp_path / "a clone")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """One finished nano run, made once for all workers, or for all that name one ENCORE_FINISHED; only to be copied."""
    base = tmp_path_factory.getbasetemp()
    shared = Path(os.environ.get("ENCORE_FINISHED") or (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base))
    with FileLock(shared / "finished.lock"):
        clone = Clone(shared / "finished")
        if not (shared / "finished.done").exists():
            clone = Clone.fresh(shared / "finished")
            clone.nano().succeeded()
            (shared / "finished.done").touch()
    return clone


@pytest.fixture
def nano(finished: Clone, tmp_path: Path) -> Clone:
    """A copy of the finished nano run, to be changed."""
    return finished.copy(tmp_path / "nano")

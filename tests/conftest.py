"""Clones of the repository that several folders of tests share."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.clones import Clone
from tests.support.cpu_seconds import FOLDERS, CpuSeconds
from tests.support.papers import RUN, TARGETS, cut


def pytest_addoption(parser: pytest.Parser) -> None:
    says = "name each test without the mark `slow` of more CPU seconds than S at the end, and marked ones of few"
    parser.addoption("--cpu-seconds", type=float, metavar="S", help=says)


def pytest_configure(config: pytest.Config) -> None:
    """Compute on the processor, whose bytes tests compare, unless the tests of a GPU are selected."""
    config.pluginmanager.register(CpuSeconds(config))
    if config.option.markexpr != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.hookimpl(tryfirst=True)  # before marks are selected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of some folders starts programs for seconds, and has the mark `slow`; but for `quick`."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).parts[0] in FOLDERS and not item.get_closest_marker("quick"):
            item.add_marker("slow")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked `gpu` where there is none; only such a test imports torch for it."""
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a GPU")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A fresh clone, in a folder with a blank in its name."""
    return Clone.fresh(tmp_path / "a clone")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """One finished nano run, made once for all workers, or for all that name one ENCORE_FINISHED; only to be copied."""

    def build(root: Path) -> None:
        Clone.fresh(root).nano().succeeded()

    return _made_once(tmp_path_factory, "finished", build)


@pytest.fixture(scope="session")
def papers(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """That run with tables of every paper and the claims, made once for all workers; only to be read."""

    def build(root: Path) -> None:
        clone = finished.copy(root)
        for kind in ("tables", "figures", "report"):  # which are nano's
            shutil.rmtree(root / "results" / kind)
        cut(clone)
        clone.snakemake(*TARGETS, *RUN).succeeded()

    return _made_once(tmp_path_factory, "papers", build)


def _made_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Clone:
    base = factory.getbasetemp()
    shared = Path(os.environ.get("ENCORE_FINISHED") or (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base))
    with FileLock(shared / f"{name}.lock"):
        if not (shared / f"{name}.done").exists():
            shutil.rmtree(shared / name, ignore_errors=True)
            build(shared / name)
            (shared / f"{name}.done").touch()
    return Clone(shared / name)


@pytest.fixture
def nano(finished: Clone, tmp_path: Path) -> Clone:
    """A copy of the finished nano run, to be changed."""
    return finished.copy(tmp_path / "nano")

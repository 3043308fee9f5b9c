"""The shipped catalogue, read once for all tests that plan with it."""

import builtins
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from copy import copy, deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products import catalogue as products_catalogue
from encore.products.catalogue import load_catalogue
from encore.retrieval import java
from tests.support import quick_java
from tests.support.forks import SIMULATED_GPU
from tests.support.shipped import plan_with, run_file

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", autouse=True)
def short_lived_java() -> Iterator[None]:
    """Java that is quick to start and to end: each test's has a handful of documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java, "_command", quick_java.command)
        yield


@pytest.fixture(scope="session", autouse=True)
def sums_that_every_python_rounds_alike() -> Iterator[None]:
    """A test fails where the library adds fractions by ``sum``, whose rounding is another one from Python 3.12 on."""
    add = builtins.sum

    def exact(iterable: Iterable[Any], /, start: Any = 0) -> Any:  # with the names that torch compares
        if str(sys._getframe(1).f_globals.get("__name__")).startswith("encore."):
            iterable = list(iterable)
            fractions = [each for each in iterable if type(each) is float and not each.is_integer()]
            assert not fractions, f"add them by math.fsum: {fractions[:3]}"
        return add(iterable, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "sum", exact)
        yield


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return load_catalogue(ROOT / "config")


@pytest.fixture(scope="session", autouse=True)
def catalogues_read_once() -> Iterator[None]:
    """Files that have not changed since a test read them are not read and checked again; each test has its copy."""
    read, found = products_catalogue.read_catalogue, dict[Any, Catalogue]()

    def once(folder: Path, *readers: Any) -> Catalogue:
        dates = tuple((path, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*.yaml")))
        if (folder, dates, readers) not in found:
            found[folder, dates, readers] = read(folder, *readers)
        kept = found[folder, dates, readers]
        own = {name: copy(entries) for name, entries in vars(kept).items()}
        return Catalogue(**own | {name: deepcopy(own[name]) for name in ("steps", "indexes")})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products_catalogue, "read_catalogue", once)
        yield


@pytest.fixture(scope="session", autouse=True)
def simulated_for_all() -> Iterator[None]:
    """With ENCORE_SIMULATED_GPU in the environment, every test has a simulated GPU."""
    if SIMULATED_GPU not in os.environ:
        yield
        return
    from tests.support.simulated_gpu import simulated_gpu

    with simulated_gpu():
        yield


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.gpu)])
def gpu(request: pytest.FixtureRequest) -> Iterator[str]:
    """Torch computes on a GPU: simulated, on every machine, or real."""
    if request.param == "real":
        yield "real"
    else:
        from tests.support.simulated_gpu import simulated_gpu

        with simulated_gpu():
            yield "simulated"


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where a person runs Snakemake."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the configuration alone, nothing made."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def nano_config() -> dict[str, Any]:
    """What config/nano.yaml says; not to be changed."""
    return run_file("nano")


@pytest.fixture
def make(catalogue: Catalogue) -> Callable[..., Plan]:
    """A plan of nano with changes: ``make({"seeds": [1]})`` or ``make(steps={"ict": {...}})``."""
    return partial(plan_with, catalogue, "nano")


@pytest.fixture(scope="session")
def first_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``home`` is a copy of."""
    from tests.support.small_home import write_home

    folder = tmp_path_factory.mktemp("first") / "home"
    folder.mkdir()
    write_home(folder)
    return folder


@pytest.fixture(scope="module")
def home(first_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small collection with tokens, a model, a run and negatives, for a file's tests to write into."""
    return shutil.copytree(first_home, tmp_path_factory.mktemp("home") / "home")


@pytest.fixture(scope="module")
def negatives(home: Path) -> Path:
    """BM25's negatives in that folder."""
    return home / "negatives"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plan of a finished run of four artifacts and a table, in whose folder the test works."""
    from encore.commands.audit import audit
    from tests.support import audited_chain

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audit, "published_products", audited_chain.declared)
    return audited_chain.finish()


@pytest.fixture
def server() -> Iterator[Any]:
    """A server of one file, which breaks as it is told."""
    from tests.support.server import Server

    one = Server()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture
def double() -> Iterator[None]:
    """Double precision: what is then left of a difference is no rounding."""
    import torch

    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)

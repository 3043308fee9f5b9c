"""How often what this folder's tests try has held, counted by class and printed; ``--record-trials`` writes it down."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from finished_run import FinishedRun
from trials import Count

from encore.storage import manifest
from encore.storage.files import sha256
from tests.support.clones import Clone


@pytest.fixture(scope="module")
def run(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedRun]:
    """A copy of the finished run, which is the working folder; a large file that nobody has replaced is hashed once.

    A small one may be replaced twice in a tick of the file system's clock, under the same inode.
    """
    known: dict[tuple[int, int, int], str] = {}

    def hashed(path: Path) -> str:
        about = path.stat()
        if about.st_size < 2**17:
            return sha256(path)
        key = (about.st_ino, about.st_size, about.st_ctime_ns)
        if key not in known:
            known[key] = sha256(path)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        copy = FinishedRun(finished, tmp_path_factory.mktemp("run") / "a copy")
        patch.chdir(copy.root)
        patch.setattr(manifest, "sha256", hashed)
        yield copy


@pytest.fixture
def same(finished: Clone, nano: Clone) -> Iterator[Callable[[], bool]]:
    """True if all files of results have the bytes of the undisturbed run; checked again at the end."""
    expected = finished.files()

    def is_same() -> bool:
        return nano.files() == expected

    yield is_same
    assert nano.files() == expected


@pytest.fixture
def count(record_property: Callable[[str, object], None]) -> Count:
    """Count trials: of what suite, of what class, how many, and how many of them held."""
    return lambda suite, kind, tried, held: record_property("trials", [suite, kind, tried, held])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-trials", metavar="FILE", help="write how many trials of each class held, as JSON")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The counts of all workers."""
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.stats.get(kind, [])]
    counts: dict[str, dict[str, Counter[str]]] = {}
    for name, value in (pair for each in reports for pair in each.user_properties):
        if name == "trials":
            suite, kind, tried, held = value
            counts.setdefault(suite, {}).setdefault(kind, Counter()).update(tried=tried, held=held)
    for suite, kinds in sorted(counts.items()):
        tried, held = (sum(each[key] for each in kinds.values()) for key in ("tried", "held"))
        terminalreporter.write_line(f"{suite}: {held} of {tried} held, in {len(kinds)} classes")
    path, failed = config.getoption("--record-trials"), terminalreporter.stats.get("failed", [])
    if path and failed:  # a class whose test failed would keep what an earlier run counted
        terminalreporter.write_line(f"{path} is left as it is, since {len(failed)} tests failed")
    elif path and counts:
        known = json.loads(Path(path).read_text()) if Path(path).exists() else {}
        for suite, kinds in counts.items():
            known.setdefault(suite, {}).update((kind, dict(each)) for kind, each in kinds.items())
        Path(path).write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")

"""CPU seconds of each test, and of each fixture that several tests share, with those of all processes that they start.

At its end a run names what took long without the mark ``slow``, and counts what was left out. Nothing fails by it.
"""

import contextlib
import os
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support import forks

NAMED = 2.0  # CPU seconds from which on a test or a fixture is named, unless --cpu-seconds says otherwise
UNMARKED = 0.5  # CPU seconds below which a test needs no mark
FOLDERS = {"e2e": "end-to-end", "trust": "of trust", "slurm": "on SLURM"}  # every test in these is slow
WANTED = ("workflow/test_nano.py", "fixture finished")  # the one run that `make test` makes
TICKS = os.sysconf("SC_CLK_TCK")


def used() -> float:
    """CPU seconds of this process and of all that it started, whether they have ended or (on Linux) not."""
    return sum(os.times()[:4]) + sum(map(_of_process, _children(os.getpid()))) + forks.cpu_seconds()


def _of_process(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS + sum(map(_of_process, _children(process)))


def _children(process: int) -> list[int]:
    found = list[int]()
    with contextlib.suppress(OSError):  # a process that has ended
        for thread in Path(f"/proc/{process}/task").iterdir():  # no glob, which a thread that ends meanwhile stops
            with contextlib.suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found


class CpuSeconds:
    """A plugin: under pytest-xdist one in each worker measures, and that of the main process reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.tests: dict[str, float] = {}
        self.marked: set[str] = set()
        self.fixtures: dict[str, float] = defaultdict(float)
        self.left_out: Counter[str] = Counter()
        self.start = self.of_fixtures = 0.0
        self.in_fixture = False

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """What a file's or a session's fixture takes is not the first test's."""
        if fixturedef.scope == "function" or self.in_fixture:
            return (yield)
        start, self.in_fixture = used(), True
        try:
            return (yield)
        finally:
            self.in_fixture = False
            self.of_fixtures += (seconds := used() - start)
            name = f"{request.node.nodeid or fixturedef.baseid}, fixture {fixturedef.argname}"
            request._pyfuncitem.user_properties.append(("fixture", (name, seconds)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self.start, self.of_fixtures = used(), 0.0
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            is_marked = item.get_closest_marker("slow") is not None
            report.user_properties.append(("cpu seconds", (used() - self.start - self.of_fixtures, is_marked)))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties if report.when == "teardown" else []:
            if name == "cpu seconds":
                self.tests[report.nodeid], is_marked = value  # type: ignore[misc]
                self.marked |= {report.nodeid} if is_marked else set()
            elif name == "fixture":
                fixture, seconds = value  # type: ignore[misc]
                self.fixtures[fixture] += seconds

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        self.left_out.update(map(_kind, items))

    def pytest_sessionfinish(self) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["left out"] = dict(self.left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.left_out = Counter(getattr(node, "workeroutput", {}).get("left out"))  # every worker has collected all

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.lines():
            terminalreporter.write_line(line)

    def lines(self) -> list[str]:
        """The report."""
        most: float = self.config.getoption("cpu_seconds") or NAMED
        unmarked = {name: seconds for name, seconds in self.tests.items() if name not in self.marked}
        long, shared = (
            {name: seconds for name, seconds in each.items() if seconds > most and not any(map(name.count, WANTED))}
            for each in (unmarked, self.fixtures)
        )
        found = _listed(f"not marked slow, and more than {most:g} CPU seconds", long)
        found += _listed(f"shared by tests, and more than {most:g} CPU seconds", shared)
        if self.config.getoption("cpu_seconds"):
            quick = {name: self.tests[name] for name in self.marked if self.tests[name] < UNMARKED}
            found += _listed(f"marked slow, and less than {UNMARKED:g} CPU seconds", quick)
        total = sum(self.tests.values()) + sum(self.fixtures.values())
        ran = f"{len(self.tests):,} tests took {total:,.0f} CPU seconds"
        parts = [f"{count:,} {kind}" for kind, count in self.left_out.most_common()]
        return [*found, "; left out: ".join([ran, ", ".join(parts)] if parts else [ran])]


def _kind(item: pytest.Item) -> str:
    if item.get_closest_marker("everything"):
        return "of everything"
    if not item.get_closest_marker("slow"):
        return "others"
    return next((kind for folder, kind in FOLDERS.items() if f"/{folder}/" in f"/{item.nodeid}"), "slow")


def _listed(title: str, seconds: dict[str, float]) -> list[str]:
    rows = sorted(seconds.items(), key=lambda row: -row[1])
    return [f"{title}:", *(f"{time:8.1f}  {name}" for name, time in rows)] if rows else []

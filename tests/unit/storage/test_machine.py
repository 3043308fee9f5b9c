"""What a job says of its machine."""

import sys
from types import SimpleNamespace

import pytest

from encore.storage import machine


@pytest.mark.parametrize(("platform", "counted"), [("linux", 300 * 2**10), ("darwin", 300 * 2**20)])
def test_peak_memory_is_in_mib_whatever_the_system_counts_in(
    monkeypatch: pytest.MonkeyPatch, platform: str, counted: int
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(machine.resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=counted))
    assert machine.peak_memory_mb() == 300

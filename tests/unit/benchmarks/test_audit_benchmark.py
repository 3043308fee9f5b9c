"""The benchmark of the audit: a table of made-up passages is made as a user would make it, and found in order."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.quick_benchmark import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from harness import record


@pytest.mark.slow
def test_a_whole_table_is_made_and_audited(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "benchmarks/audit.py", "--passages", "3000", "--output", tmp_path, "--name", "a"]
    done = subprocess.run([*command, "--work", tmp_path / "work"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    quick, deep = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert (quick["command"], deep["command"]) == ("encore audit", "encore audit --deep")
    assert deep["cpu_seconds"] > quick["cpu_seconds"] > 0.1
    assert "audit: 11 artifacts verified, 0 bad" in (tmp_path / "work/audit-deep.log").read_text()
    vectors = 4 * 768 * 3000
    assert vectors < 1e9 * quick["gigabytes"] < 2 * vectors


def test_the_page_has_the_table_of_the_record() -> None:
    rows = json.loads((ROOT / "benchmarks/results/audit-cpu-2core.json").read_text())["rows"]
    lines = [line.replace("cpu seconds", "CPU s").replace("memory mb", "memory MB") for line in record.table(rows)]
    assert "\n".join(["", *lines, ""]) in (ROOT / "docs/scales.md").read_text()

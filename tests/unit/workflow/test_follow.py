"""The demo's progress: a line a step, and no error swallowed."""

import importlib.util
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "workflow" / "scripts" / "follow.py"

STARTED = """\
Building DAG of jobs...
Provided cores: 2
Job stats:
encode               1
Select jobs to execute...
Execute 1 jobs...
[Sat Nov  1 02:55:00 2025]
localrule encode:
    input: results/models/tiny+ict-s0-12f809db/manifest.json
    jobid: 7
    reason: Missing output files
    wildcards: model=tiny+ict-s0-12f809db, index=pydocs-f8f55db7, shard=000-of-001
    resources: tmpdir=/tmp
"""
FINISHED = """\
[Sat Nov  1 02:55:09 2025]
Finished jobid: 7 (Rule: encode)
1 of 118 steps (1%) done
"""
FAILED = """\
Error in rule encode:
    message: None
    log: results/logs/encode.log (check log file(s) for error details)
Logfile results/logs/encode.log:
error: results/models/x/model.safetensors was altered
"""


@pytest.fixture(scope="module")
def steps():
    spec = importlib.util.spec_from_file_location("follow", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda text: list(module.steps(text.splitlines(), time.monotonic() - 75))


def test_a_finished_step_is_one_line(steps):
    shown = steps(STARTED + FINISHED)
    assert shown == [
        "Job stats:",
        "encode               1",
        "   1 of 118    1:15  encode         tiny+ict-s0 pydocs 000-of-001",
    ]


def test_an_error_is_shown_whole(steps):
    assert steps(STARTED + FAILED)[2:] == FAILED.splitlines()

"""Runs that are stopped in the middle: the same command does the rest, and the result is the same to the byte."""

import os
import shutil
import signal
import time

from tests.support.clones import Clone, jobs
from tests.support.nano_jobs import CURVES, ICT, temperature_of_ict, tuned

STARTED = "rule finetune:"
FORKED = "import argparse\nimport sys\n\nprint('a fork:', 'ir_measures' in sys.modules)\n"
ALL_ROWS = '[bm25, none, "BM25 negatives: control", ict]'
ONE_ROW = '["BM25 negatives: ict"]'


def interrupted(clone: Clone, number: int) -> str:
    """Start nano, send a signal to it and its jobs once the first fine-tuning runs, and give what it printed."""
    process = clone.start_nano()
    printed = ""
    for line in process.stdout or []:
        printed += line
        if STARTED in printed and "resources:" in line:
            break
    time.sleep(1)  # the job is under way and Snakemake waits for it: a signal while it plans may be lost
    os.killpg(process.pid, number)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    return printed + rest


def test_ctrl_c_and_the_same_command_again(clone: Clone, nano: Clone) -> None:
    """Also: two runs from scratch, one of them interrupted and in a folder with a blank, give equal bytes.

    Its jobs are forks of one process; some are then made again by processes of their own, which import what they need.
    """
    for each in (clone, nano):
        each.replace("config/nano.yaml", ALL_ROWS, ONE_ROW)  # every program from raw text to a page
    clone.replace("workflow/scripts/make.py", "import argparse\n", FORKED)
    output = interrupted(clone, signal.SIGINT)
    assert "Traceback" not in output
    assert clone.manifests(), "something was finished before"

    rest = jobs(clone.nano_as_typed().succeeded())
    assert "collection pydocs-stdlib" in jobs(output) - rest, "what was finished is not done again"
    assert rest | jobs(output) == nano.planned("--forceall")
    assert clone.planned() == set()
    assert "a fork: True" in log_of(clone, "evaluate")
    clone.replace("config/nano.yaml", "java_memory_mb: 512", "java_memory_mb: 512, fork_jobs: false")
    for part in ("runs", "scores", "tables", "figures", "report"):
        shutil.rmtree(clone.root / "results" / part)
    again = jobs(clone.nano_as_typed().succeeded())
    assert len(again) > 4, "enough for forks, if they were allowed"
    assert "a fork: False" in log_of(clone, "evaluate")
    nano.nano().succeeded()
    made, local = clone.files(), nano.files()
    for files in (made, local):
        files.pop("root.json")  # which covers the other rows too that nano has
    assert "tables/table1.csv" in made
    assert made == {name: local.get(name) for name in made}


def log_of(clone: Clone, rule: str) -> str:
    """What the one job of a rule printed."""
    (log,) = (clone.root / "results/logs" / rule).rglob("*.log")
    return log.read_text()


def test_a_killed_snakemake_leaves_a_lock_and_nothing_else(nano: Clone) -> None:
    """Snakemake names the fix, ``--unlock``; then the same command does the rest."""
    nano.replace("config/nano.yaml", ALL_ROWS, ONE_ROW)
    for path in (nano.root / "results/figures").glob("table1.*"):
        path.unlink()  # without the control there is no difference to draw
    nano.nano().succeeded()
    temperature_of_ict(nano)
    output = interrupted(nano, signal.SIGKILL)
    refused = nano.nano()
    assert refused.code != 0
    assert "--unlock" in refused.output, refused.output
    nano.nano("--unlock").succeeded()
    rest = nano.built()
    assert "pretrain tiny+ict-s0" in jobs(output) - rest, "what was finished is not done again"
    assert rest | jobs(output) == {"pretrain tiny+ict-s0", "table table1", "report"} | tuned(ICT) | CURVES
    assert nano.planned() == set()
    assert "0 bad" in nano.encore("audit", "--config", "config/nano.yaml").succeeded()

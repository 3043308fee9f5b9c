"""What changes no result raises no alarm."""

import random

import pytest
from finished_run import CONFIG, FinishedRun
from harmless import HARMLESS
from trials import SEED, Count

from encore.products.catalogue import load_plan
from encore.storage.root import compute_root

OF_EACH_CLASS = 6
SAMPLE = random.Random(SEED).sample(sorted(HARMLESS), 5)
SIZES = [pytest.param(SAMPLE, 1, id="sample")]
SIZES += [pytest.param([kind], OF_EACH_CLASS, id=kind, marks=pytest.mark.everything) for kind in HARMLESS]


@pytest.mark.parametrize(("kinds", "times"), SIZES)
def test_no_alarm_and_the_same_root(run: FinishedRun, kinds: list[str], times: int, count: Count) -> None:
    root = compute_root()
    alarms = []
    for kind in kinds:
        said = [text for trial in range(times) if (text := tried(run, kind, trial, root))]
        count("harmless changes", kind, times, times - len(said))
        alarms += said
    assert root is not None
    assert not alarms, "\n".join(alarms)


def tried(run: FinishedRun, kind: str, trial: int, root: object) -> str:
    try:
        HARMLESS[kind](run, random.Random(f"{SEED} {kind} {trial}"))
        report = run.audit(load_plan(CONFIG))
        if report.findings:
            return f"{kind}, trial {trial}: {report.findings[0].place}: {report.findings[0]}"
        return "" if compute_root() == root else f"{kind}, trial {trial}: another root"
    finally:
        run.restore()

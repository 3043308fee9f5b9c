"""The arms of the benchmark of changes to GPU trainings, at tiny sizes on a simulated GPU."""

import json
import math
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.support.quick_benchmark import ROOT
from tests.support.simulated_gpu import simulated_gpu

sys.path.insert(0, str(ROOT / "benchmarks"))

import gpu_before_after as benchmark
from harness import timing


def _recorded(folder: Path) -> dict[str, list[dict[str, object]]]:
    (path,) = folder.glob("before-after-*.json")
    found: dict[str, list[dict[str, object]]] = json.loads(path.read_text())
    return found


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where layers would be compiled they are not: torch's compiler does not know the simulated GPU."""
    monkeypatch.setattr(timing, "PEAK_SIZE", dict.fromkeys(timing.PEAK_SIZE, 64))
    monkeypatch.setattr(benchmark, "Compiled", lambda *_, **__: SimpleNamespace(in_place=nullcontext))


@pytest.mark.everything
@pytest.mark.usefixtures("uncompiled")
def test_all_arms_are_measured_and_give_the_losses_of_now(tmp_path: Path) -> None:
    """The simulated GPU computes in bf16 as a real one, so copies of weights are in some arms and not in others."""
    with simulated_gpu():
        benchmark.measure(benchmark.Report(tmp_path, benchmark.QUICK, 900), benchmark.QUICK, list(benchmark.MADE))
    found = _recorded(tmp_path)
    assert not found["left_out"]
    assert {(row["work"], row["arm"]) for row in found["rows"]} == {
        (work, arm) for work, arms in benchmark.ARMS.items() for arm in arms
    }
    for row in found["rows"]:
        numbers = [value for value in row.values() if isinstance(value, float)]
        assert numbers
        assert all(0 < value < math.inf for value in numbers)
    assert [(row["work"], row["arm"]) for row in found["profile"]] == [
        (work, arm) for work in benchmark.PROFILED for arm in benchmark.SHOWN
    ]
    apart = {row["arm"]: row["apart"] for row in found["losses"]}
    assert apart["and weights copied once a step"] == 0, "when losses are read changes none"
    assert 0 < apart["before"] < benchmark.SAME, "one product for queries, keys and values rounds another way"
    assert apart["before"] == apart["batches by a process"], "who makes batches changes none"
    assert found["losses"][-1]["same_bytes"] is True
    goals = {row["goal"]: row["measured"] for row in found["goals"]}
    assert "not measured" not in goals.values()
    rows = {row["work"]: row for row in found["rows"] if row["arm"] == benchmark.COMPILED}
    label = "MLM, 512 tokens, now, compiled, share of the GPU's best product"
    assert goals[label] == rows[benchmark.MLM]["utilisation"]


@pytest.mark.usefixtures("uncompiled")
def test_an_arm_that_fails_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def numerics(work: benchmark.Work, each: str) -> dict[str, Any]:
        if each == benchmark.COMPILED:
            raise RuntimeError("no compiler\nand more")
        return work.numerics

    monkeypatch.setattr(benchmark, "numerics", numerics)
    arms = {benchmark.FINETUNING: (benchmark.COMPILED, benchmark.NOW)}
    report = benchmark.Report(tmp_path, benchmark.QUICK, 900)
    benchmark.measure(report, benchmark.QUICK, [benchmark.FINETUNING], arms)
    found = _recorded(tmp_path)
    assert [row["arm"] for row in found["rows"]] == [benchmark.NOW]
    what = f"{benchmark.FINETUNING}, {benchmark.COMPILED}, turn"
    assert found["left_out"] == [f"{what} {turn}: RuntimeError: no compiler" for turn in (1, 2)]


@pytest.mark.slow
@pytest.mark.usefixtures("uncompiled")
def test_everything_is_one_record_also_where_a_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_part(name: str, command: list[str], *_: object) -> dict[str, object]:
        if name == benchmark.MLM_SHORT:
            return {"part": name, "ended": "exit code -9", "seconds": 1.0}
        monkeypatch.setattr(sys, "argv", command[1:])
        assert benchmark.main() == 0
        return {"part": name, "ended": "done", "seconds": 1.0}

    works = (benchmark.FINETUNING, benchmark.MLM_SHORT, benchmark.BASE_512)
    monkeypatch.setattr(benchmark, "MADE", {work: benchmark.MADE[work] for work in works})
    monkeypatch.setattr(benchmark, "run_part", run_part)
    assert benchmark.everything(tmp_path, quick=True) == 1
    found = _recorded(tmp_path)
    assert {(row["work"], row["arm"]) for row in found["rows"]} == {
        (work, arm) for work in works if work != benchmark.MLM_SHORT for arm in benchmark.EVERY
    }
    assert [part["ended"] for part in found["parts"]] == ["done", "exit code -9", "done"]


def test_what_time_was_too_short_for_is_said_and_no_goal_is_met(tmp_path: Path) -> None:
    benchmark.measure(benchmark.Report(tmp_path, benchmark.QUICK, -1), benchmark.QUICK, list(benchmark.MADE))
    found = _recorded(tmp_path)
    assert found["left_out"] == [f"{name}: out of time" for name in benchmark.MADE]
    assert {(row["measured"], row["met"]) for row in found["goals"]} == {("not measured", False)}


def test_a_goal_of_a_decoder_is_its_speed_relative_to_mlm() -> None:
    rows = [
        {"work": benchmark.BASE_512, "arm": benchmark.COMPILED, "samples_per_second": 200.0},
        {"work": "enhanced, 512 tokens", "arm": benchmark.COMPILED, "samples_per_second": 150.0},
        {"work": "enhanced, 512 tokens", "arm": benchmark.BEFORE, "samples_per_second": 10.0},
    ]
    losses = [{"work": benchmark.COMPARED, "arm": benchmark.BEFORE, "apart": 0.03}]
    goals = {row["goal"]: row for row in benchmark.judged({"rows": rows, "losses": losses})}
    enhanced = goals["enhanced, 512 tokens, now, compiled, speed relative to MLM 30 %"]
    assert (enhanced["measured"], enhanced["met"]) == (0.75, True)
    assert not goals["losses, before, difference from now"]["met"]


def test_an_arm_leaves_nothing_behind() -> None:
    owners = (benchmark.loop, "_coming"), (benchmark.loop, "AHEAD"), (benchmark.TrainingModels, "computing")
    before = [getattr(*owner) for owner in owners]
    with simulated_gpu(), benchmark.arm(benchmark.BEFORE):
        assert all(getattr(*owner) is not was for owner, was in zip(owners, before, strict=True))
    with benchmark.arm(benchmark.NOW):
        assert [getattr(*owner) for owner in owners] == before
    assert torch.cuda.is_available() is (torch.cuda.device_count() > 0)

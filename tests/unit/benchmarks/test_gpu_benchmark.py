"""The parts of the GPU benchmark at tiny sizes, on a simulated GPU, and the goals that are read from them."""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from tests.support.quick_benchmark import ROOT, quick
from tests.support.simulated_gpu import simulated_gpu

sys.path.insert(0, str(ROOT / "benchmarks"))

import gpu
from harness import gpu_encoding, gpu_goals, texts, timing

from encore.storage.files import write_json

_tokenised = texts.tokenised


def test_a_goal_without_a_number_says_why(tmp_path: Path) -> None:
    write_json(tmp_path / "cross-encoder.json", {"step_ms": 1.0})
    rows = gpu_goals.judged(tmp_path, [{"part": "search", "ended": "out of time", "seconds": 1.0}])
    why = {row["goal"]: row["why"] for row in rows}
    assert why["search in fp32, one query, milliseconds"] == "search: out of time"
    assert why["encoding, passages a second"] == "encoding: not run"
    assert why["in-batch, cross-encoder in the loop, GB of memory"] == "not in the record of cross-encoder"
    assert why[f"{gpu_goals.ENCODING} with FlashAttention-2"].startswith("flash-attn is none")
    assert not any(row["met"] for row in rows)


def test_a_goal_reads_rows_by_their_name_and_percents() -> None:
    content = {"rows": [{"name": "a", "more": "+3.5 %"}, {"more": 4, "name": "b"}], "peer": None}
    paths = [("rows", "a", "more"), ("rows", "b", "more"), ("rows", "c", "more"), ("peer", "ratio")]
    assert [gpu_goals.value_at(content, path) for path in paths] == [3.5, 4.0, None, None]


@pytest.mark.slow
def test_other_vectors_than_the_peers_fail_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(texts, "tokenised", lambda written, *given: _tokenised([*written[1:], written[0]], *given))
    with pytest.raises(gpu_encoding.EncoreError, match="gives other vectors"):
        gpu_encoding.encoding(gpu.QUICK)


@pytest.mark.slow
def test_the_parts_of_the_gpu_benchmark_survive_each_other(tmp_path: Path) -> None:
    """At tiny sizes, on what there is: a part that fails is told, and the goals stand next to what was measured."""
    (tmp_path / "checkpoint.json").mkdir()  # so that this part cannot write its numbers
    (tmp_path / "search.json").write_text('{"fp32": {"one_query_ms": -1}}')  # an earlier run's
    done = quick("gpu", tmp_path, "--only", "checkpoint", "search", "tests")
    assert done.returncode == 1, "a part failed"
    (path,) = tmp_path.glob("gpu-*.json")
    found = json.loads(path.read_text())
    assert {part["part"]: part["ended"] for part in found["parts"]} == {
        "checkpoint": "exit code 1",
        "search": "done",
        "tests": "done",
    }
    measured = {goal["goal"]: goal["measured"] for goal in found["goals"]}
    assert [label for label, value in measured.items() if value] == [
        goal.label for goal in gpu_goals.GOALS if goal.part == "search"
    ]
    label = "search in fp32, one query, milliseconds"
    assert measured[label] == pytest.approx(found["measured"]["search"]["fp32"]["one_query_ms"], 1e-3)
    assert measured[label] > 0
    assert f"| {label} |" in done.stdout
    collected = (tmp_path / "tests.log").read_text()
    assert "test_a_training_is_that_of_the_cpu" in collected
    assert "unit/docs/" not in collected, "files without tests of a GPU are not imported"


QUICK = ("scoring", "memory")


@pytest.mark.parametrize(
    "part", [part if part in QUICK else pytest.param(part, marks=pytest.mark.slow) for part in gpu.MEASURED]
)
def test_a_part_of_the_gpu_benchmark_measures(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At tiny sizes, on a simulated GPU unless a peer cannot; its goals are found in what it writes."""
    if part == "encoding":
        pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(timing, "PEAK_SIZE", dict.fromkeys(timing.PEAK_SIZE, 64))
    with nullcontext() if part == "encoding" else simulated_gpu():
        found = gpu.MEASURED[part](gpu.QUICK)
    numbers = [*_numbers({key: value for key, value in found.items() if key != "setting"})]
    assert numbers
    assert all(0 < value < math.inf for value in numbers)
    write_json(tmp_path / f"{part}.json", found)
    judged = {row["goal"]: row["measured"] for row in gpu_goals.judged(tmp_path)}
    assert [label for label, value in judged.items() if value] == [
        goal.label for goal in gpu_goals.GOALS if goal.part == part and not goal.why
    ]


def _numbers(content: object) -> Iterator[float]:
    """All numbers of a record."""
    if isinstance(content, (int, float)):
        yield content
    elif isinstance(content, (dict, list)):
        for value in content.values() if isinstance(content, dict) else content:
            yield from _numbers(value)


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.device_count() == 1, reason="needs two GPUs or none")
def test_two_processes_are_measured_beside_one(tmp_path: Path) -> None:
    done = quick("gpu", tmp_path, "--only", *gpu.TOGETHER)
    for part in gpu.TOGETHER:
        assert f"| {part} | done |" in done.stdout, (tmp_path / f"{part}.log").read_text()
        found = json.loads((tmp_path / f"{part}.json").read_text())
        assert found["processes"] == 2
        assert found["speed_of_one"] > 0
        assert not (tmp_path / f"{part}-alone.json").exists()


@pytest.mark.parametrize(
    ("gpus", "quick", "runs"), [(0, True, True), (0, False, False), (1, True, False), (2, False, True)]
)
def test_two_processes_need_two_gpus(gpus: int, quick: bool, runs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert (gpu.left_out(quick) == "") is runs


def test_the_parts_of_the_gpu_benchmark_end_in_a_quarter_of_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may take what those before it left over."""
    assert sum(gpu.LIMITS.values()) <= 900
    given = []

    def part(name: str, command: list[str], most: float, log: Path, environment: object) -> dict[str, object]:
        given.append(most)
        return {"part": name, "ended": "done", "seconds": 10.0}

    monkeypatch.setattr(gpu, "run_part", part)
    gpu._run(tmp_path, ["peaks", "search", "checkpoint"], quick=False)
    peaks, search, checkpoint = (gpu.LIMITS[name] for name in ("peaks", "search", "checkpoint"))
    assert given == [peaks, peaks + search - 10, peaks + search + checkpoint - 20]

"""Estimates of ``encore preflight`` next to what finished jobs took."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from test_forecast import ROOT, estimate, finish, planned

from encore.commands.preflight import finished, forecast_text
from encore.errors import EncoreError


def test_finished_jobs_are_compared_with_their_estimates(bare: Path) -> None:
    plan = planned()
    jobs = [job for job in estimate(plan).jobs if job.rule in ("pretrain", "finetune")]
    for job in jobs:
        finish(job.artifact, results={"flops": 5e9})
    (bare / "results/benchmarks/pretrain").mkdir(parents=True)
    model = next(job.artifact for job in jobs if job.rule == "pretrain")
    benchmark = bare / f"results/benchmarks/pretrain/{model.name}.tsv"
    benchmark.write_text("s\th:m:s\tmax_rss\tcpu_time\n20.0\t0:00:20\t512\t9.5\n")
    rows = finished.compare_with_finished(estimate(plan))
    found = {row["rule"]: row for row in rows}
    one, five = found["pretrain"]["measured"], found["finetune"]["measured"]
    assert (one["clock"], one["seconds"], one["ram"]) == (20.0, 9.5, 512e6)
    assert (five["clock"], five["seconds"], five["ram"], five["disk"]) == (40.0, 40.0, 300e6, 5000)
    assert [found[rule]["ratio"] for rule in ("pretrain", "finetune")] == [
        9.5 / found["pretrain"]["estimated"]["seconds"],
        40.0 / found["finetune"]["estimated"]["seconds"],
    ]
    text = finished.comparison_text(rows)
    assert "50 s needed" in text.splitlines()[-1]
    assert max(map(len, text.splitlines())) <= forecast_text.WIDTH
    assert json.loads(json.dumps(rows)) == rows


def test_threads_waiting_for_data_and_rates_are_compared_where_jobs_noted_them(bare: Path) -> None:
    plan = planned(execution={"processes": 2}, numerics={"threads": 3})
    noted = {
        "pretrain": {"processes": 2, "threads": 3, "data_seconds": 1.5},
        "search": {"search": {"way": "torch on cpu", "threads": 2, "gflops": 80.0}},
        "encode": {},
    }
    (bare / "workflow").symlink_to(ROOT / "workflow")  # its rules say their threads
    jobs = [job for job in estimate(plan).jobs if job.rule in noted]
    for job in jobs:
        finish(job.artifact, results={"flops": 5e9} if job.rule == "pretrain" else {})
        path = Path(job.artifact.folder) / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | noted[job.rule]))
    rows = finished.compare_with_finished(estimate(plan))
    found = {row["rule"]: (row["estimated"], row["measured"]) for row in rows}
    trainings = sum(job.rule == "pretrain" for job in jobs)
    assert [each["threads"] for each in found["pretrain"]] == [6, 6]
    assert found["pretrain"][1]["waited"] == 1.5 * trainings
    assert [each["threads"] for each in found["search"]] == [3, 2]
    assert [each["gflops"] for each in found["search"]] == [pytest.approx(2 * 71.4, rel=0.01), 80.0]
    assert not {"threads", "gflops", "waited"} & found["encode"][1].keys()
    _, how, _ = finished.comparison_text(rows).split("\n\n")
    assert {line.split()[0] for line in how.splitlines()} == {"rule", "pretrain", "search"}
    assert max(map(len, how.splitlines())) <= forecast_text.WIDTH


@pytest.mark.parametrize(("cpu", "divided"), [(9.5, False), (None, True)])
def test_processor_time_is_compared_with_that_of_all_threads(bare: Path, cpu: float | None, divided: bool) -> None:
    found = replace(estimate(planned()), cores=4)
    job = next(job for job in found.jobs if job.rule == "lucene_search")
    real = finished.Measured(seconds=20.0, cpu=cpu, ram=1.0, disk=1.0, flops=None, device="cpu")
    (seconds, alone) = (finished._compared(found, [(replace(job, threads=n), real)]) for n in (4, 1))
    assert (seconds["estimated"]["seconds"] < alone["estimated"]["seconds"]) is divided
    assert seconds["measured"]["seconds"] == (20.0 if divided else 9.5)


def test_a_comparison_with_nothing_finished_is_refused(bare: Path) -> None:
    with pytest.raises(EncoreError, match="nothing of this configuration is finished"):
        finished.compare_with_finished(estimate(planned()))

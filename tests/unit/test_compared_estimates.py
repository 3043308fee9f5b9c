"""Estimates of ``encore preflight`` next to what finished jobs took."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from test_forecast import estimate, finish, planned

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

"""Rates are fitted to finished jobs: what is known comes out again, and what is not stays and is said."""

from __future__ import annotations

import json
import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pytest
import yaml
from test_forecast import RUN, estimate, finish, planned

from encore.commands.preflight import finished, machine
from encore.commands.preflight.fetches import Fetches
from encore.commands.preflight.fit import errors_left_out, refined
from encore.commands.preflight.forecast import PRODUCTS, forecast
from encore.commands.preflight.jobs import NEVER_FORKED, Jobs
from encore.commands.preflight.machine import MACHINES
from encore.commands.preflight.rates import OTHER, SHIPPED, Formula, Rates, read_rates
from encore.commands.preflight.resources import Requests
from encore.commands.preflight.sizes import SIZES, CollectionSizes
from encore.commands.preflight.threads import rule_threads
from encore.config.run import RunConfig
from encore.config.validation import read_yaml
from encore.errors import EncoreError
from encore.plan.artifacts.collections import named_collection
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan

ROOT = Path(__file__).parents[3]
BEFORE = Formula(fitted={"start": 1.0, "flops": 5e-11, "lines": 1e-5}, stated={"bytes": 2.0})
TRUE = {"start": 3.0, "flops": 2e-11, "lines": 4e-6}


def jobs(count: int = 20) -> list[dict[str, float]]:
    rng = np.random.default_rng(0)
    sizes = rng.lognormal(0.0, 1.0, (count, 3))
    return [{"start": 1.0, "flops": 1e11 * a, "lines": 1e6 * b, "bytes": c} for a, b, c in sizes]


def taken(job: dict[str, float]) -> float:
    return sum(TRUE.get(name, 2.0) * amount for name, amount in job.items())


def test_coefficients_that_made_the_records_are_found_again() -> None:
    found = refined(BEFORE, jobs(), [taken(job) for job in jobs()])
    assert found.fitted == pytest.approx(TRUE, rel=0.05)
    assert found.stated == BEFORE.stated
    assert max(errors_left_out(BEFORE, jobs(), [taken(job) for job in jobs()])) < 0.03


def test_noise_shows_as_an_error_of_its_own_size() -> None:
    noise = np.random.default_rng(1).normal(1.0, 0.1, 60)
    found = errors_left_out(BEFORE, jobs(60), [taken(job) * by for job, by in zip(jobs(60), noise, strict=True)])
    assert 0.04 < np.median(found) < 0.12


def test_no_coefficient_is_below_zero() -> None:
    shrinking = [{"start": 1.0, "flops": flops} for flops in (1e11, 2e11, 3e11)]
    found = refined(Formula(fitted={"start": 1.0, "flops": 1e-11}), shrinking, [3.0, 2.0, 1.0])
    assert found.fitted["flops"] >= 0


def test_what_jobs_do_not_tell_stays_as_it_was() -> None:
    known = Formula(fitted={"start": 3.0, "lines": 4e-6})
    same = [{"start": 1.0, "lines": 1e6}] * 5
    assert refined(known, same, [7.0] * 5).fitted == pytest.approx(known.fitted, rel=0.01)
    assert refined(known, [], []) is known
    twice = refined(known, same, [14.0] * 5).fitted
    assert twice["start"] > 3
    assert twice["lines"] > 4e-6


def noted(bare: Path, by: float) -> None:
    """Let nano look finished: each job took so many times what the shipped rates say."""
    found = estimate(planned())
    for job in found.jobs:
        if job.artifact.folder.startswith(("results/tables", "results/figures")):
            continue
        finish(job.artifact)
        path = Path(job.artifact.folder) / "run.json"
        run = json.loads(path.read_text()) | {"cpu_seconds": by * found.processor_seconds(job)}
        run["forked"] = not job.amounts["imports"]
        path.write_text(json.dumps(run))


def test_a_calibration_learns_how_slow_this_machine_is_and_says_its_error(bare: Path) -> None:
    noted(bare, 3.0)
    before = inside.encore("preflight", "--config", str(RUN), "--compare-finished")
    assert float(re.findall(r"needed, ([\d.]+) times that", before.stdout)[0]) == pytest.approx(3.0, abs=0.02)
    done = inside.encore("calibrate", "--output", "mine.yaml")
    assert done.returncode == 0, done.stderr
    assert "34 finished jobs of config/nano.yaml" in done.stdout
    assert re.search(r"half within \d+ %, nine in ten within \d+ %", done.stdout)
    after = inside.encore("preflight", "--config", str(RUN), "--compare-finished", "--rates", "mine.yaml")
    assert float(re.findall(r"needed, ([\d.]+) times that", after.stdout)[0]) == pytest.approx(1.0, abs=0.05)
    assert not Path("results/state/rates.yaml").exists()
    other = inside.encore("preflight", "table1", "--rates", "mine.yaml")
    assert "half within" in other.stdout, "the error stands on the first screen of any forecast"


def test_own_rates_are_taken_before_the_shipped_ones(bare: Path) -> None:
    noted(bare, 2.0)
    shipped = read_rates()
    assert inside.encore("calibrate").returncode == 0
    own = read_rates()
    assert (shipped.runs, own.runs) != (own.runs, shipped.runs)
    assert own.rules["search"].jobs == 7
    assert own.rules["rerank"] == shipped.rules["rerank"], "what nano does not do is as it was"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no such file; `encore calibrate --output mine.yaml` makes it"),
        ("device: cpu\n", "mine.yaml"),
        ("device: cpu\nmachine: m\nruns: r\ndate: d\njobs: 1\nrules: {}\n", "lacks the rule 'other'"),
    ],
)
def test_wrong_rates_are_refused_in_one_line(bare: Path, content: str | None, says: str) -> None:
    if content:
        Path("mine.yaml").write_text(content)
    done = inside.encore("preflight", "--rates", "mine.yaml")
    assert done.returncode == 1
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_too_few_jobs_are_refused(bare: Path) -> None:
    (job,) = (job for job in estimate(planned()).jobs if job.rule == "pretrain")
    finish(job.artifact)
    with pytest.raises(EncoreError, match="rates cannot be fitted to 1 finished jobs"):
        finished.fitted(read_rates(SHIPPED), finished.finished_jobs(estimate(planned())), "x", "y")


def test_rates_of_a_gpu_need_a_machine_with_one(bare: Path) -> None:
    own = read_rates(SHIPPED).model_copy(update={"device": "NVIDIA H200"})
    cpu = machine.find_machine(None, MACHINES)
    with pytest.raises(EncoreError, match="measured on a GPU"):
        forecast(planned(), (), cpu, own, 1, 1, SIZES)
    hopper = machine.find_machine("h200", MACHINES)
    found = forecast(planned(), (), hopper, own, 1, 1, SIZES)
    job = next(job for job in found.jobs if job.rule == "encode")
    assert found.seconds(job) == pytest.approx(own.rules["encode"].seconds.of(job.amounts))


def test_every_rule_that_makes_an_artifact_has_rates() -> None:
    rates, made = read_rates(SHIPPED), set(rule_threads(load_run())) - {"audit", "fetch", "preflight", "reproduce"}
    assert len(made) > 25
    assert {rule for rule in made if not rates.knows(rule)} == set()
    assert OTHER in rates.rules
    assert rates.jobs >= sum(rule.jobs for rule in rates.rules.values()) > 50


def load_run(**numerics: Any) -> RunConfig:
    return RunConfig.model_validate(read_yaml(ROOT / RUN) | numerics)


def test_a_rule_says_its_own_threads(tmp_path: Path) -> None:
    own = rule_threads(load_run(), ROOT / "workflow/rules")
    assert (own["tokens"], own["collection"], own["prepare"], own["lucene_search"]) == (2, 2, 2, 2)
    rules = "rule one:\n    threads: 4  # as many\n    shell: 'x'\n\n\nrule two:\n    shell: 'y'\n"
    rules += "rule three:\n    threads: EXECUTION.processes\nrule four:\n    threads: NUMERICS.threads\n"
    rules += "rule five:\n    threads: lambda wildcards: preprocessing_cores(wildcards)\n"
    (tmp_path / "a.smk").write_text(rules)
    found = rule_threads(
        load_run(execution={"processes": 8, "preprocessing_cores": 5}, numerics={"threads": 16}), tmp_path
    )
    assert found == {"one": 4, "two": 1, "three": 8, "four": 16, "five": 5}


def test_a_job_has_no_more_threads_than_it_uses_and_than_there_are_cores(bare: Path) -> None:
    """Several processes read pydocs, one makes documents of it."""
    (bare / "workflow").symlink_to(ROOT / "workflow")
    plan, names = planned(execution={"preprocessing_cores": 5}), ("pydocs-stdlib", "pydocs-documents")
    jobs = Jobs(plan, CollectionSizes(plan, {}), machine.find_machine(None, MACHINES), Fetches(plan, {}))
    assert [jobs.of(named_collection(plan, name)).threads for name in names] == [5, 1]
    few = estimate(plan)
    tokens = next(job for job in few.jobs if job.rule == "tokens")
    assert [tokens.threads, few.threads(tokens), replace(few, cores=3).threads(tokens)] == [5, 1, 3]


def test_a_training_has_the_threads_of_its_processes_and_beside_gpus_one_each(bare: Path) -> None:
    plan = planned(execution={"processes": 2}, numerics={"threads": 3})
    for name, threads in (("cpu", 6), ("h200", 2)):
        assert {job.threads for job in estimate(plan, name).jobs if job.rule == "pretrain"} == {threads}


def test_jobs_that_are_never_forks_are_those_that_start_by_themselves() -> None:
    client = runpy.run_path(str(ROOT / "workflow/forkserver/client.py"))
    assert {f"{rule}.py" for rule in NEVER_FORKED} == set(client["BY_THEMSELVES"])


def test_threads_share_what_is_parallel_alone() -> None:
    rates = Rates.model_validate(
        {"device": "cpu", "machine": "", "runs": "", "date": "", "jobs": 0}
        | {"rules": {"search": {"parallel": ["products"], "ram": {}, "disk": {}, "seconds": {"stated": SEARCH}}}}
    )
    job = {"start": 1.0, "products": 100.0, "lines": 10.0}
    assert [rates.seconds("search", job, threads) for threads in (1, 4)] == [121.0, 46.0]


SEARCH = {"start": 1.0, "products": 1.0, "lines": 2.0}


def test_what_starts_a_python_of_its_own_takes_its_imports(bare: Path) -> None:
    """On one machine jobs of one thread are forks; those of a cluster or a GPU are not, nor those that run Java."""

    def importing(plan: Plan, name: str = "cpu") -> set[str]:
        return {job.rule for job in estimate(plan, name).jobs if job.amounts.get("imports")}

    (bare / "workflow").symlink_to(ROOT / "workflow")  # its rules say their threads
    every = importing(planned(execution={"fork_jobs": False}))
    not_forked = importing(planned())
    assert not_forked == {"lucene_index", "lucene_search", "collection", "tokens"}  # Java, and two threads
    assert importing(planned(), "h200") == every > {"encode", "search", "finetune", "evaluate"}
    plan = planned()
    requests = Requests(plan)
    for made in (job.artifact for job in estimate(plan).jobs if job.rule in ("encode", "evaluate")):
        assert requests._jobs.of(made).amounts["imports"] == 1
    forks, own = (estimate(planned(execution={"fork_jobs": forked})) for forked in (True, False))
    for a, b in zip(forks.jobs, own.jobs, strict=True):
        shipped = forks.rates.of(a.artifact.stage).seconds
        imports = {**shipped.stated, **shipped.fitted}.get("imports", 0.0) if a.rule not in PRODUCTS else 0.0
        expected = 0.0 if a.rule in not_forked else imports
        assert own.processor_seconds(b) - forks.processor_seconds(a) == pytest.approx(expected)


def test_imports_are_told_from_the_rest_by_jobs_of_both_kinds(bare: Path) -> None:
    """A fork's time has no imports, and its memory, mostly that of its parent, is no job's own."""
    for place, job in enumerate(job for job in estimate(planned()).jobs if job.rule in ("search", "evaluate")):
        forked = place % 2 == 0
        finish(job.artifact)
        path = Path(job.artifact.folder) / "run.json"
        took = 0.5 + (0.0 if forked else 2.0) + 1e-6 * job.amounts["lines"]
        memory = 900 if forked else 300
        path.write_text(
            json.dumps(json.loads(path.read_text()) | {"cpu_seconds": took, "forked": forked, "peak_memory_mb": memory})
        )
    pairs = finished.finished_jobs(estimate(planned()))
    assert [job.amounts["imports"] for job, _ in pairs] == [float(not real.forked) for _, real in pairs]
    rules = finished.fitted(read_rates(SHIPPED), pairs, "x", "y").rules
    for rule in ("search", "evaluate"):
        found = rules[rule].seconds.fitted
        assert found["imports"] == pytest.approx(2.0, rel=0.15)
        assert found["start"] + found["imports"] == pytest.approx(2.5, rel=0.15)
    assert rules["search"].ram.fitted["start"] < 400e6


def test_a_training_on_gpus_waits_for_the_processes_that_feed_them(bare: Path) -> None:
    rates, job = read_rates(SHIPPED), {"start": 1.0, "flops": 1e16, "trained_tokens": 1e6}
    of_host = rates.of("pretrain.mlm").seconds.stated["trained_tokens"]
    one, eight = (rates.seconds("pretrain.mlm", job, 1, 1e14, processes) for processes in (1, 8))
    start = rates.of("pretrain.mlm").seconds.fitted["start"]
    assert (one - start, eight - start) == (pytest.approx(100), pytest.approx(12.5))
    fed = rates.seconds("pretrain.mlm", {**job, "trained_tokens": 1e9}, 1, 1e14, 8)
    assert fed - start == pytest.approx(1e9 * of_host)
    by_forty = rates.seconds("pretrain.mlm", {**job, "trained_tokens": 1e9}, 1, 1e14, 8, feeding=40)
    assert by_forty - start == pytest.approx(max(1e9 * of_host / 40, 12.5))


def test_making_examples_is_stated_as_it_was_measured() -> None:
    """A second of one process, of texts that fill their length."""
    stated = read_rates(SHIPPED).of("pretrain.mlm").seconds.stated
    shares = {}
    for part in json.loads((ROOT / "benchmarks/results/examples-cpu-2core.json").read_text())["parts"]:
        each = stated["trained_examples"] + part["length"] * stated["trained_tokens"]
        ours = {row["way"]: row["examples_per_second"] for row in part["rows"] if "Transformers" not in row["way"]}
        shares |= {(name, part["length"]): each * rate for name, rate in ours.items()}
    assert len(shares) == 28
    assert {name for (name, _), share in shares.items() if not 0.5 < share < 2} == {"simcse"}
    assert max(shares.values()) < 3
    assert {read_rates(SHIPPED).of(f"pretrain.{name}").seconds.stated["trained_examples"] for name, _ in shares} == {
        stated["trained_examples"]
    }


def test_more_to_do_takes_no_less(bare: Path) -> None:
    """Ten times the passages and queries: each job's time, memory and disk grow, or stay."""
    plan = planned()
    small, sizes = estimate(plan), yaml.safe_load(SIZES.read_text())
    entry = sizes["pydocs-stdlib"]
    entry |= {name: 10 * entry[name] for name in ("passages", "sections")}
    entry["queries"] = {split: 10 * count for split, count in entry["queries"].items()}
    SIZES.write_text(yaml.safe_dump(sizes))
    large = estimate(plan)
    pairs = list(zip(small.jobs, large.jobs, strict=True))
    assert sum(large.seconds(b) > small.seconds(a) for a, b in pairs) > 15
    for a, b in pairs:
        assert large.seconds(b) >= small.seconds(a), a.artifact.folder
        assert large.memory(b) >= small.memory(a), a.artifact.folder
        assert large.disk_of(b) >= small.disk_of(a), a.artifact.folder


def test_the_papers_scale_is_estimated(bare: Path) -> None:
    plan, hopper = load_plan(Path("config/paper.yaml")), machine.find_machine("h100-80gb", MACHINES)
    found = forecast(plan, (), hopper, read_rates(SHIPPED), 64, 1024, SIZES)
    assert len(found.jobs) > 1000
    assert found.gpu_hours > 500
    assert forecast(plan, (), hopper, read_rates(SHIPPED), 8, 128, SIZES)._vectors < 0.3e12, "vectors on 8 GPUs at once"

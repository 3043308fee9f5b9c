"""A lineage of nano through a real SLURM: the same command with another profile, the same table to the byte."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.clones import NANO, Clone, jobs

pytestmark = pytest.mark.slurm

ON_GPUS = {"pretrain", "finetune", "encode", "search"}
LOCAL = {"negatives", "evaluate", "table", "figure", "curves", "report"}
FEWER = ('[bm25, none, "BM25 negatives: control", ict]', '[bm25, "BM25 negatives: ict"]')
LINEAGE = "tiny+ict*-s0-*"  # what SLURM makes: these models with all that comes of them, and BM25's answers
BY_SLURM = ON_GPUS | {"lucene_search"}
ON_CPU = {"ENCORE_ALLOW_CPU": "1"}  # the GPUs here are names
SLURM = ("--profile", "slurm", "--configfile", "config/nano.yaml")
WASTE = "        import time\n        waste = bytearray(400_000_000)\n        time.sleep(8)\n        del waste\n"
SUBMITTED = re.compile(r"Job \d+ has been submitted with SLURM jobid (\d+) \(log: \S*/rule_(\w+)/")


def shown(job: str) -> dict[str, str]:
    """What SLURM itself remembers of a job."""
    text = subprocess.run(["scontrol", "show", "job", job], capture_output=True, text=True, check=True).stdout
    return dict(pair.split("=", 1) for pair in text.split() if "=" in pair)


def short_of_memory(clone: Clone) -> None:
    """Give BM25's job less memory than it will need; and ask a cluster that is not shared at once."""
    path = clone.root / "profiles/slurm/config.yaml"
    profile = yaml.safe_load(path.read_text())
    profile["slurm-init-seconds-before-status-checks"] = 1
    profile["set-resources"]["lucene_search"] = {"mem_mb": "attempt * 500"}
    path.write_text(yaml.safe_dump(profile))
    first = "        from encore.data.runs import describe, write_run\n"
    clone.replace("src/encore/stages/lucene_search.py", first, WASTE + first)


@pytest.fixture(scope="module")
def submitted(cluster: None, finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> tuple[Clone, str]:
    """A finished nano that lost its last lineage, made again through SLURM, and what Snakemake printed."""
    clone = finished.copy(tmp_path_factory.mktemp("slurm") / "clone")
    clone.replace("config/nano.yaml", *FEWER)
    short_of_memory(clone)
    results = clone.root / "results"
    for kind in ("models", "indexes", "runs", "negatives", "scores"):
        for folder in (results / kind).glob(LINEAGE):
            shutil.rmtree(folder)
    for path in [*results.glob("runs/bm25-*/*.test-*"), *results.glob("scores/bm25-*"), results / "tables"]:
        shutil.rmtree(path)
    # Few at a time: this node has fewer processors than it says, and other tests run at the same time.
    return clone, clone.snakemake(*SLURM, "--jobs", "3", env=ON_CPU).succeeded()


def test_the_table_is_that_of_a_local_run(submitted: tuple[Clone, str], nano: Clone) -> None:
    clone, output = submitted
    nano.replace("config/nano.yaml", *FEWER)
    assert {job.split()[0] for job in nano.built()} <= {"table", "curves", "report"}
    assert {job.split()[0] for job in jobs(output)} >= BY_SLURM
    assert clone.table() == nano.table()
    local = nano.manifests()
    assert any("/models/tiny+ict" in name for name in clone.manifests())
    assert clone.manifests() == {name: local[name] for name in clone.manifests()}


def test_jobs_run_where_the_profile_says(submitted: tuple[Clone, str]) -> None:
    """Partition, GPU, memory and account of every job, as SLURM saw them."""
    _, output = submitted
    ran = dict(SUBMITTED.findall(output))
    assert set(ran.values()) == {job.split()[0] for job in jobs(output)} - LOCAL == BY_SLURM
    for job, rule in ran.items():
        seen = shown(job)
        assert seen["Partition"] == ("gpu" if rule in ON_GPUS else "main"), rule
        assert ("gres:gpu" in seen.get("TresPerNode", "")) == (rule in ON_GPUS), (rule, seen)
        assert seen["Account"] == "local"
        assert seen["JobName"].startswith("encore_")


def test_a_step_knows_the_gpus_of_its_job(cluster: None, tmp_path: Path) -> None:
    """A job's program is a step without the variables of the batch script: by this one it sees that a GPU was given."""
    script = "unset SLURM_JOB_GPUS; srun sh -c 'echo step ${SLURM_STEP_GPUS:-none} job ${SLURM_JOB_GPUS:-none}'"
    options = ["--wait", "--account", "local", "--output", str(tmp_path / "log"), "--wrap", script]
    for gpus, found in (("gpu:1", r"step \d+ job none"), ("", "step none job none")):
        subprocess.run(["sbatch", *(["--partition", "gpu", "--gres", gpus] if gpus else []), *options], check=True)
        assert re.fullmatch(found, (tmp_path / "log").read_text().strip())


def test_jobs_that_a_killed_run_left_are_named(submitted: tuple[Clone, str]) -> None:
    clone, _ = submitted
    (clone.root / "results/tables/table1.csv").unlink()
    submit = ["sbatch", "--parsable", "--comment", "rule_encode_wildcards_x", "--wrap", "sleep 600"]
    job = subprocess.run(submit, cwd=clone.root, capture_output=True, text=True, check=True).stdout.strip()
    refused = clone.snakemake(*SLURM).error()
    subprocess.run(["scancel", job], check=True)
    assert "an earlier run's jobs still work in this folder" in refused
    assert f"`scancel {job}`" in refused
    clone.snakemake(*SLURM).succeeded()


def test_nothing_is_left_to_do(submitted: tuple[Clone, str]) -> None:
    clone, _ = submitted
    assert "Nothing to be done" in clone.snakemake(*SLURM, "-n").succeeded()
    assert "Nothing to be done" in clone.snakemake(*NANO, "-n").succeeded(), "neither locally"


def test_a_job_that_lacks_memory_is_tried_again_with_more(submitted: tuple[Clone, str]) -> None:
    """The limit is SLURM's; the retry, with twice the memory, is the profile's."""
    _, output = submitted
    tries = [shown(job) for job, rule in SUBMITTED.findall(output) if rule == "lucene_search"]
    assert [seen["MinMemoryNode"] for seen in tries] == ["500M", "1000M"]
    assert [seen["JobState"] for seen in tries] == ["FAILED", "COMPLETED"]

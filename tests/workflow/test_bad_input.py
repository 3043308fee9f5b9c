"""What is wrong with a target, lineage or configuration is one line of Snakemake's too, before any job."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support import own_run
from tests.support.clones import Clone
from tests.support.quick_first import quick_first


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone.fresh(tmp_path_factory.mktemp("pristine") / "a clone")


@pytest.mark.parametrize(
    ("target", "says"),
    quick_first(
        [
            ("results/models/tyni+ict-s0-01234567/manifest.json", ["unknown backbone 'tyni'; did you mean tiny"]),
            ("results/tables/tabel1.csv", ["tables.tabel1: no such table", "did you mean table1"]),
            ("results/negatives/bm25-01234567/x-01234567/manifest.json", ["is nothing that this configuration makes"]),
        ]
    ),
)
def test_snakemake_prints_what_is_wrong_with_a_target(pristine: Clone, target: str, says: list[str]) -> None:
    error = pristine.nano(target).error()
    assert all(part in error for part in says), error


@pytest.mark.slow
def test_a_target_that_no_rule_makes_is_refused_by_snakemake_itself(pristine: Clone) -> None:
    done = pristine.nano("tabel1")
    assert done.code != 0
    assert "No rule to produce tabel1" in done.output
    assert "Traceback" not in done.output


@pytest.mark.slow
def test_a_wrong_lineage_is_printed_by_both_programs(clone: Clone) -> None:
    """In the configuration, and on ``encore targets``'s command line."""
    lineage, says = "bert-base+itc+marco-bm25", "unknown step 'itc'; did you mean tct or ict?"
    asked = clone.encore("targets", lineage, "--config", "config/nano.yaml").error()
    with (clone.root / "config/nano.yaml").open("a") as file:
        file.write(f"lineages: ['{lineage}']\n")
    declared = clone.nano("-n").error()
    assert says in asked
    assert says in declared


def test_a_broken_folder_of_the_users_is_one_line_in_the_log_and_leaves_nothing(clone: Clone) -> None:
    """Lines may end as Windows has them; the fourth document is no UTF-8, and no judgment is read before it."""
    folder = own_run.declare(clone)
    rows = [f'{{"_id": "d{number}", "title": "", "text": "a text of café {number}"}}' for number in range(6)]
    encoded = [row.encode("latin-1" if number == 3 else "utf-8") for number, row in enumerate(rows)]
    (folder / "corpus.jsonl").write_bytes(b"".join(line + b"\r\n" for line in encoded))
    (folder / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "a text"}\r\n')
    (folder / "qrels/test.tsv").write_bytes(b"query-id\tcorpus-id\tscore\r\nq1\tnobody\t1\r\n")
    made = own_run.planned(clone)
    shutil.rmtree(clone.root / "results", ignore_errors=True)  # a run makes it again
    done = clone.nano(made)
    assert done.code != 0
    (log,) = (clone.root / "results/logs/collection").glob("mine-*.log")
    (line,) = [line for line in log.read_text().splitlines() if line.startswith("error: ")]
    assert "data/mine/corpus.jsonl, line 4: not UTF-8" in line
    assert line in done.output
    assert "Traceback" not in log.read_text()
    assert not list((clone.root / "results/collections").rglob("*.json*"))


def without_slurm(folder: Path) -> str:
    """A PATH that has everything of the machine but SLURM's client programs."""
    folder.mkdir()
    for source in map(Path, os.environ["PATH"].split(":")):
        for program in source.iterdir() if source.is_dir() else []:
            link = folder / program.name
            if program.name not in ("sbatch", "scontrol", "squeue", "sinfo", "srun") and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


@pytest.mark.slow
def test_slurm_that_is_not_there_or_does_not_answer_is_refused_at_the_start(clone: Clone, tmp_path: Path) -> None:
    path = without_slurm(tmp_path / "bin")
    target = "results/tables/table1.csv"
    done = clone.snakemake(target, "--profile", "slurm", env={"PATH": path})
    assert "needs SLURM's sbatch, which is not on this machine; use a login node" in done.error()
    assert "Execute" not in done.output, "a job was submitted"
    assert clone.planned(target), "it must leave no lock behind"
    for name, code in (("sbatch", 0), ("scontrol", 1)):
        Path(path, name).write_text(f"#!/bin/sh\nexit {code}\n")
        Path(path, name).chmod(0o755)
    assert "no SLURM answers `scontrol ping`" in clone.snakemake("--profile", "slurm", env={"PATH": path}).error()


@pytest.mark.slow
def test_torch_without_cuda_is_refused_before_a_job_that_requests_a_gpu(clone: Clone, tmp_path: Path) -> None:
    import torch

    if torch.version.cuda:
        pytest.skip("this torch computes on GPUs")
    path = without_slurm(tmp_path / "bin")
    programs_of_slurm(path)
    command = ("results/tables/table1.csv", "--profile", "slurm", "--configfile", "config/nano.yaml")
    done = clone.snakemake(*command, env={"PATH": path, "ENCORE_ALLOW_CPU": "0"})
    assert "the profile requests GPUs, and torch " in done.error()
    assert "install envs/gpu.txt (`make env GPU=1`), or write `gpu: none`" in done.error()
    assert not [*clone.root.glob("results/*/*/manifest.json")]


def programs_of_slurm(path: str) -> None:
    """Programs by SLURM's names, for a cluster of one partition."""
    for name in ("sbatch", "scontrol", "squeue", "sinfo"):
        Path(path, name).write_text("#!/bin/sh\n" + ("echo main; echo gpu\n" if name == "sinfo" else ""))
        Path(path, name).chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "changed", "options", "said"),
    [
        ("partition: main", "partition: cpu-long", (), "no partition cpu-long (it has gpu, main)"),
        ("more: {} ", "more: {pretrain: {runtime: 720}} ", (), ""),
        ("", "", ("--set-resources", "pretrain:runtime=720"), "finetune, pretrain, "),
        ("measure_latency: ", "pretrain: {runtime: 720}\n  measure_latency: ", (), "pretrain would request no GPU"),
    ],
)
def test_what_jobs_would_request_by_mistake_is_refused_before_the_first(
    clone: Clone, tmp_path: Path, line: str, changed: str, options: tuple[str, ...], said: str
) -> None:
    """Nothing is said of those of a profile that its first lines add, only of GPUs that this machine has not."""
    programs_of_slurm(path := without_slurm(tmp_path / "bin"))
    profile = clone.root / "profiles/slurm/config.yaml"
    before = profile.read_text()
    assert line in before
    profile.write_text(before.replace(line, changed, 1))
    try:
        command = ("results/tables/table1.csv", "--profile", "slurm", "--configfile", "config/nano.yaml")
        error = clone.snakemake(*command, *options, env={"PATH": path, "ENCORE_ALLOW_CPU": "0"}).error()
    finally:
        profile.write_text(before)
    assert (said or "the profile requests GPUs") in error
    assert not [*clone.root.glob("results/*/*/manifest.json")]

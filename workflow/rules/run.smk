"""What happens around a run: checks and files before the first job, and the summary after the last."""

import os
import shutil
import subprocess
from contextlib import suppress

from encore.storage.root import write_root
from encore.storage.typed import called
from encore.products.targets import reads_of_targets, summary


def folder_of_another_user():
    """The first folder of results that this user cannot write into; None where all is well."""
    if not Path("results").exists():  # a study's first run
        return None if os.access(".", os.W_OK) else Path.cwd()
    folders = [Path("results"), *Path("results").glob("*/"), *Path("results/logs").glob("*/")]
    return next((folder for folder in folders if not os.access(folder, os.W_OK)), None)


def obstacle_to_slurm():
    """Why nothing can be submitted from here; None where it can."""
    if shutil.which("sbatch") is None:
        return "--profile slurm needs SLURM's sbatch, which is not on this machine"
    if subprocess.call(["scontrol", "ping"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) != 0:
        return "--profile slurm: sbatch is here, but no SLURM answers `scontrol ping`"
    return None


def jobs_of_an_earlier_run():
    """The numbers of SLURM's jobs that a run in this folder submitted before it was killed: they still work in it."""
    command = ["squeue", "--me", "--noheader", "--format=%i|%k|%Z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    jobs = (line.strip().split("|", 2) for line in listed if line.count("|") > 1)
    return [number for number, comment, folder in jobs if comment.startswith("rule_") and Path(folder) == Path.cwd()]


def is_snakemake_s_own(limit):
    """Whether a limit of submissions is the one that holds where the user gave none: 100 a second."""
    return limit is not None and (limit.max_jobs, limit.timespan) == (100, 1)


onstart:
    if "slurm" in str(workflow.executor_plugin) and (obstacle := obstacle_to_slurm()):
        refuse(f"{obstacle}; use a login node of the cluster, or --profile local")
    if "slurm" in str(workflow.executor_plugin) and (jobs := jobs_of_an_earlier_run()):
        refuse(
            f"an earlier run's jobs still work in this folder; wait for them, or `scancel {' '.join(jobs)}`, then repeat"
        )
    if "generic" in str(workflow.executor_plugin):
        Path("results/logs/cluster").mkdir(parents=True, exist_ok=True)  # where the profile has jobs write
    if folder := folder_of_another_user():
        refuse(f"you cannot write into {folder}; work in a clone of your own, or let its owner run this")
    reads = in_one_line(reads_of_targets, PLAN, workflow.dag_settings.targets)
    in_one_line(index.write, str(RUN_FILE), reads, LOOKED_UP.values(), PATTERNS, records(), files_of_runs())
    if is_snakemake_s_own(workflow.scheduling_settings.max_jobs_per_timespan):
        # Under a limit every job that finishes makes Snakemake look at all ready jobs once more each second, until the end.
        workflow.scheduler.job_rate_limiter = None
    use_forkserver()


onsuccess:
    in_one_line(index.add_products, str(RUN_FILE), records())
    print(summary(PLAN, write_root(), called(RUN_FILE), workflow.dag_settings.targets))


onerror:
    with suppress(EncoreError, OSError):  # after what stopped the run
        index.add_products(str(RUN_FILE), records())


if not workflow.modifier.is_main_snakefile():
    # Of a module Snakemake calls none; without the first one jobs have no specifications.
    before, begin, end, failed, fail = workflow._onstart, onstart, onsuccess, workflow._onerror, onerror
    workflow._onerror = lambda log: (failed(log), fail())
    workflow._onstart, workflow._onsuccess = lambda log: (before(log), begin()), lambda log: end()

"""What happens around a run: checks and files before the first job, and the summary after the last."""

import os
import re
import runpy
import shutil
import subprocess
from contextlib import suppress
from importlib.util import find_spec

from encore.storage import environment as variables
from encore.storage.program import INTERRUPTED
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
    """Why nothing can be submitted from here now; None where it can."""
    elsewhere = "use a login node of the cluster, or --profile local"
    if shutil.which("sbatch") is None:
        return f"--profile slurm needs SLURM's sbatch, which is not on this machine; {elsewhere}"
    if subprocess.call(["scontrol", "ping"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) != 0:
        return f"--profile slurm: sbatch is here, but no SLURM answers `scontrol ping`; {elsewhere}"
    command = ["squeue", "--me", "--noheader", "--format=%i|%k|%Z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    jobs = (line.strip().split("|", 2) for line in listed if line.count("|") > 1)
    left = [number for number, comment, folder in jobs if comment.startswith("rule_") and Path(folder) == Path.cwd()]
    wait = f"wait for them, or `scancel {' '.join(left)}`, then repeat"
    return f"an earlier run's jobs still work in this folder; {wait}" if left else None


def obstacle_to_requests():
    """What jobs would request by mistake: a partition that is not there, or no GPU; None where all is well."""
    command = ["sinfo", "--noheader", "--format=%R"] if shutil.which("sinfo") else ["true"]
    there = set(subprocess.run(command, capture_output=True, text=True, check=False).stdout.split())
    if there and (missing := partitions_asked() - there):
        known = ", ".join(sorted(there))
        return f"this cluster has no partition {min(missing)} (it has {known}); correct the first lines of the profile"
    if rules := [] if variables.number(variables.ALLOW_CPU) else left_without_gpus():
        return (
            f"{', '.join(rules)} would request no GPU: a `set-resources` for some rules replaces the profile's; write it "
            "into `more:` in the first lines of profiles/slurm/config.yaml, or set ENCORE_ALLOW_CPU=1"
        )
    return None


def obstacle_to_gpus():
    """Why no job could use the GPU that it requests; None where it could, or where a container brings torch."""
    if deployed or variables.number(variables.ALLOW_CPU) or not (torch := find_spec("torch")):
        return None
    build = runpy.run_path(str(Path(torch.origin).with_name("version.py")))
    if build.get("cuda") or build.get("hip") or not requests_gpus():
        return None
    return (
        f"the profile requests GPUs, and torch {build['__version__']} in {sys.prefix} computes on processors alone; "
        "install envs/gpu.txt (`make env GPU=1`), or write `gpu: none` in the first lines of profiles/slurm/config.yaml"
    )


def is_final(logs):
    """Whether the last line of a job's logs is a sentence on what to correct, so that it would only be said again."""
    lines = [line for log in logs if Path(log).is_file() for line in Path(log).read_text(errors="replace").splitlines()]
    last = lines[-1] if lines else ""
    may_help = re.search(r"memory|\bkilled\b|\.py:\d+\)$", last) or last == INTERRUPTED
    return last.startswith("error: ") and not may_help


onstart:
    if "slurm" in str(workflow.executor_plugin) and (
        obstacle := obstacle_to_slurm() or obstacle_to_requests() or obstacle_to_gpus()
    ):
        refuse(obstacle)
    if "generic" in str(workflow.executor_plugin):
        Path("results/logs/cluster").mkdir(parents=True, exist_ok=True)  # where the profile has jobs write
    if folder := folder_of_another_user():
        refuse(f"you cannot write into {folder}; work in a clone of your own, or let its owner run this")
    reads = in_one_line(reads_of_targets, PLAN, workflow.dag_settings.targets)
    in_one_line(index.write, str(RUN_FILE), reads, LOOKED_UP.values(), PATTERNS, records(), files_of_runs())
    submit_without_limit()
    repeat_only_what_may_help()
    use_forkserver()


onsuccess:
    in_one_line(index.add_products, str(RUN_FILE), records())
    print(summary(PLAN, write_root(), called(RUN_FILE), workflow.dag_settings.targets))


onerror:
    with suppress(EncoreError, OSError):  # after what stopped the run
        index.add_products(str(RUN_FILE), records())


have_handlers_called(onstart, onsuccess, onerror)

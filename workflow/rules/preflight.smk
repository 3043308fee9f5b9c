"""What is looked at before the first job, and what is said after the last; included after every rule."""

import os
import shutil
import subprocess

from encore.plan.tables import refuse_damaged
from encore.targets import check_target, needed_by, remember, summary, tables_of


def asked_for():
    """Targets of the command line, and whether it is a dry run: Snakemake hands them over only after rules are parsed."""
    from snakemake.cli import get_argument_parser

    if not workflow.is_main_process or "snakemake" not in sys.argv[0]:
        return [], True  # a cluster's job, or a program that uses Snakemake as a library
    read = get_argument_parser().parse_known_args(sys.argv[1:])[0]
    return read.targets or [], read.dryrun


def folder_of_another_user():
    """The first folder of results that this user cannot write into; None where all is well."""
    folders = [Path("results"), *Path("results").glob("*/"), *Path("results/logs").glob("*/")]
    return next((folder for folder in folders if not os.access(folder, os.W_OK)), None)


def refuse_unknown_targets():
    """Say in one line what is wrong with a target, before Snakemake looks for a rule that makes it."""
    rules = {rule.name for rule in workflow.rules if not rule.has_wildcards()}
    asked, dryrun = asked_for()
    targets = [target for target in asked if target not in rules]
    try:
        for target in targets:
            check_target(PLAN, target, rules)
        if not dryrun and (not asked or targets):  # `fetch` and `audit` need nothing that people bring
            fetched.refuse_missing(PLAN, needed_by(PLAN, targets))
            refuse_damaged(PLAN, tables_of(PLAN, targets))
        if folder_of_another_user() is None:  # else `onstart` says so, and a dry run needs no memory
            remember(PLAN, targets)
            PLAN.asked = recall()
            write_slices(PLAN)
    except EncoreError as error:
        refuse(error)


refuse_unknown_targets()


def obstacle_to_slurm():
    """Why nothing can be submitted from here; None where it can."""
    if shutil.which("sbatch") is None:
        return "--profile slurm needs SLURM's sbatch, which is not on this machine"
    if subprocess.call(["scontrol", "ping"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) != 0:
        return "--profile slurm: sbatch is here, but no SLURM answers `scontrol ping`"
    return None


onstart:
    if "slurm" in str(workflow.executor_plugin) and (obstacle := obstacle_to_slurm()):
        refuse(f"{obstacle}; use a login node of the cluster, or --profile local")
    if folder := folder_of_another_user():
        refuse(f"you cannot write into {folder}; work in a clone of your own, or let its owner run this")


onsuccess:
    print(summary(PLAN))

"""The plan of the configuration, and the few functions of wildcards that rules need. No torch here.

The process that the user starts plans, and writes ``results/plan/index.json`` when a run begins; a job of a cluster
looks its folder up there.
"""

import gc
import re

from encore.products.claims.plan import refuse_unknown_claims
from encore.commands.preflight.jobs import LONGEST, LONGEST_RESUMED, Requests
from encore.config.run_file import read_run
from encore.datasets import kinds
from encore.errors import EncoreError
from encore.plan import folders, index
from encore.products.catalogue import load_plan
from encore.storage.manifest import is_unfinished
from encore.storage.program_files import program_folder
from encore.products.targets import find

# What is imported and a plan live to the end: looking for garbage in them was a fifth of what planning takes.
gc.freeze()
gc.set_threshold(200_000)


def refuse(error):
    """Stop with one line instead of a traceback."""
    sys.tracebacklimit = 0
    sys.exit(f"error: {error}")


def in_one_line(function, *arguments):
    """Call a function of the library; what it refuses stops Snakemake with one line."""
    try:
        return function(*arguments)
    except EncoreError as error:
        refuse(error)


def refuse_braces(path):
    """Stop for a path that Snakemake would look for wildcards in."""
    if {"{", "}"} & {*path}:
        refuse(f"Snakemake takes braces in a path for names: move {path} to a folder without them, then repeat")


if workflow.is_main_process and (len(workflow.configfiles) > 1 or workflow.config_settings.config):
    refuse("a run's configuration is one complete file: give one --configfile, and no --config")

if not workflow.configfiles:
    refuse("no config/config.yaml is here; name a run's file: --configfile FILE, or `configfile:` above the module")

# What rules call is stored next to them; a clone's commands are as a user types them. (A module's names are unknown in braces.)
WORKFLOW = program_folder("workflow", "job.py")
PROGRAMS = WORKFLOW / "scripts"
JOB = f"python {quote(str(WORKFLOW / 'job.py'))} "  # which runs a program, as a fork where forkserver.smk has begun one
MAKE = f"{JOB}{quote(str(PROGRAMS))}/make.py"  # with the name of a stage: src/encore/stages/
refuse_braces(str(PROGRAMS.resolve()))
# Memory in pages of 2 MB where Linux has them: a graph, whose vectors are read here and there, takes a quarter less time.
LARGE_PAGES = 'GLIBC_TUNABLES="${{GLIBC_TUNABLES:+$GLIBC_TUNABLES:}}glibc.malloc.hugetlb=1" '
RUN_FILE = Path(workflow.configfiles[-1])
RUN = in_one_line(read_run, RUN_FILE, config)
EXECUTION, NUMERICS = RUN.execution, RUN.numerics
PLAN = in_one_line(load_plan, RUN_FILE, config) if workflow.is_main_process else None
if PLAN:
    in_one_line(refuse_unknown_claims, PLAN)
INDEX, REQUESTS = (None, Requests(PLAN)) if PLAN else (index.read(), None)
LOOKED_UP = {}  # the artifact that each job of this run makes, by folder: what the index has to have


def files_of_runs():
    """The files that runs at work in this folder read and make, by Snakemake's locks."""
    return {line for lock in Path(".snakemake/locks").glob("*.lock") for line in lock.read_text().splitlines()}


def artifact_in(folder, wildcards):
    """The artifact in a folder of results."""
    place = f"results/{folder.format(**wildcards)}"
    if place not in LOOKED_UP:
        LOOKED_UP[place] = in_one_line(find, PLAN, place) if PLAN else in_one_line(INDEX.find, place)
        if PLAN and workflow.dag is not None:  # none where rules are looked at and no job is sought
            workflow.dag.forcefiles.update(unfinished(LOOKED_UP[place]))
            if not workflow.dryrun:  # which plans with what is not there yet
                in_one_line(folders.refuse_missing, PLAN, [LOOKED_UP[place]])
    return LOOKED_UP[place]


def unfinished(artifact):
    """Manifests that are missing from the folders of an artifact and its inputs.

    If a job was killed while it built a folder *again*, everything built from the folder exists, so Snakemake has to be forced.
    """
    return [each.manifest for each in (artifact, *artifact.inputs.values()) if is_unfinished(Path(each.folder))]


def manifests(folder, *roles):
    """The manifests of what an artifact is made from, by role; nothing where it has no such role.

    ``shard*`` are all roles that begin so, under the name ``shards``.
    """
    names = {role.replace(".*", "s").replace("*", "s"): role for role in roles}
    return _inputs(folder, {name: (role, "manifest.json") for name, role in names.items()}, str)


def large_files(folder, **files):
    """Large files of what an artifact is made from, by role: ``model="model.safetensors"`` is ``model_file``.

    Their manifests say whether they changed, so their age does not matter; one that is missing is made again.
    """
    return _inputs(folder, {f"{role}_file": (role, file) for role, file in files.items()}, ancient)


def _inputs(folder, wanted, flag):
    """Inputs by name, each a role and its file: one function for all, since Snakemake inspects each for every job."""

    def paths(wildcards):
        inputs = artifact_in(folder, wildcards).inputs
        return {name: [flag(path) for path in _files_of(inputs, role, file)] for name, (role, file) in wanted.items()}

    return unpack(paths)


def _files_of(inputs, role, file):
    """A file of each input under a role, or under all roles that begin alike."""
    named = [role] if role in inputs else []
    if role.endswith("*") or role == "shard":
        named = [each for each in inputs if each.startswith(role.rstrip("*"))]
    return [f"{inputs[each].folder}/{file}" for each in named]


def spec_of(folder):
    """The file with the spec of an artifact, which is written when a run begins."""
    return f"{index.SPECS}/{folder}.json"


def about_of(folder):
    """An artifact's spec in a few words, for `snakemake -n`: `ict, 172 steps`.

    It is a resource, since a param that an older version had not would make results again.
    """
    return lambda wildcards: artifact_in(folder, wildcards).about


def processes_of(folder):
    """The processes of a training, and its GPUs: fewer for a small batch."""
    return lambda wildcards: EXECUTION.processes_of(artifact_in(folder, wildcards).spec["step"]["batch"])


def threads_of(rule):
    """The threads of one process that runs a model; one where the profile gives the rule GPUs, which compute."""
    return 1 if on_gpus(rule) else NUMERICS.threads


def on_gpus(rule):
    """Whether the profile gives the rule GPUs."""
    return bool({"gpu", "gres"} & set(workflow.resource_settings.overwrite_resources.get(rule, {})))


def threads_of_training(rule, folder):
    """The threads of all processes of a training."""
    processes, of_each = processes_of(folder), threads_of(rule)
    return lambda wildcards: of_each * processes(wildcards)


def cores_of_training(rule, folder):
    """The cores that a training requests: those of its threads, and one for each process that makes batches."""
    processes, workers = processes_of(folder), max(EXECUTION.workers, int(on_gpus(rule)))
    return lambda wildcards, threads: threads + workers * processes(wildcards)


def at_least(folder, *, mem_mb, runtime):
    """Memory in MB and minutes for the size of the collections that an artifact is made from, growing by attempt."""

    def memory(wildcards, attempt):
        return attempt * (REQUESTS.memory_mb(artifact_in(folder, wildcards), mem_mb) if REQUESTS else mem_mb)

    def minutes(wildcards, attempt):
        once = REQUESTS.minutes(artifact_in(folder, wildcards), runtime) if REQUESTS else runtime
        return min(LONGEST, attempt * once)

    return {"mem_mb": memory, "runtime": minutes}


def at_least_where_it_resumes(folder, *, mem_mb, runtime):
    """The same for a job that resumes in the next attempt where it was: its time does not grow with attempts."""

    def minutes(wildcards):
        once = REQUESTS.minutes(artifact_in(folder, wildcards), runtime) if REQUESTS else runtime
        return min(LONGEST_RESUMED, once)

    return at_least(folder, mem_mb=mem_mb, runtime=runtime) | {"runtime": minutes}


def preprocessing_cores(collection):
    """Cores of the job that makes a collection: more than one for kinds whose work processes can share."""
    return EXECUTION.preprocessing_cores if kinds.is_parallel(collection.stage) else 1


def by_attempt(*, mem_mb, runtime):
    """Memory in MB and minutes that grow with each attempt: once, twice, three times the amount."""
    return {
        "mem_mb": lambda wildcards, attempt: attempt * mem_mb,
        "runtime": lambda wildcards, attempt: attempt * runtime,
    }

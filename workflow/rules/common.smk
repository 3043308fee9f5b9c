"""The plan of the configuration, and the few functions of wildcards that rules need. No torch here.

The process that the user starts plans, and writes ``results/plan/index.json`` when a run begins; a job of a cluster
looks its folder up there.
"""

import gc

from encore import stages
from encore.products.claims.plan import refuse_unknown_claims
from encore.config.run_file import read_run
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


if workflow.is_main_process and (len(workflow.configfiles) > 1 or workflow.config_settings.config):
    refuse("a run's configuration is one complete file: give one --configfile, and no --config")

if not workflow.configfiles:
    refuse("no config/config.yaml is here; name a run's file: --configfile FILE, or `configfile:` above the module")

# What rules call is stored next to them, in a clone as a user types it. (In braces a module's names are unknown.)
WORKFLOW = program_folder("workflow", "job.py")
PROGRAMS = WORKFLOW / "scripts"
JOB = f"python {quote(str(WORKFLOW / 'job.py'))} "  # which runs a program, as a fork where forkserver.smk has begun one
MAKE = f"{JOB}{quote(str(PROGRAMS))}/make.py"  # with the name of a stage: src/encore/stages/
if {"{", "}"} & {*str(PROGRAMS.resolve())}:
    refuse(f"Snakemake takes braces in a path for names: move {PROGRAMS.resolve()} where there are none, then repeat")
# Memory in pages of 2 MB where Linux has them: a graph, which is read here and there, takes a quarter less time.
LARGE_PAGES = 'GLIBC_TUNABLES="${{GLIBC_TUNABLES:+$GLIBC_TUNABLES:}}glibc.malloc.hugetlb=1" '
RUN_FILE = Path(workflow.configfiles[-1])
RUN = in_one_line(read_run, RUN_FILE, config)
EXECUTION, NUMERICS = RUN.execution, RUN.numerics
PLAN = in_one_line(load_plan, RUN_FILE, config) if workflow.is_main_process else None
if PLAN:
    in_one_line(refuse_unknown_claims, PLAN)
INDEX = None if PLAN else index.read()
LOOKED_UP = {}  # the artifact that each job of this run makes, by folder: what the index has to have


def artifact_in(folder, wildcards):
    """The artifact in a folder of results."""
    place = f"results/{folder.format(**wildcards)}"
    if place not in LOOKED_UP:
        LOOKED_UP[place] = made = in_one_line(find, PLAN, place) if PLAN else in_one_line(INDEX.find, place)
        if PLAN and seeks_jobs():
            # Of a job that was killed as it built a folder *again*; all that was made from the folder exists.
            unfinished = (each for each in (made, *made.inputs.values()) if is_unfinished(Path(each.folder)))
            make_again(each.manifest for each in unfinished)
            if not workflow.dryrun:  # which plans with what is not there yet
                in_one_line(folders.refuse_missing, PLAN, [made])
    return LOOKED_UP[place]


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

"""Encore: from raw text to every table. This file is the table of contents."""

import sys
from pathlib import Path
from shlex import quote

from snakemake.utils import min_version

min_version("9.20")

# The library is importable here and in every job, installed or not, and jobs use the Python that runs Snakemake.
sys.path.insert(0, str(Path(workflow.basedir) / "src"))


# A run's configuration is complete: one given with --configfile replaces the default, it is never merged.
if not workflow.configfiles:

    configfile: "config/config.yaml"


include: "workflow/rules/common.smk"


# What every job has in its environment. Where downloads lie and how jobs are carried out decide nothing: no params.
environment = {
    "PYTHONPATH": Path(workflow.basedir) / "src",
    "ENCORE_RUN": RUN_FILE,
    "ENCORE_DATA_ROOT": EXECUTION.data_root,
    "ENCORE_WORKERS": EXECUTION.workers,
    "ENCORE_KEEP_VECTORS": int(EXECUTION.keep_vectors),
    "ENCORE_TEXT_RUNS": EXECUTION.text_runs,
    "ENCORE_CHECKPOINT_SECONDS": EXECUTION.checkpoint_seconds,
    "ENCORE_JAVA_MB": EXECUTION.java_memory_mb,
}
prefix = (
    "unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE; "  # left over from another program: a training sets its own
)
prefix += f"export PATH={quote(str(Path(sys.executable).parent))}:$PATH "
prefix += " ".join(f"{name}={quote(str(value))}" for name, value in environment.items()) + "; "
shell.prefix(prefix.replace("{", "{{").replace("}", "}}"))  # which Snakemake formats


# With --sdm apptainer every job runs in it; envs/Dockerfile says how it is built.
container: "encore.sif"


include: "workflow/rules/wildcards.smk"
include: "workflow/rules/fetch.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/finetune.smk"
include: "workflow/rules/index.smk"
include: "workflow/rules/doc2query.smk"
include: "workflow/rules/retrieve.smk"
include: "workflow/rules/indexed.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/latency.smk"
include: "workflow/rules/loss.smk"
include: "workflow/rules/pairs.smk"
include: "workflow/rules/nested_corpora.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/slices.smk"
include: "workflow/rules/products.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/forkserver.smk"
include: "workflow/rules/run.smk"


rule all:
    """Everything that the configuration declares."""
    default_target: True
    input:
        lambda wildcards: in_one_line(everything_declared, PLAN),
    localrule: True

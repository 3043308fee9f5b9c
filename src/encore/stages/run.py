"""What every stage has around its ``make``: the plan's words for it, checks of its inputs, and its records."""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from encore import stages
from encore.errors import EncoreError
from encore.stages.base import Job
from encore.storage.manifest import record
from encore.training import launch

Planned = dict[str, Any]


def read_planned(path: Path, stage: str) -> Planned:
    """What the plan wrote of one folder: its ``stage``, ``spec``, ``inputs`` by role, ``source`` and ``details``.

    Args:
        stage: the one that is to make it, without its variant.
    """
    try:
        planned: Planned = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EncoreError(
            f"--planned {path}: {error.strerror}; run snakemake without --no-hooks, which writes it when a run begins"
        ) from error
    if planned["stage"].partition(".")[0] != stage:
        raise EncoreError(f"{path} is planned for the stage {planned['stage']}, not {stage}")
    return planned


def run_stage(planned: Planned, job: Job, read_entries: Callable[[], Mapping[str, Planned]]) -> None:
    """Check the inputs, make the folder, write its records, and remove what the job would have resumed from.

    Args:
        planned: as ``read_planned`` gives it.
        read_entries: which folders the plan makes, for vectors that are removed after use.
    """
    stage = stages.load(planned["stage"]).read(planned["spec"], planned["inputs"], str(job.output))
    launch.start_processes(job.processes if stage.is_shared else 1)
    if not launch.leads():  # of a training that several processes share, only the first writes
        stage.make(job)
        return
    with ExitStack() as around:
        if shards := getattr(stage.inputs, "shards", None):
            from encore.retrieval.kept_vectors import vectors_of

            around.enter_context(vectors_of(shards, read_entries, _encode))
        made = {"stage": planned["stage"], "spec": planned["spec"], "inputs": stage.inputs.folders()}
        facts = around.enter_context(record(job.output, **made))
        facts["code"] = stages.code_digest(planned["stage"])
        facts |= stage.make(job)
    shutil.rmtree(job.state, ignore_errors=True)


def _encode(spec: dict[str, Any], inputs: dict[str, Path], output: Path, state: Path) -> None:
    stages.load("encode").read(spec, inputs, str(output)).make(Job(output, state))

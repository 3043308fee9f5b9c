"""`encore whatif` against Snakemake: over random changes of a finished run, the jobs that it names are those run."""

import contextlib
import json
import random
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from encore.commands.whatif import changed
from tests.support.clones import Clone, exact_jobs

CONFIG = ("--config", "config/nano.yaml")
# Changes of the run's file that reach each kind of artifact, by what they are about; some touch nothing that is made.
CHANGES = [
    "scale.pretrain.steps=11",
    "scale.finetune.learning_rate=0.002",
    "scale.finetune.length=48",
    "scale.steps.ict.temperature=0.1",
    "scale.steps.costa.temperature=0.07",
    "scale.systems.bm25.k1=1.1",
    "seeds=[1]",
    "seeds=[0, 1]",
    "depth=500",
    "title=Another title",
    "proxy_data=false",
    "latency.queries=20",
    "numerics.threads=2",
    "execution.checkpoint_seconds=60",
    "tables={table1: [none, ict]}",
    "scale.backbones.bert-base=tiny-random",
    "backbones.tiny.layers=3",
    "datasets.pydocs-stdlib.folder=one-package",
]


def told(clone: Clone, *changes: str) -> Counter[str]:
    answer = json.loads(clone.encore("whatif", *changes, *CONFIG, "--json").succeeded())
    return Counter({rule: len(folders) for rule, folders in answer["jobs"].items()})


def make(clone: Clone, changes: list[str]) -> None:
    """Write the changes into the clone's configuration."""
    with contextlib.chdir(clone.root):
        catalogue, run = changed(Path("config"), Path("config/nano.yaml"), changes, Path("changed"))
        shutil.copytree(catalogue, "config", dirs_exist_ok=True)
        shutil.copyfile(run, "config/nano.yaml")


@pytest.mark.parametrize("seed", range(6))
def test_the_jobs_that_are_told_are_the_jobs_that_run(nano: Clone, seed: int) -> None:
    changes = random.Random(seed).sample(CHANGES, 1 + seed % 2)
    expected = told(nano, *changes)
    make(nano, changes)
    ran = exact_jobs(nano.nano("-n").succeeded())
    assert Counter(job.split()[0] for job in ran) == expected, changes


def test_a_word_that_changes_nothing_runs_nothing(finished: Clone) -> None:
    before = finished.manifests()
    assert told(finished, "execution.checkpoint_seconds=60") == Counter()
    assert finished.manifests() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("steps.costa.temperature", "is not a change; write it like"),
        ("steps.cotsa.temperature=1", "steps.yaml has no cotsa; did you mean costa"),
        ("steps.costa.temprature=1", "config/steps.yaml: costa.*did you mean temperature"),
        ("scale.pretrain.steps=many", "scale of pretrain step .* should be a valid integer"),
        ("seeds.first=1", "there are no keys below that"),
        ("steps.bfs.batch.size=1", "there are no keys below that|is inherited"),
    ],
)
def test_a_change_of_nothing_is_refused(finished: Clone, change: str, message: str) -> None:
    error = finished.encore("whatif", change, *CONFIG).error()
    assert re.search(message, error), error


def test_several_changes_are_one(finished: Clone) -> None:
    said = finished.encore("whatif", "steps.costa.batch=65", "depth=500", *CONFIG).succeeded()
    assert " cells:\n  table1\n" in said

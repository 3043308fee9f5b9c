"""What workflow/rules/private.smk takes of Snakemake beyond its manual does what it is taken for.

GPUs that a profile gives to rules are tried in test_rules.py, by the threads of trainings.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.clones import REPOSITORY, Clone
from tests.support.forks import SNAKEMAKE

TABLE = "results/tables/cpdae/table1.csv"  # made of nothing
PRINTED = """\
    print("limit:", workflow.scheduler.job_rate_limiter)
    print("locked:", files_of_runs())
"""
STUDY = """
configfile: "mine.yaml"


onstart:
    print("their own start")


onerror:
    print("their own error")


module encore:
    snakefile: "{snakefile}"
    config: config


use rule * from encore


rule theirs:
    output: "theirs.txt"
    shell: "false"
"""


FAILING = """

ENDS = {
    "killed": "step 3/172",
    "memory": "error: out of memory on the GPU; take a larger one that nothing else uses",
    "worker": "error: a worker process was killed, perhaps because it ran out of memory; give the job more memory",
    "interrupted": "error: interrupted; the same command continues from here",
    "unexpected": "error: RuntimeError: CUDA error (encore/training/loop.py:105)",
    "input": "error: data/mine/corpus.jsonl, line 4: not UTF-8; save it as that",
}


rule failing:
    output: "{end}.made"
    log: "{end}.log"
    params: lambda wildcards: ENDS[wildcards.end]
    shell: "echo {params:q} > {log}; false"
"""


def test_a_folder_without_a_manifest_is_made_again_though_what_was_made_from_it_is_there(nano: Clone) -> None:
    assert nano.planned() == set()
    (nano.folder("tokens", "pydocs-stdlib") / "manifest.json").unlink()
    assert {"tokens pydocs-stdlib", "start tiny-s0"} <= nano.planned()


@pytest.mark.slow
def test_locks_list_a_run_s_files_and_submissions_have_the_limit_that_the_user_gives(clone: Clone) -> None:
    """Under a limit Snakemake looks at all ready jobs each second, once for every job that finished."""
    for profile in REPOSITORY.glob("profiles/*/config.yaml"):
        assert "max-jobs-per" not in profile.read_text()
    clone.replace("config/nano.yaml", "tables: {table1:", "tables: {cpdae/table1: [trec], table1:")
    clone.replace("workflow/rules/run.smk", "onsuccess:\n", f"onsuccess:\n{PRINTED}")
    output = clone.nano(TABLE, "--force").succeeded()
    assert "limit: None" in output
    (locked,) = re.findall("locked: (.*)", output)
    assert f"'{TABLE}'" in locked
    assert re.search("limit: .*JobRateLimiter", clone.nano(TABLE, "-f", "--max-jobs-per-timespan", "7/1s").succeeded())


@pytest.mark.slow
def test_the_handlers_of_a_module_are_called_after_those_of_the_study(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: config/nano.yaml\ntitle: Mine\ntables: {cpdae/table1: [trec]}\n")
    (tmp_path / "Snakefile").write_text(STUDY.replace("{snakefile}", f"{REPOSITORY}/workflow/Snakefile"))
    study = Clone(tmp_path)
    made = study.run(SNAKEMAKE, TABLE, "--cores", "1").succeeded()
    assert "their own start" in made
    assert "Mine: tables and figures made: 1" in made
    assert (tmp_path / "results/plan/cpdae/table1.json").is_file()
    failed = study.run(SNAKEMAKE, "theirs.txt", "--cores", "1")
    assert failed.code != 0
    assert "their own error" in failed.output


@pytest.mark.slow
def test_a_job_whose_log_ends_with_what_to_correct_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: config/nano.yaml\ntitle: Mine\ntables: {cpdae/table1: [trec]}\n")
    (tmp_path / "Snakefile").write_text(STUDY.replace("{snakefile}", f"{REPOSITORY}/workflow/Snakefile") + FAILING)
    ends = re.findall(r'^    "(\w+)":', FAILING, re.M)
    options = ("--cores", "2", "--retries", "1", "--keep-going")
    done = Clone(tmp_path).run(SNAKEMAKE, *(f"{end}.made" for end in ends), *options)
    failed = Counter(re.findall(r"^ {4}output: (\w+)\.made", done.output.split("Error in rule", 1)[1], re.M))
    assert done.code != 0
    assert failed["input"] < min(failed[end] for end in ends if end != "input"), done.output
    assert done.output.count("Trying to restart") == len(ends) - 1

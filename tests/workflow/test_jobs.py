"""A cluster's job: Snakemake in a process of its own, which looks its folder up in the index and plans nothing."""

import re
import shutil

import pytest

from tests.support.clones import Clone

PLANS = "    return Plan(config, with_entries_of(config, load_catalogue()))\n"


@pytest.mark.slow
def test_a_job_plans_nothing(nano: Clone) -> None:
    """By the command that an executor of Snakemake submits; without the folder in the index it says what to do."""
    folder = str(nano.folder("tokens", "pydocs-stdlib").relative_to(nano.root))
    made = (nano.root / folder / "manifest.json").read_bytes()
    shutil.rmtree(nano.root / folder)
    nano.replace("src/encore/products/catalogue.py", PLANS, '    raise RuntimeError("a job plans")\n')
    assert "a job plans" in nano.nano("-n").output
    job = f"tokens:tokens={folder.rpartition('/')[-1]}"
    alone = ("--mode", "remote", "--nolock", "--no-hooks", "--force", "--cores", "1", "--allowed-rules", "tokens")
    alone += ("--configfile", "config/nano.yaml", "--target-jobs", job)
    nano.snakemake(*alone).succeeded()
    assert (nano.root / folder / "manifest.json").read_bytes() == made
    (nano.root / "results/plan/index.json").unlink()
    assert nano.snakemake(*alone).error().endswith(f"has no {folder}; run snakemake, which plans and writes it")


def test_rules_of_one_folder_are_told_apart_in_a_job_too(nano: Clone) -> None:
    """A start, a pre-trained and a fine-tuned model lie next to each other; a job must not make another one's."""
    model = nano.folder("models", "tiny+ict-s0").name
    alone = ("--mode", "remote", "--nolock", "--no-hooks", "-n", "-F", "--cores", "1", "--allowed-rules", "pretrain")
    done = nano.snakemake(*alone, "--configfile", "config/nano.yaml", "--target-jobs", f"pretrain:pretrained={model}")
    assert set(re.findall(r"wildcards: (.*)", done.succeeded())) == {f"pretrained={model}"}

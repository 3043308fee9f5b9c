"""What Snakemake plans to fetch, and that nothing of it is on a cluster's nodes or in the embedded default."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.support.clones import Clone, jobs
from tests.support.quick_first import quick_first


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which nothing is ever built, with a run on MS MARCO's own passages next to the shipped ones."""
    clone = Clone.fresh(tmp_path_factory.mktemp("pristine") / "a clone")
    run = yaml.safe_load((clone.root / "config/nano.yaml").read_text())
    for name in ("msmarco-passage", "msmarco-passage-titles"):
        run["scale"]["datasets"][name] = name
    del run["scale"]["finetune"]["triples"]
    run |= {"tables": {}, "lineages": ["bm25", "bert-base+marco-bm25"]}
    (clone.root / "config/marco.yaml").write_text(yaml.safe_dump(run))
    return clone


def planned(clone: Clone, *arguments: str) -> Counter[str]:
    output = clone.snakemake("--profile", "local", "-n", *arguments).succeeded()
    return Counter(job.split()[0] for job in jobs(output))


def target(clone: Clone, name: str) -> str:
    return clone.encore("targets", name).succeeded().strip()


@pytest.mark.slow
def test_the_embedded_default_fetches_nothing(pristine: Clone) -> None:
    rules = planned(pristine)
    assert rules["collection"] > 0
    assert not {rule for rule in rules if rule.startswith("fetch_")}


FETCHED = {
    ("squad", "msmarco-teacher-t2", "bookcorpus", "beir-fiqa"): {
        "fetch_source squad",
        "fetch_source msmarco-teacher-t2",
        "fetch_source bookcorpus",
        "collection bookcorpus",
        "fetch_ir_datasets beir-fiqa",
        "collection beir-fiqa",
    },
    ("nq-open", "trivia-qa"): {
        "fetch_source dpr-wikipedia",
        "fetch_source dpr-questions",
        "fetch_source dpr-training-nq",
        "fetch_source dpr-training-trivia",
        "collection nq-open",
        "collection trivia-qa",
    },
}


@pytest.mark.parametrize("named", quick_first(map(" ".join, FETCHED)))
def test_a_source_is_one_job_and_fetched_before_a_dataset_is_made(pristine: Clone, named: str) -> None:
    """What two datasets share is fetched once."""
    names = tuple(named.split())
    asked = [target(pristine, name) for name in names]
    assert jobs(pristine.snakemake("--profile", "local", "-n", *asked).succeeded()) == FETCHED[names]


@pytest.mark.slow
def test_everything_is_fetched_with_one_command(pristine: Clone) -> None:
    run = ("--configfile", "config/marco.yaml")
    fetched = {"fetch_ir_datasets": 1, "fetch_source": 2}  # the passages, their titles, and the official triples
    assert planned(pristine, "fetch", *run) == Counter(fetch=1, **fetched)
    everything = planned(pristine, *run)
    assert {rule: everything[rule] for rule in fetched} == fetched
    assert everything["negatives_from_file"] == 1
    assert everything["finetune"] > 0
    assert not (Path(pristine.root) / "data").exists()


@pytest.mark.slow
def test_what_has_to_be_brought_by_hand_is_planned_with_and_asked_for_before_the_first_job(pristine: Clone) -> None:
    run = yaml.safe_load((pristine.root / "config/marco.yaml").read_text())
    run["datasets"] = {
        "by-hand": {"kind": "beir", "path": "data/by-hand", "access": "write to its owner", "splits": {}}
    }
    run["datasets"]["by-hand"]["splits"]["test"] = {"role": "test", "measures": {"nDCG@10": "nDCG@10"}}
    run |= {"lineages": ["bm25"]}
    (pristine.root / "config/hand.yaml").write_text(yaml.safe_dump(run))
    assert planned(pristine, "--configfile", "config/hand.yaml")["collection"] > 0
    refused = pristine.snakemake("--profile", "local", "--configfile", "config/hand.yaml")
    assert refused.error() == "error: data/by-hand is missing, which cannot be downloaded: write to its owner"
    assert not list((pristine.root / "results").glob("collections/*"))

"""Every numbered table of the papers, and the claims, are planned as targets: embedded, and at the papers' scale."""

from collections import Counter

import pytest
from clones import REPOSITORY, Clone, exact_jobs

from encore.project import load_catalogue


@pytest.fixture(scope="module")
def targets() -> list[str]:
    names = load_catalogue(REPOSITORY / "config").tables
    papers = ("bow/", "costa/", "cpdae/", "tct_colbert/", "two_tower/")
    return [f"results/tables/{name}.csv" for name in names if name.startswith(papers)]


@pytest.mark.parametrize("run", ["config", "paper"])
def test_every_table_of_the_papers_and_every_claim_is_planned(clone: Clone, targets: list[str], run: str) -> None:
    assert len(targets) == 28
    wanted = [*targets, "results/claims.csv", "results/claims_printed.csv"]
    done = clone.snakemake("-n", "--profile", "local", "--configfile", f"config/{run}.yaml", "--", *wanted)
    planned = Counter(job.split()[0] for job in exact_jobs(done.succeeded()))
    assert planned["table"] == 28
    assert planned["claims"] == planned["claims_printed"] == 1
    assert ("fetch_ir_datasets" in planned) == (run == "paper")
    remembered = (clone.root / "results/plan/asked.txt").read_text().splitlines()
    assert set(remembered) == {*(target.removesuffix(".csv") for target in targets), "results/claims"}


@pytest.mark.parametrize("run", ["config", "paper"])
def test_every_figure_is_planned(clone: Clone, run: str) -> None:
    """Those of the papers, and our own of few labels; each figure once, from probes, scores and models."""
    names = list(load_catalogue(REPOSITORY / "config").figures)
    wanted = [f"results/figures/{name}.png" for name in names]
    done = clone.snakemake("-n", "--profile", "local", "--configfile", f"config/{run}.yaml", "--", *wanted)
    planned = Counter(job.split()[0] for job in exact_jobs(done.succeeded()))
    assert planned["draw"] == len(names) == 9
    # Coverage and words of six models each (figures 2 and 4, 3 and 5 share five), two maps, one text.
    assert planned["probe"] == 6 + 6 + 2 + 1
    assert planned["grow"] == {"config": 1, "paper": 2}[run]  # pydocs has one set of queries for both splits
    assert "table" not in planned

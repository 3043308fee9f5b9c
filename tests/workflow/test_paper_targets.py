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

"""Every numbered table of the papers, and the claims, are planned as targets: embedded, and at the papers' scale."""

from collections import Counter

import pytest

from encore.products.catalogue import load_catalogue
from tests.support.clones import REPOSITORY, Clone, exact_jobs


@pytest.mark.parametrize("run", ["config", "paper"])
@pytest.mark.slow
def test_every_table_and_figure_of_the_papers_and_every_claim_is_planned(clone: Clone, run: str) -> None:
    """Each table once; each figure once, and our own of few labels and of growing collections."""
    catalogue = load_catalogue(REPOSITORY / "config")
    papers = ("bow/", "costa/", "cpdae/", "tct_colbert/", "two_tower/")
    tables = [f"results/tables/{name}" for name in catalogue.tables if name.startswith(papers)]
    figures = [f"results/figures/{name}" for name in catalogue.figures]
    assert (len(tables), len(figures)) == (28, 10)
    wanted = [f"{name}.csv" for name in (*tables, "results/claims")]
    wanted += [f"{name}.png" for name in figures]
    done = clone.snakemake("-n", "--profile", "local", "--configfile", f"config/{run}.yaml", "--", *wanted)
    planned = Counter(job.split()[0] for job in exact_jobs(done.succeeded()))
    assert (planned["table"], planned["draw"]) == (28, 10)
    assert planned["claims"] == 1
    assert ("fetch_ir_datasets" in planned) == (run == "paper")
    # Coverage and words of six models each (figures 2 and 4, 3 and 5 share five), two maps, one text.
    assert planned["inspect_model"] == 6 + 6 + 2 + 1
    # TCT's figure grows the passages without titles for two splits, ours those with titles; pydocs is all of these.
    assert planned["nested_corpora"] == {"config": 1, "paper": 3}[run]
    written = {path.name for path in (clone.root / "results").rglob("*")}
    assert written == {".gitignore"}, "a dry run only plans"

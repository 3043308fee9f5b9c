"""The nano run over a folder of the user's in BEIR's layout, as a clone's configuration has it."""

from pathlib import Path

from tests.support.clones import Clone, exact_jobs

MEASURES = ", ".join(f'"{name}": "{name}"' for name in ("RR@10", "R@100", "R@1000", "nDCG@10"))
DECLARED = f"""
datasets:
  mine:
    kind: beir
    path: data/mine
    splits:
      test: {{role: test, measures: {{{MEASURES}}}}}
      graded: {{role: test, file: qrels/test.tsv, measures: {{{MEASURES}}}}}
"""


def declare(clone: Clone) -> Path:
    """Let nano search data/mine, by BM25 alone; gives the folder, whose ``qrels`` is made."""
    clone.replace("config/nano.yaml", "titles: pydocs-stdlib", "titles: mine")
    clone.replace("config/nano.yaml", '[bm25, none, "BM25 negatives: control", ict]', "[bm25]")
    with (clone.root / "config/nano.yaml").open("a") as file:
        file.write(DECLARED)
    folder = clone.root / "data/mine"
    (folder / "qrels").mkdir(parents=True)
    return folder


def planned(clone: Clone) -> str:
    """The manifest of the user's collection, as a run plans it."""
    (job,) = (job for job in exact_jobs(clone.nano("-n").succeeded()) if job.startswith("collection mine"))
    return f"results/collections/{job.split()[1]}/manifest.json"

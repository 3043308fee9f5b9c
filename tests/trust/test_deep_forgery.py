"""What was forged together with all that was made from it: an audit finds nothing, a deep one does."""

import gzip
import json
import re
import sys
from pathlib import Path

import pytest
from forgeries import raise_scores

from encore.storage import manifest
from encore.storage.files import write_bytes, write_json
from tests.support.clones import NANO, REPOSITORY, Clone, Done

CONFIG = NANO[-2:]


def described_anew(folder: Path, *names: str) -> None:
    """The manifest says what these files are now."""
    record = json.loads((folder / manifest.MANIFEST).read_text())
    record["outputs"] |= {name: manifest.describe(folder / name) for name in names}
    write_json(folder / manifest.MANIFEST, record)


@pytest.mark.everything
def test_a_run_that_was_forged_and_evaluated_scores_and_a_runs_text(nano: Clone) -> None:
    """BM25's results get the mined model's name, and its scores are raised; Snakemake makes everything above from them.

    The text of a run has another name in each line, which no measure sees.
    """
    config = ("--config", CONFIG[1])

    def audit(*flags: str) -> Done:
        """In a process of its own: this one may remember the scores of before."""
        environment = {"PYTHONPATH": str(REPOSITORY / "src")}
        return nano.run(sys.executable, "-m", "encore.commands", "audit", *config, *flags, env=environment)

    better = next((nano.root / "results/runs").glob("bm25-*/*.test-*"))
    forged = next((nano.root / "results/runs").glob("tiny+ict+marco-bm25+marco-hn-*/*.test-*"))
    root = audit().succeeded().split("root ")[1][:64]
    for name in ("run.npz", "run.trec.gz"):
        write_bytes(forged / name, (better / name).read_bytes())
    described_anew(forged, "run.npz", "run.trec.gz")
    renamed = next((nano.root / "results/runs").glob("tiny+control*/*.test-*"))
    lines = gzip.decompress((renamed / "run.trec.gz").read_bytes()).decode().splitlines()
    text = "".join(f"{line.rsplit(' ', 1)[0]} other\n" for line in lines)
    write_bytes(renamed / "run.trec.gz", gzip.compress(text.encode()))
    described_anew(renamed, "run.trec.gz")
    raised = next((nano.root / "results/scores").glob("bm25-*/*.test-*"))
    raise_scores(raised)
    described_anew(raised, "scores.parquet")
    assert "report" in nano.built()

    said = audit().succeeded()
    assert "0 bad" in said
    assert "not made again: models, indexes, runs, scores (--deep)" in said
    assert audit("--root", root).code == 1
    deep = audit("--deep", "--queries", "4")
    assert deep.code == 1
    found = re.findall("^bad: (.*)", deep.output, re.MULTILINE)
    for folder, says in (
        (forged, "/run.npz: 4 of 4 queries are answered otherwise"),
        (renamed, "/run.trec.gz: is not the text of run.npz"),
        (raised, "/scores.parquet: "),
    ):
        assert [each for each in found if f"{folder.relative_to(nano.root)}{says}" in each], found
    assert len(found) == 3
    assert "NOT audited" not in deep.output
    said = r"deep: 6 runs evaluated again, ([\d,]+) of their queries also by trec_eval; 9 searched again .*"
    assert int(re.search(said, deep.output)[1].replace(",", "")) > 100

"""What was forged together with all that was made from it: an audit finds nothing, a deep one does."""

import json
import re
import sys

import pytest

from encore.storage import manifest
from encore.storage.files import write_bytes, write_json
from tests.support.clones import NANO, REPOSITORY, Clone, Done

CONFIG = NANO[-2:]


@pytest.mark.everything
def test_a_run_that_was_forged_and_evaluated(nano: Clone) -> None:
    """BM25's results get the mined model's name, and Snakemake makes everything above from them."""
    config = ("--config", CONFIG[1])

    def audit(*flags: str) -> Done:
        """In a process of its own: this one may remember the scores of before."""
        environment = {"PYTHONPATH": str(REPOSITORY / "src")}
        return nano.run(sys.executable, "-m", "encore.commands", "audit", *config, *flags, env=environment)

    better = next((nano.root / "results/runs").glob("bm25-*/*.test-*"))
    forged = next((nano.root / "results/runs").glob("tiny+ict+marco-bm25+marco-hn-*/*.test-*"))
    root = audit().succeeded().split("root ")[1][:64]
    record = json.loads((forged / manifest.MANIFEST).read_text())
    for name in ("run.npz", "run.trec.gz"):
        write_bytes(forged / name, (better / name).read_bytes())
        record["outputs"][name] = manifest.describe(forged / name)
    write_json(forged / manifest.MANIFEST, record)
    assert "report" in nano.built()

    said = audit().succeeded()
    assert "0 bad" in said
    assert "not made again: models, indexes, runs, scores (--deep)" in said
    assert audit("--root", root).code == 1
    deep = audit("--deep", "--queries", "4")
    assert deep.code == 1
    (bad,) = re.findall("^bad: .*", deep.output, re.MULTILINE)
    assert f"{forged.relative_to(nano.root)}/run.npz: 4 of 4 queries are answered otherwise" in bad
    said = r"deep: 6 runs evaluated again, ([\d,]+) of their queries also by trec_eval; 9 searched again .* 0 not"
    assert int(re.search(said, deep.output)[1].replace(",", "")) > 100

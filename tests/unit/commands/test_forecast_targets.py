"""What ``encore preflight`` can be asked about, and what it says of anything else."""

import re
from pathlib import Path

import pytest

from encore.errors import EncoreError
from tests.support.small_forecast import estimate, planned

MADE = {"table", "figure", "curves", "draw", "claims", "report"}


def test_any_target_can_be_asked_about(bare: Path) -> None:
    plan = planned()
    for names, rules in {
        ("results/tables/table1.md",): {"table"},
        ("table1", "results/figures/table1.svg"): {"table", "figure"},
        ("results/figures/table1.svg",): {"figure"},
        ("pretraining",): {"curves"},
        ("label_efficiency",): {"draw"},
        ("report",): {"report"},
    }.items():
        made = [job for job in estimate(plan, tables=names).jobs if job.rule in MADE]
        assert {job.rule for job in made} == rules, names
        assert {job.artifact.folder.split(".")[0] for job in made} == {job.artifact.folder for job in made}
    assert {job.rule for job in estimate(plan, tables=("pretraining",)).jobs} >= {"pretrain", "curves"}
    (model,) = (job.artifact for job in estimate(plan).jobs if job.rule == "pretrain")
    assert estimate(plan, tables=(model.manifest,)).jobs[-1].artifact == model


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "results/claims.cvs": "is not a file of results/; did you mean results/claims.csv",
        "corpus_size": "there is no table, figure or target 'corpus_size'; did you mean corpus_growth?",
    }.items(),
)
def test_what_nothing_makes_is_refused_with_what_is_near(bare: Path, name: str, words: str) -> None:
    with pytest.raises(EncoreError, match=re.escape(words)):
        estimate(planned(), tables=(name,))

"""Zero-shot search: which models may be tested on a set that was made of a collection that others learn from."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan.artifacts import scores
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.targets import lineage_targets
from tests.support.shipped import run_file

ROOT = Path(__file__).parents[3]
DEFAULT = run_file("config")


@pytest.fixture
def plan(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """The embedded default with other steps."""
    monkeypatch.chdir(ROOT)

    def planned(**steps: Any) -> Plan:
        content = copy.deepcopy(DEFAULT)
        content["scale"]["steps"] |= steps
        return Plan(RunConfig.model_validate(content), catalogue)

    return planned


ZERO_SHOT = "bert-base+bow+bow-beir"


def test_a_model_of_the_standard_library_is_tested_on_each_package(plan: Callable[..., Plan]) -> None:
    made = plan()
    for name in ("beir-nfcorpus", "beir-scifact", "beir-arguana", "beir-scidocs", "beir-fiqa", "beir-trec-covid"):
        scores = made.scores(ZERO_SHOT, 0, name, "test")
        assert scores.name.startswith("pydocs-")
        assert scores.inputs["run"].inputs["collection"].spec["folder"] == scores.name.partition(".")[0]


@pytest.mark.parametrize(
    "steps",
    [
        {"bow-beir": {"collection": "pydocs", "negatives": "bm25", "systems_file": None}},
        {"bow-beir": {"collection": "pydocs-documents", "negatives": "bm25", "systems_file": None}},
        {"bow-beir": {"collection": "squad-reqa", "negatives": "bm25", "systems_file": None, "train_split": "train-1"}},
    ],
)
def test_a_model_that_may_have_learned_from_a_set_is_not_tested_on_it(plan: Callable[..., Plan], steps: Any) -> None:
    with pytest.raises(EncoreError, match="or its like; it is for zero-shot search"):
        plan(**steps).scores(ZERO_SHOT, 0, "beir-scifact", "test")


def test_a_teacher_counts_too(plan: Callable[..., Plan]) -> None:
    teacher_outputs = {"loss": "kl-pairwise", "teachers": ["bert-base+marco-bm25"]}
    made = plan(**{"bow-beir": {**DEFAULT["scale"]["steps"]["bow-beir"], **teacher_outputs}})
    assert not scores.tested_fairly(made, ZERO_SHOT, "beir-scifact", "test")


def test_bm25_is_tested_on_all(plan: Callable[..., Plan]) -> None:
    assert plan().scores("bm25", None, "beir-scifact", "test")


def test_a_set_is_tested_on_only_where_a_table_asks_for_it(plan: Callable[..., Plan]) -> None:
    targets = lineage_targets(plan(), "bert-base+ict~temperature=0.1+marco-bm25")
    assert [path for path in targets if "/pydocs." in path]
    assert not [path for path in targets if "/pydocs-numpy." in path or "/pydocs-sympy." in path]

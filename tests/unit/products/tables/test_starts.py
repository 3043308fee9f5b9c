"""What is said below a table of the models behind it follows from the run's plan, whatever the run is."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.kinds import BY_RULE
from encore.products.tables.entries import Table
from encore.products.tables.plan import table_plan
from tests.support.shipped import plan_with, run_file

ROOT = Path(__file__).parents[4]
RR = {"id": "rr", "label": "RR@10", "dataset": "msmarco-passage", "split": "test", "measure": "RR@10"}


@pytest.fixture(autouse=True)
def repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def notes_of(
    catalogue: Catalogue,
    rows: dict[str, str],
    scale: dict[str, Any] | None = None,
    proxy_data: bool | str = True,
    **column: str,
) -> str:
    """The notes of a table of objectives, by label, in nano."""
    kept, content = deepcopy(catalogue), run_file("nano")
    entries = [{"id": label, "label": label, "system": name, "role": "objective"} for label, name in rows.items()]
    kept.tables["t"] = Table.model_validate({"title": "T", "rows": entries, "columns": [RR | column]})
    content |= {"tables": {"t": "all"}, "proxy_data": proxy_data, "scale": content["scale"] | (scale or {})}
    return " ".join(table_plan(Plan(RunConfig.model_validate(content), kept), "t").notes)


@pytest.mark.parametrize(
    ("run", "table", "start"),
    [
        ("nano", "table1", "Every model starts from random weights with word embeddings of the corpus (LSA)."),
        (
            "config",
            "table1",
            "Models start: No pre-training (random start) from random weights; 9 rows from one model for all seeds "
            "(micro-lsa+mlm-start).",
        ),
        ("paper", "league", "26 rows from bert-base-uncased."),
        ("config", "reqa-1", "Every model starts from random weights."),
    ],
)
def test_what_models_start_from_is_that_of_the_run(catalogue: Catalogue, run: str, table: str, start: str) -> None:
    said = " ".join(table_plan(plan_with(catalogue, run), table).notes)
    assert start in said
    assert "masked language model" not in said


def test_no_note_that_is_written_down_says_what_a_run_does(catalogue: Catalogue) -> None:
    """What was said there of models was untrue in other runs."""
    for name, table in catalogue.tables.items():
        for note in table.notes:
            assert not any(words in note for words in ("begins with", "starts at random", "No model", "same budget")), (
                name
            )


def test_two_names_of_one_model_are_said_where_they_are(catalogue: Catalogue) -> None:
    same = "Enhanced decoding and RetroMAE are one model here, by different names."
    assert same in table_plan(plan_with(catalogue, "config"), "league").notes
    assert same not in table_plan(plan_with(catalogue, "paper"), "league").notes


def test_what_is_in_place_of_a_released_model_is_said(catalogue: Catalogue) -> None:
    rows = {"SEED": "seed-released+marco-bm25"}
    said = notes_of(catalogue, rows, {"replace_prefix": {"seed-released": "bert-base+seed"}})
    assert "In place of what the table names (`replace_prefix`): SEED with bert-base+seed for seed-released." in said


def test_each_published_encoder_of_the_catalogue_is_named_pinned_by_a_digest_or_not(catalogue: Catalogue) -> None:
    released = [name for name in catalogue.backbones if name.endswith("-released")]
    assert len(released) > 8
    for name in released:
        assert f"(backbone {name}" in notes_of(catalogue, {"It": name}, proxy_data="own"), "SEED's file has no digest"


def test_how_many_results_are_ranked_again_is_the_run_s(catalogue: Catalogue) -> None:
    said = notes_of(catalogue, {"CE": "bm25-cross-encoder"})
    assert "Ranked again: bm25-cross-encoder with the first 10 of bm25." in said


def test_what_no_model_learned_from_is_said_only_where_it_is_so(catalogue: Catalogue) -> None:
    untaught = "No model learned here from a query of a collection that it searches."
    datasets = {"datasets": run_file("nano")["scale"]["datasets"] | {"beir-scifact": "pydocs-numpy"}}
    apart = {"ICT": "bert-base+ict+bow-beir"}
    steps = {"steps": {"bow-beir": {"collection": "pydocs-python", "negatives": "bm25", "systems_file": None}}}
    assert untaught in notes_of(catalogue, apart, datasets | steps, dataset="beir-scifact", measure="nDCG@10")
    assert untaught not in notes_of(catalogue, {"ICT": "bert-base+ict+marco-bm25"})
    assert "No model here was fine-tuned." in notes_of(catalogue, {"ICT": "bert-base+ict"})


def test_how_much_of_a_document_is_read_is_the_run_s(catalogue: Catalogue) -> None:
    said = " ".join(table_plan(plan_with(catalogue, "config"), "documents").notes)
    assert "pydocs-documents: models read the first 160 tokens of a document (FirstP)." in said


def test_claims_of_papers_are_not_judged_on_the_user_s_own_data(catalogue: Catalogue) -> None:
    own = plan_with(catalogue, "nano", {"proxy_data": "own"})
    with pytest.raises(EncoreError, match="claims are of papers, and this run is of your own data"):
        BY_RULE["claims"].slice(own, "claims")

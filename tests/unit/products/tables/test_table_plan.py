"""A table's slice of the plan: one run for each system, dataset and queries, names filled, and what is said below."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from encore.config.run import RunConfig
from encore.config.systems import Rerank
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.figures.plan import curves_plan
from encore.products.tables.entries import Table
from encore.products.tables.plan import has_figure, table_plan
from encore.products.tables.sources.kinds import SOURCES
from tests.support.shipped import run_file
from tests.support.small_reads import table_reads, table_scores

ROOT = Path(__file__).parents[4]
NANO = run_file("nano")
RR = {"id": "rr", "label": "RR@10", "dataset": "msmarco-passage", "split": "test", "measure": "RR@10"}
ICT = {"id": "ict", "label": "ICT", "system": "bert-base+ict+marco-bm25"}
BM25 = {"id": "bm25", "label": "BM25", "system": "bm25"}


@pytest.fixture
def make(catalogue, monkeypatch):
    """A plan of nano with one table, ``t``, of these rows and columns."""
    monkeypatch.chdir(ROOT)

    def plan(rows, columns, *, seeds=(0,), datasets=None, **fields):
        kept = deepcopy(catalogue)
        kept.tables["t"] = Table.model_validate({"title": "T", "rows": rows, "columns": columns, **fields})
        scale = NANO["scale"] | {"datasets": NANO["scale"]["datasets"] | (datasets or {})}
        content = NANO | {"tables": {"t": "all"}, "seeds": list(seeds), "scale": scale}
        return Plan(RunConfig.model_validate(content), kept)

    return plan


def cells(plan: Plan) -> dict[tuple[str, str], dict[str, Any]]:
    rows = table_plan(plan, "t").dumped()["rows"]
    return {(row["id"], column): cell for row in rows for column, cell in row["cells"].items()}


def notes_besides_start(plan: Plan) -> list[str]:
    return [note for note in table_plan(plan, "t").dumped()["notes"] if not note.startswith("Every model starts from")]


def folders(cell: dict[str, Any]) -> list[str]:
    return [read["folder"] for read in cell["reads"]]


def test_columns_that_share_queries_share_a_run_and_others_have_their_own(make):
    columns = [
        RR,
        RR | {"id": "r100", "label": "R@100", "measure": "R@100"},
        RR | {"id": "doc", "dataset": "msmarco-document", "measure": "RR@100"},
    ]
    plan = make([BM25, ICT], columns, seeds=(0, 1), datasets={"msmarco-document": "pydocs-documents"})
    found = cells(plan)
    assert folders(found["ict", "rr"]) == folders(found["ict", "r100"])
    assert [read["seed"] for read in found["ict", "rr"]["reads"]] == [0, 1]
    assert [read["seed"] for read in found["bm25", "doc"]["reads"]] == [None]
    assert folders(found["ict", "doc"])[1].startswith("results/scores/tiny+ict+marco-bm25-s1-")
    assert "/pydocs-documents.test-" in folders(found["ict", "doc"])[1]
    assert [artifact.stage for artifact in table_reads(plan, "t")] == ["evaluate"] * 6
    assert table_plan(plan, "t").dumped()["dataset_labels"] == {
        "msmarco-passage": "pydocs-stdlib",
        "msmarco-document": "pydocs-documents",
    }


def test_a_row_may_have_another_model_in_each_column(make):
    rows = [
        {"id": "ict", "label": "ICT", "system": "bert-base+ict+{recipe}"},
        {"id": "mlm", "label": "MLM", "system": "bert-base+mlm+{recipe}", "vars": {"recipe": "marco-bm25"}},
    ]
    columns = [
        RR | {"id": name, "vars": {"recipe": recipe}}
        for name, recipe in (("first", "marco-bm25"), ("second", "marco-bm25+marco-hn"))
    ]
    plan = make(rows, columns)
    found = {address: cell["system"] for address, cell in cells(plan).items()}
    assert found == {
        ("ict", "first"): "tiny+ict+marco-bm25",
        ("ict", "second"): "tiny+ict+marco-bm25+marco-hn",
        ("mlm", "first"): "tiny+mlm+marco-bm25",
        ("mlm", "second"): "tiny+mlm+marco-bm25",
    }
    steps = [(step["label"], step["lineage"]) for step in curves_plan(plan).dumped()["rows"]]
    assert steps == [("ICT", "tiny+ict"), ("MLM", "tiny+mlm")]


def test_a_copied_row_and_an_empty_cell_are_never_run_and_say_why(make, tmp_path, monkeypatch):
    monkeypatch.setattr("encore.products.tables.reported.PAPERS", tmp_path)
    (tmp_path / "encore").mkdir()
    printed = "row_label,setting,dataset,metric,value\nANCE,top 10,msmarco-passage,MRR@10,.33\n"
    (tmp_path / "encore/t.csv").write_text(printed)
    rows = [
        {"id": "ance", "label": "ANCE", "reported_only": "Xiong et al. 2021", "reported_setting": "top {cut}"},
        ICT | {"not_applicable": {"r100": "its run is 10 deep"}},
        BM25,
    ]
    columns = [RR, RR | {"id": "r100", "label": "R@100", "measure": "R@100"}]
    columns = [column | {"vars": {"cut": 10}, "reported_metric": "MRR@10"} for column in columns]
    plan = make(rows, columns, reported="t.csv")
    found = cells(plan)
    assert folders(found["ance", "rr"]) == folders(found["ict", "r100"]) == []
    assert len(table_scores(plan, "t")) == 2
    assert found["ance", "rr"]["reported"] == {
        "row_label": "ANCE",
        "setting": "top 10",
        "dataset": "msmarco-passage",
        "metric": "MRR@10",
    }
    notes = notes_besides_start(plan)
    assert notes == ["Copied, not run: ANCE from Xiong et al. 2021.", "ICT has no R@100: its run is 10 deep."]
    for wrong, says in ((printed.replace("ANCE", "ANCE2"), "no number for it under 'ANCE'"), ("a;b\n", "no column")):
        (tmp_path / "encore/t.csv").write_text(wrong)
        with pytest.raises(EncoreError, match=says):
            table_plan(plan, "t").dumped()


def test_a_row_says_how_it_comes_about(make, tmp_path, monkeypatch):
    """From the plan: what is copied, and what starts from weights of others, also as a part of a system."""
    monkeypatch.setattr("encore.products.tables.reported.PAPERS", tmp_path)
    (tmp_path / "encore").mkdir()
    (tmp_path / "encore/t.csv").write_text("row_label,dataset,metric,value\nANCE,msmarco-passage,RR@10,.33\n")
    released = {"id": "tct", "label": "TCT", "system": "tct-released"}
    rows = [BM25, ICT, released, {"id": "ance", "label": "ANCE", "reported_only": "Xiong et al. 2021"}]
    plan = make([*rows, {"id": "r", "label": "R", "system": "reranked"}], [RR], reported="t.csv")
    reranked = Rerank(kind="rerank", first="tct-released", ranker="bert-base+cross-encoder", depth=10)
    plan.catalogue.systems["reranked"] = reranked
    slice_ = table_plan(plan, "t").dumped()
    assert {row["id"]: row.get("origin", "run") for row in slice_["rows"]} == {
        "bm25": "run",
        "ict": "run",
        "tct": "run from released weights",
        "ance": "printed only",
        "r": "run from released weights",
    }
    assert "Run from released weights: TCT, R." in slice_["notes"]


def test_a_mistake_names_table_row_and_column(make):
    with pytest.raises(EncoreError, match=r"^table 't', row 'ict', column 'rr': .*did you mean RR@10"):
        table_plan(make([ICT], [RR | {"measure": "RR@1"}]), "t").dumped()
    with pytest.raises(EncoreError, match=r"^table 't', row 'x', column 'rr': .*unknown step 'itc'"):
        table_plan(make([ICT | {"id": "x", "system": "bert-base+itc"}], [RR]), "t").dumped()


def test_rows_that_answer_different_queries_are_compared_with_nothing(make):
    rows = [ICT | {"vars": {"split": "test"}}, BM25 | {"vars": {"split": "valid"}}]
    columns = [RR | {"split": "{split}"}]
    assert len(table_scores(make(rows, columns), "t")) == 2
    with pytest.raises(EncoreError, match="'ict' and 'bm25' of one setting are compared and answer different queries"):
        table_plan(make(rows, columns, significance={"comparators": ["bm25"]}), "t").dumped()


def test_a_mean_reads_nothing_and_a_loss_reads_models_and_a_statistic_a_collection(make):
    columns = [
        RR,
        {"id": "mean", "label": "Mean", "mean_of": ["rr"]},
        {"id": "loss", "label": "Loss", "held_out": "contrast"},
        {"id": "words", "label": "Words", "dataset": "msmarco-passage", "masked_loss": "mlm"},
        {"id": "spread", "label": "Spread", "dataset": "msmarco-passage", "vectors": "cosine"},
        {"id": "n", "label": "Passages", "dataset": "msmarco-passage", "statistic": "passages"},
    ]
    plain = {"id": "bert", "label": "BERT", "system": "bert-base+marco-bm25"}
    plan = make([BM25, ICT, plain], columns, seeds=(3, 5))
    found = cells(plan)
    assert folders(found["ict", "mean"]) == folders(found["bm25", "loss"]) == []
    assert folders(found["ict", "loss"]) == [
        plan.model(plan.resolve.lineage("bert-base+ict"), seed).folder for seed in (3, 5)
    ]
    ends = [plan.resolve.lineage(name) for name in ("bert-base+ict", "bert-base")]
    for column in ("words", "spread"):
        told = [plan.find(folder).inputs["model"] for row in ("ict", "bert") for folder in folders(found[row, column])]
        assert told == [plan.model(lineage, seed) for lineage in ends for seed in (3, 5)]
        assert folders(found["bm25", column]) == []
    assert folders(found["ict", "n"]) == folders(found["bm25", "n"]) == [plan.collection("pydocs-stdlib").folder]


def test_a_measure_that_counts_further_than_runs_go_is_told(make):
    columns = [RR, RR | {"id": "r100", "measure": "R@100"}, RR | {"id": "r1000", "measure": "R@1000"}]
    for depth, told in ((1000, []), (999, ["R@1000"]), (99, ["R@100, R@1000"])):
        plan = make([ICT, BM25], columns)
        plan.config = plan.config.model_copy(update={"depth": depth})
        said = [f"Runs have {depth} ranks (`depth`), which is as far as {names} can count." for names in told]
        assert notes_besides_start(plan) == said


def test_what_stands_for_a_withdrawn_dataset_is_said_where_it_is_used(make):
    plan = make([ICT], [RR])
    plain = notes_besides_start(plan)
    substitute = plan.resolve.dataset("pydocs-stdlib").fields.model_copy(update={"note": "Books stand for books."})
    plan = make([ICT], [RR])
    plan.resolve.datasets["pydocs-stdlib"] = replace(plan.resolve.dataset("pydocs-stdlib"), fields=substitute)
    assert (plain, notes_besides_start(plan)) == ([], ["Books stand for books."])
    assert plan.collection("pydocs-stdlib") == make([ICT], [RR]).collection("pydocs-stdlib")


def test_a_large_table_is_planned_once(make, monkeypatch):
    """12 rows by 10 columns, each column with a model of its own: 360 runs under three seeds."""
    rows = [{"id": f"r{row}", "label": "R", "system": f"bert-base+ict~steps={row + 101}+{{ft}}"} for row in range(12)]
    columns = [
        RR | {"id": f"c{column}", "vars": {"ft": f"marco-bm25~steps_per_epoch={column + 101}"}} for column in range(10)
    ]
    plan = make(rows, columns, seeds=(0, 1, 2))
    asked, reads = [], SOURCES["measure"].reads
    monkeypatch.setattr(SOURCES["measure"], "reads", lambda *request: (asked.append(request), reads(*request))[1])
    table_plan(plan, "t").dumped()
    assert len(asked) == 12 * 10
    assert len(table_reads(plan, "t")) == 12 * 10 * 3
    assert len(asked) == 12 * 10, "what a table reads is known from its plan"


def test_a_figure_needs_an_objective_that_is_run_and_compared_with_its_control(make):
    rows = [ICT | {"role": "objective"}, {"id": "more", "label": "M", "system": "bert-base+control", "role": "control"}]
    compared, primary = {"significance": {"comparators": ["more"]}}, RR | {"primary": True}
    assert has_figure(table_plan(make(rows, [primary], **compared), "t"))
    assert not has_figure(table_plan(make(rows, [RR], **compared), "t"))
    assert not has_figure(table_plan(make(rows, [primary]), "t"))
    assert not has_figure(table_plan(make(rows, [primary], significance={"comparators": ["ict"]}), "t"))
    unrun = [rows[0] | {"not_applicable": {"rr": "no run"}}, rows[1]]
    assert not has_figure(table_plan(make(unrun, [primary], **compared), "t"))

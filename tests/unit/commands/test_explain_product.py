"""From a claim or a figure's line to bytes."""

import argparse
import json
from pathlib import Path

import pytest

from encore.commands import chain, explain
from encore.errors import EncoreError
from encore.plan.artifact import upstream
from encore.products.catalogue import load_plan
from encore.products.claims.contrasts import Address
from encore.products.explained import explanations
from encore.products.figures.plan import figure_cells, figure_plan
from encore.products.tables.plan import table_plan

FIGURE = "bow/figure2"
DRAWN = f"results/figures/{FIGURE}.png"
CLAIMS = "results/claims.csv"


@pytest.fixture(scope="module")
def plan():
    return load_plan(Path("config/nano.yaml"))


def chained(plan, reads):
    return {link.artifact.folder for link in chain.of_reads(plan, reads)}


def test_a_claim_is_told_with_every_cell_that_it_rests_on_and_all_behind_them(plan):
    (told,) = explanations(plan, CLAIMS, "c38")
    assert told.title.startswith("C38 (costa, section 5.1 and table 1; the table marks no test against PROP")
    assert "): COSTA is significantly above" in told.title
    asked = {str(Address("costa/table1", "BM25 negatives", row, "mrr10")) for row in ("costa", "seed", "prop")}
    assert asked <= {line.strip() for line in told.lines}
    rows = table_plan(plan, "costa/table1").dumped()["rows"]
    read = next(row for row in rows if row["id"] == "costa")["cells"]["mrr10"]["reads"][0]["folder"]
    assert {artifact.folder for artifact in upstream([plan.find(read)])} <= chained(plan, told.reads)


def test_a_claim_shows_its_verdict_once_it_was_judged(plan, tmp_path, monkeypatch):
    (tmp_path / "config").symlink_to(Path("config").resolve())
    monkeypatch.chdir(tmp_path)
    before = explanations(plan, CLAIMS, "C38")[0].lines
    Path("results").mkdir()
    Path("results/claims.csv").write_text("id,verdict,p\nC01,holds,\nC38,too few seeds,0.25\n")
    assert explanations(plan, CLAIMS, "C38")[0].lines == ["  claims: verdict too few seeds, p 0.25", *before]


def test_a_line_of_a_figure_is_told_with_what_it_read(plan):
    row = figure_plan(plan, FIGURE).dumped()["rows"][0]
    (told,) = explanations(plan, DRAWN, row["label"])
    assert told.title == f"{FIGURE}: {row['label']}, {row['system']}"
    read = [plan.find(folder) for folder in row["reads"]]
    assert chained(plan, told.reads) == {artifact.folder for artifact in upstream(read)}


def test_a_point_of_a_figure_is_told_by_its_panel_and_place(plan):
    point, parts = next(iter(figure_cells(plan, FIGURE).items()))
    (told,) = explanations(plan, DRAWN, point.line, point.place, point.panel)
    assert told.reads == [read for part in parts for read in part.reads]
    with pytest.raises(EncoreError, match="choose one with --setting"):
        explanations(plan, DRAWN, point.line, point.place)
    with pytest.raises(EncoreError, match="has no point of 'BERT' at '17'"):
        explanations(plan, DRAWN, "BERT", "17")


@pytest.mark.parametrize(
    ("table", "row", "message"),
    [
        ("table1", "nope", "table 'table1' has no row 'nope'; did you mean none"),
        ("table1", None, "name a row of table 'table1' with --row: bm25, none, control, ict$"),
        ("table1", "ict", "name a column of table 'table1' with --column: rr10, r100, r1000, ndcg10$"),
        ("results/claims.csv", "C1x", "no claim 'C1x'; did you mean"),
        ("results/claims.csv", None, "name a claim of claims.csv with --row: C01, C02, "),
        (f"results/figures/{FIGURE}.png", None, f"name a line of figure '{FIGURE}' with --row: BERT, "),
        (f"results/figures/{FIGURE}.png", "BERTT", "no line 'BERTT'; did you mean BERT"),
        ("results/figures/bow/figure22.png", "BERT", "no figure 'bow/figure22' in config/papers; did you mean"),
    ],
    ids=["row", "rows", "columns", "claim", "claims", "lines", "line", "figure"],
)
def test_what_is_named_wrongly_is_refused(plan, table, row, message):
    with pytest.raises(EncoreError, match=message):
        explanations(plan, table, row)


def test_a_figure_of_a_table_shows_the_tables_cells(plan):
    (cell,) = explanations(plan, "results/figures/table1.png", "bm25", "rr10")
    assert cell.address["table"] == "table1"


def test_it_is_data_too(plan, capsys, monkeypatch):
    monkeypatch.setattr(explain, "load_plan", lambda config: plan)
    asked = argparse.Namespace(config=None, table="claims.csv", row="C38", setting=None, column=None, json=True)
    assert explain.answer(asked) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["about"].startswith("C38 ")
    assert {link["stage"] for link in said["chain"]} >= {"evaluate", "search", "finetune"}

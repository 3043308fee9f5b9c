"""A table as people see it: Markdown, the terminal, LaTeX, HTML, and the notes below."""

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.products.slices import PROXY_DATA
from encore.products.tables import aligned_text, formats, tidy
from encore.products.tables.table import Table, read_table, write_table
from encore.storage.files import write_json
from encore.storage.manifest import MANIFEST, describe
from tests.support import small_table
from tests.support.small_table import entries_of, notes_of, plan, row_of, table_of, with_costs, write_scores

GOLDEN = Path(__file__).parents[2] / "golden"
GOLDEN_DATA = GOLDEN / "small_table.json"


def test_markdown_is_aligned_and_marks_the_best(tmp_path: Path) -> None:
    text = formats.render(table_of(plan(tmp_path)), "md")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 + 6
    assert len({len(line) for line in rows}) == 1
    best = next(line for line in rows if "ICT" in line)
    assert best.count("**") == 4
    assert "†‡§" in best
    assert "SEED & co\\_1" in text
    assert "40 queries judged (BM25 answered 38)" in text
    assert "does not confirm a paper" in text
    assert "A note of the plan." in text


def test_rows_of_one_label_are_told_apart_by_setting_where_one_answered_fewer(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=1)
    fewer = write_scores(tmp_path / "fewer", 0.1, 5, answered=20)
    cells = {
        name: {**cell, "reads": [{"seed": None, "folder": fewer}]}
        for name, cell in row_of(table, "bm25")["cells"].items()
    }
    table["rows"].append({**row_of(table, "bm25"), "setting": "Other", "cells": cells})
    assert "BM25 [BM25 negatives] answered 38, BM25 [Other] answered 20" in " ".join(table_of(table).footnotes)


def test_a_column_whose_queries_are_one_cluster_is_shown_and_not_tested(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=2)
    for folder in {read["folder"] for row in table["rows"] for cell in row["cells"].values() for read in cell["reads"]}:
        found = scores.read_scores(Path(folder))
        graded = found["graded", "nDCG@10"]
        found["graded", "nDCG@10"] = dataclasses.replace(graded, clusters=["one"] * len(graded.clusters))
        scores.write_scores(Path(folder), found)
        outputs = {scores.FILE: describe(Path(folder) / scores.FILE)}
        write_json(Path(folder) / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})
    made = table_of(table)
    row = next(each for each in made.rows if each.id == "ict")
    assert row.cells["rr"].comparisons.keys() == {"none", "control", "mlm"}
    assert (row.cells["ndcg"].ours is not None, row.cells["ndcg"].comparisons) == (True, {})
    note = "nDCG@10: nearly all queries of Python documentation, split graded are one cluster, so nothing is tested."
    assert note in made.footnotes


def test_the_terminal_sees_no_markup_and_the_same_columns(tmp_path: Path) -> None:
    write_table(tmp_path / "t.json", table_of(plan(tmp_path)))
    shown = aligned_text.show_table(tmp_path, "t", bold="{}")
    rows = [line for line in shown.splitlines() if line.startswith("|") and "SEED" not in line]
    assert "**" not in shown
    assert len({len(line) for line in rows}) == 1
    assert str(tmp_path / "t.csv") in shown
    with pytest.raises(EncoreError, match="is missing"):
        aligned_text.show_table(tmp_path, "other")


def test_one_seed_is_said_below_the_table(tmp_path: Path) -> None:
    notes = notes_of(table_of(plan(tmp_path, seeds=1)))
    assert any("about these checkpoints, not about the objectives" in note for note in notes)
    assert any("needs 5 seeds" in note for note in notes)


def test_latex_has_whole_rows_and_no_bare_specials(tmp_path: Path) -> None:
    text = formats.render(table_of(plan(tmp_path)), "tex")
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0].strip().splitlines()
    rows = [line for line in body if line.endswith(r"\\") and "multicolumn" not in line]
    assert len(rows) == 1 + 6
    assert {line.replace(r"\&", "").count("&") for line in rows} == {4}
    assert r"SEED \& co\_1" in text
    assert r"\textsuperscript{$\dagger$$\ddagger$\S{}}" in text
    assert not set(text) & set("†‡§±−’“”")
    assert r"\caption{A $<$small$>$ table}" in text


def test_tables_that_papers_number_alike_have_labels_of_their_own(tmp_path: Path) -> None:
    own, theirs = plan(tmp_path), plan(tmp_path, paper="bow")
    assert r"\label{tab:table1}" in formats.render(table_of(own), "tex")
    assert r"\label{tab:bow:table1}" in formats.render(table_of(theirs), "tex")


def test_without_a_control_no_difference_to_it_is_announced(tmp_path: Path) -> None:
    table = plan(tmp_path)
    table["rows"] = [row for row in table["rows"] if row["id"] != "control"]
    shown = table_of(table)
    assert shown.header() == ["", "RR@10", "nDCG@10"]
    assert any("†" in entry.markers for entries in entries_of(shown).values() for entry in entries)


class Page(HTMLParser):
    """Counts the cells of each row and notices anything that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[int] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append(0)
        if tag in {"td", "th"}:
            self.rows[-1] += int(dict(attrs).get("colspan") or 1)
        self.fetched += [name for name, _ in attrs if name in {"src", "href"}]


def test_html_is_one_whole_page(tmp_path: Path) -> None:
    text = formats.render(table_of(plan(tmp_path)), "html")
    page = Page()
    page.feed(text)
    assert page.rows == [5] * 9
    assert page.fetched == []
    assert "A &lt;small&gt; table" in text
    assert "<small>" not in text
    assert "url(" not in text


def test_notes_are_of_what_is_there(tmp_path: Path) -> None:
    """A table that nothing was run for has no data that stand in, nothing best, and no difference to the paper."""
    table = plan(tmp_path)
    told = notes_of(table_of(table))
    assert told[:2] == [PROXY_DATA, "Bold: the best of a column within its setting."]
    printed = tmp_path / "printed.csv"
    printed.write_text("row_label,dataset,metric,value\nSEED & co_1,x,RR@10,0.5\n")
    for row in table["rows"]:
        for cell in row["cells"].values():
            cell["reads"] = []
    row_of(table, "seed")["cells"]["rr"]["reported"] = {"row_label": "SEED & co_1", "dataset": "x", "metric": "RR@10"}
    notes = notes_of(table_of(table | {"reported": str(printed)}))
    assert notes == ["In parentheses: the paper's number.", "A note of the plan."]


def test_how_far_ties_move_a_value_is_written_out_and_not_as_0(tmp_path: Path) -> None:
    said = "Tied scores: no order of them moves any value here"
    tables = [plan(tmp_path / each, seeds=1) for each in ("moved", "fixed")]
    reads = [read for row in tables[1]["rows"] for cell in row["cells"].values() for read in cell["reads"]]
    for folder in {Path(read["folder"]) for read in reads}:
        file = folder / scores.FILE
        pd.read_parquet(file).assign(low=lambda frame: frame["value"]).to_parquet(file)
        outputs = {file.name: describe(file)}
        write_json(folder / MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})
    for table, ending in zip(tables, (" by more than 0.001.", "."), strict=True):
        assert f"{said}{ending}" in notes_of(table_of(table))


def with_everything(tmp_path: Path) -> Table:
    """The small table with costs, and a paper's numbers, words and markers."""
    table, printed = with_costs(tmp_path), tmp_path / "printed.csv"
    lines = ['ICT,marco,MRR@10,.555,"1,2"', "SEED & co_1,marco,MRR@10,OOM,"]
    printed.write_text("\n".join(["row_label,dataset,metric,value,significance_markers", *lines, ""]))
    for row, label in (("ict", "ICT"), ("seed", "SEED & co_1")):
        wanted = {"row_label": label, "dataset": "marco", "metric": "MRR@10"}
        row_of(table, row)["cells"]["rr"]["reported"] = wanted
    row_of(table, "seed").update(reported_only="Lu et al. 2021", role="baseline", origin="printed only")
    table["significance"]["printed"] = {"1": "none", "2": ["none", "control"]}
    return table_of(table | {"reported": str(printed)})


@pytest.mark.parametrize("ending", ["csv", "md", "tex", "html"])
def test_every_format_is_what_it_was_before_there_was_data(tmp_path: Path, ending: str) -> None:
    """The files are those of the renderers that came before the data and the templates, down to the byte."""
    table = read_table(GOLDEN_DATA)
    if ending == "csv":
        tidy.write_tidy(tmp_path / "small_table.csv", table)
        found = (tmp_path / "small_table.csv").read_text()
    else:
        found = formats.render(table, ending)
    assert found == (GOLDEN / f"small_table.{ending}").read_text()


@pytest.mark.filterwarnings("error")
def test_no_label_in_the_csv_is_a_formula_and_all_else_is_as_it_was(tmp_path: Path) -> None:
    table = read_table(GOLDEN_DATA)
    label = table.rows[0].label
    table.rows[0] = table.rows[0].model_copy(update={"label": "=HYPERLINK(A1)"})
    tidy.write_tidy(tmp_path / "small_table.csv", table)
    golden = (GOLDEN / "small_table.csv").read_text()
    assert f",{label}," in golden
    assert (tmp_path / "small_table.csv").read_text() == golden.replace(f",{label},", ",'=HYPERLINK(A1),")


def test_the_data_say_what_they_said(tmp_path: Path) -> None:
    """All of it but what a test over queries computes, which is compared with the formulas elsewhere."""
    tested = {"comparisons", "verdict", "verdict_text", "detectable", "interval", "markers", "unconfirmed", "unprinted"}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key not in tested}
        return [plain(each) for each in value] if isinstance(value, list) else value

    made, golden = (table.model_dump(mode="json") for table in (with_everything(tmp_path), read_table(GOLDEN_DATA)))
    found, expected = (plain({key: table[key] for key in table if key != "footnotes"}) for table in (made, golden))
    assert json.loads(json.dumps(found).replace(f"{tmp_path}/", "")) == expected


def test_formats_are_of_the_data_alone(tmp_path: Path) -> None:
    """What was read back renders to the same bytes, so whoever reads the data can make every format."""
    table = with_everything(tmp_path)
    write_table(tmp_path / "t.json", table)
    again = read_table(tmp_path / "t.json")
    assert again == table
    for ending in formats.PAGES:
        assert formats.render(again, ending) == formats.render(table, ending)


def test_a_cell_says_its_parts_and_why_it_is_empty(tmp_path: Path) -> None:
    content = plan(tmp_path, seeds=2)
    row_of(content, "bm25")["cells"]["ndcg"] |= {"reads": [], "not_applicable": "it has none"}
    row_of(content, "none")["cells"]["ndcg"] |= {"reads": [], "absent": "no such split"}
    table = table_of(content)
    cells = {row.id: row.cells for row in table.rows}
    found = [(cells[row]["ndcg"].state, cells[row]["ndcg"].reason) for row in ("bm25", "none", "seed", "ict")]
    expected = [("not applicable", "it has none"), ("missing", "no such split"), ("empty", ""), ("measured", "")]
    assert found == expected
    best = [row for row in cells if (ours := cells[row]["rr"].ours) and ours.best]
    second = [row for row in cells if (ours := cells[row]["rr"].ours) and ours.second]
    assert (best, second) == (["ict"], ["bm25"])
    ict = cells["ict"]["rr"]
    assert ict.ours is not None
    assert ict.parts == [ict.ours.text, f"±{ict.ours.sd_text}"]
    compared = ict.comparisons["control"]
    assert table.entries(table.rows[4])[2].text == compared.text
    assert table.column("rr").model_dump(include={"direction", "unit", "measure", "dataset", "split"}) == {
        "direction": "highest",
        "unit": "share",
        "measure": "RR@10",
        "dataset": "pydocs",
        "split": "test",
    }


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"version": 2}', "\udcff"])
def test_data_that_are_no_table_are_refused_in_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "t.json"
    with pytest.raises(EncoreError, match="cannot read"):
        read_table(path)
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(EncoreError, match="is not a table") as refused:
        read_table(path)
    assert "\n" not in str(refused.value)


def test_on_the_users_own_data_the_differences_to_baselines_are_shown_and_no_paper_is_named(tmp_path: Path) -> None:
    """Also that a screen without bold marks the best otherwise."""
    own = plan(tmp_path, proxy_data="own", significance={"comparators": ["bm25", "none", "control"]})
    table = table_of(own)
    assert table.header()[3] == "RR@10 − BM25 [95 %]"
    row = next(row for row in table.rows if row.id == "ict")
    compared = row.cells["rr"].comparisons["bm25"]
    assert table.entries(row)[2].text == compared.text
    assert compared.low < compared.difference < compared.high
    assert not [note for note in table.footnotes if "paper" in note or "objectives of one setting" in note]
    assert "In whatever order documents of equal score are ranked, the numbers change by" in " ".join(table.footnotes)
    assert re.search(r"RR@10: on 40 queries a difference must be above 0\.0\d+ to be significant", str(table.footnotes))
    write_table(tmp_path / "small.json", table)
    for bold, best in (("{}", "*: the best"), (aligned_text.TERMINAL_BOLD, "Bold: the best")):
        text = aligned_text.show_table(tmp_path, "small", bold=bold)
        assert f"- {best} of a column within its setting." in text
        assert ("*" in text.splitlines()[9]) == (bold == "{}")


def test_a_column_at_its_ceiling_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recall of as many ranks as there are passages, and rows whose every query is answered best."""
    monkeypatch.setattr(small_table, "GAINS", dict.fromkeys(small_table.GAINS, 0.9))
    manifest = {"stage": "", "spec": {}, "inputs": {}, "outputs": {}}
    write_json(tmp_path / "texts/manifest.json", manifest | {"results": {"passages": 100}})
    texts = {"dataset": "Python documentation", "collection": str(tmp_path / "texts"), "ignore_copies": None}
    found = plan(tmp_path, texts=[texts])
    for row in found["rows"]:
        row["cells"]["ndcg"]["expression"] = "R(rel=2)@100"
    said = " ".join(table_of(found).footnotes)
    assert "RR@10: 4 of 5 rows have the highest value, which hides differences." in said
    assert "nDCG@10: the collection has 100 passages, so every ranking finds all of them." in said
    write_json(tmp_path / "texts/manifest.json", manifest | {"results": {"passages": 101}})
    assert "every ranking" not in " ".join(table_of(found).footnotes)

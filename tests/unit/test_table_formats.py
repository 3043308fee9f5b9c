"""A table as people see it: Markdown, the terminal, LaTeX, HTML, and the notes below."""

from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from small_table import plan, row_of, table_of

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.reporting.tables import html, latex, markdown
from encore.reporting.tables.footnotes import PROXY_DATA
from encore.reporting.tables.sheet import make_sheet
from encore.storage.files import write_json
from encore.storage.manifest import MANIFEST, describe


def test_markdown_is_aligned_and_marks_the_best(tmp_path: Path) -> None:
    text = markdown.render_markdown(make_sheet(table_of(plan(tmp_path))))
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


def test_the_terminal_sees_no_markup_and_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text(markdown.render_markdown(make_sheet(table_of(plan(tmp_path)))))
    shown = markdown.show_table(tmp_path, "t", bold="{}")
    rows = [line for line in shown.splitlines() if line.startswith("|") and "SEED" not in line]
    assert "*" not in shown
    assert len({len(line) for line in rows}) == 1
    assert str(tmp_path / "t.csv") in shown
    with pytest.raises(EncoreError, match="is missing"):
        markdown.show_table(tmp_path, "other")


def test_one_seed_is_said_below_the_table(tmp_path: Path) -> None:
    notes = make_sheet(table_of(plan(tmp_path, seeds=1))).notes
    assert any("about these checkpoints, not about the objectives" in note for note in notes)
    assert any("needs 5 seeds" in note for note in notes)


def test_latex_has_whole_rows_and_no_bare_specials(tmp_path: Path) -> None:
    text = latex.render_latex(make_sheet(table_of(plan(tmp_path))))
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
    assert r"\label{tab:table1}" in latex.render_latex(make_sheet(table_of(own)))
    assert r"\label{tab:bow:table1}" in latex.render_latex(make_sheet(table_of(theirs)))


def test_without_a_control_no_difference_to_it_is_announced(tmp_path: Path) -> None:
    table = plan(tmp_path)
    table["rows"] = [row for row in table["rows"] if row["id"] != "control"]
    shown = make_sheet(table_of(table))
    assert shown.header == ["", "RR@10", "nDCG@10"]
    assert any("†" in entry.marker for block in shown.blocks for line in block.lines for entry in line)


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
    text = html.render_html(make_sheet(table_of(plan(tmp_path))))
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
    told = make_sheet(table_of(table)).notes
    assert told[:2] == [PROXY_DATA, "Bold: the best of a column within its setting."]
    printed = tmp_path / "printed.csv"
    printed.write_text("row_label,dataset,metric,value\nSEED & co_1,x,RR@10,0.5\n")
    for row in table["rows"]:
        for cell in row["cells"].values():
            cell["reads"] = []
    row_of(table, "seed")["cells"]["rr"]["reported"] = {"row_label": "SEED & co_1", "dataset": "x", "metric": "RR@10"}
    notes = make_sheet(table_of(table | {"reported": str(printed)})).notes
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
        assert f"{said}{ending}" in make_sheet(table_of(table)).notes

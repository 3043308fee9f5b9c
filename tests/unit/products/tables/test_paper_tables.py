"""The papers' tables as data: every line of their files stands in exactly one cell, and every table is there."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from encore.config.entries import PretrainStep
from encore.products.tables.entries import fill_vars, has_own_value, printed_as
from encore.products.tables.reported import read
from encore.products.tables.sources.kinds import SOURCES

PAPERS = Path("config/papers")
TABLES = {"bow": 6, "costa": 7, "cpdae": 3, "tct_colbert": 6, "two_tower": 6}  # CPDAE's fourth is a picture in words
CELLS = 1113  # in 1,036 of them a paper prints a number: test_report_plan.py


def cells(table):
    return [(row, column) for row in table.rows for column in table.columns if not column.hidden]


@pytest.fixture(scope="session")
def papers(catalogue):
    return {name: table for name, table in catalogue.tables.items() if name.split("/")[0] in TABLES}


def test_every_numbered_table_is_there(papers):
    assert set(papers) == {f"{paper}/table{number + 1}" for paper, count in TABLES.items() for number in range(count)}
    assert all(table.reported == f"reported/{name.split('/')[1]}.csv" for name, table in papers.items())


def test_every_line_stands_in_exactly_one_cell(papers):
    total = 0
    for name, table in papers.items():
        rows = read(PAPERS / name.split("/")[0] / table.reported)
        total += len(rows)
        taken = Counter()
        for row, column in cells(table):
            wanted = printed_as(row, column).items()
            found = [number for number, each in enumerate(rows) if all(each[key] == value for key, value in wanted)]
            assert len(found) == 1, (name, row.id, column.id, found)
            taken.update(found)
        assert set(taken.values()) == {1}, name
        assert len(taken) == len(rows), (name, [rows[number] for number in range(len(rows)) if number not in taken][:3])
    assert total == CELLS


def test_copied_rows_name_whom_the_file_names(papers):
    copied = 0
    for name, table in papers.items():
        with (PAPERS / name.split("/")[0] / table.reported).open(encoding="utf-8", newline="") as file:
            sources = {(line["row_label"], line["setting"]): line["source"] for line in csv.DictReader(file)}
        for row in (row for row in table.rows if row.reported_only):
            copied += 1
            own = {who for (label, setting), who in sources.items() if label == (row.reported_label or row.label)}
            assert row.reported_only.replace("ä", "a") in {who.replace("ä", "a") for who in own}, (name, row.id, own)
    assert copied > 0


def test_no_name_in_a_cell_is_left_unfilled(papers):
    for table in papers.values():
        for row, column in cells(table):
            for need in SOURCES[column.source].needs if has_own_value(row, column) else ():
                assert "{" not in fill_vars(row.system if need == "system" else getattr(column, need), row, column)


def masking(plan, system):
    """Share and kind of masking of each pre-training of a lineage."""
    steps = [plan.resolve.step(step) for step in plan.resolve.lineage(system).steps]
    return {(step.mask_ratio, step.whole_word) for step in steps if isinstance(step, PretrainStep)}


def test_what_bow_compares_masks_alike(papers, make):
    plan = make()
    found = {}
    for name in ("bow/table1", "bow/table2", "bow/table5", "bow/table6"):
        table = papers[name]
        for row, column in cells(table):
            if row.system:
                filled = fill_vars(row.system, row, column)
                found.setdefault((name, row.id), set()).update(masking(plan, filled))
    alone = {key: each for key, each in found.items() if key[1] not in ("bert", "baseline")}
    assert {key[1] for key in alone} == {"mlm", "ae", "ar", "ed", "bow", "bow-15", "bow-30", "bow-45"}
    shared = {frozenset(each) for (name, _), each in alone.items() if name != "bow/table6"}
    assert shared == {frozenset({(0.3, True)})}
    assert found["bow/table6", "mlm"] == found["bow/table6", "bow-15"] == {(0.15, True)}


def test_bm25_of_documents_is_the_one_that_gives_the_printed_number(papers):
    """TREC DL 2019's documents: the printed .519 is of the defaults (.518), not of the tuned parameters (.523)."""
    for name in ("costa/table2", "cpdae/table1"):
        (row,) = (row for row in papers[name].rows if row.id == "bm25")
        documents = [column for column in papers[name].columns if column.dataset == "msmarco-document"]
        found = {(column.split, fill_vars(row.system, row, column)) for column in documents}
        assert found == {("test", "bm25-documents"), ("graded", "bm25")}


@pytest.mark.parametrize("name", ["cpdae/table1", "costa/table1", "bow/table3"])
def test_bm25_is_of_passages_without_titles_as_its_printed_numbers_are(papers, name):
    """.187 and .857 are of the plain collection (castorini/pyserini), and ANCE read no titles; others did."""
    runs = [(row, column) for row, column in cells(papers[name]) if has_own_value(row, column)]
    found = {(row.id in ("bm25", "ance"), fill_vars(column.dataset, row, column)) for row, column in runs}
    passages = {(is_plain, dataset) for is_plain, dataset in found if dataset.startswith("msmarco-passage")}
    assert passages == {(True, "msmarco-passage"), (False, "msmarco-passage-titles")}

"""CSV that other programs open: what is a text there, and what is a number."""

import csv
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.storage.csv_rows import neutral, read_rows, write_rows

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\n=1", "＝1+1", "-", "=", "-inf+1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_a_text(text: str) -> None:
    assert neutral(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "-0.25", "+1", "-1e-05", "-inf", "a=b", " =1", "'=1", "Δ", "0.5", "BM25 + ICT"])
def test_numbers_and_other_texts_stay(text: str) -> None:
    assert neutral(text) == text


def test_no_cell_of_a_file_is_a_formula(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.csv", ["label", "=value"], [[text, "-0.5"] for text in FORMULAS])
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert neutral("a\r=1") == "a =1"
    assert header == ["label", "'=value"]
    assert rows == [[f"'{text}", "-0.5"] for text in FORMULAS]
    assert [row["label"] for row in read_rows(tmp_path / "a.csv")] == FORMULAS


@pytest.mark.parametrize("text", ["'", "'a", "it's", "'-1", ""])
def test_other_apostrophes_are_read_as_they_are(text: str, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.csv", ["label", "value"], [[text, "1"]])
    assert read_rows(tmp_path / "a.csv") == [{"label": text, "value": "1"}]


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.csv", ["label", "value"], [["a", "1"]])
    assert read_rows(tmp_path / "a.csv", "value", "label") == [{"label": "a", "value": "1"}]
    with pytest.raises(EncoreError, match=r"a.csv has no column row, seeds; make the file again$"):
        read_rows(tmp_path / "a.csv", "row", "label", "seeds")

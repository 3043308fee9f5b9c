"""The forest plot: it says what the table says."""

import csv
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.products.figures import forest
from tests.support.small_table import lines_of, plan, table_of


def test_the_figure_says_what_its_data_says_and_is_the_same_twice(tmp_path: Path) -> None:
    table = table_of(plan(tmp_path))
    for folder in ("a", "b"):
        forest.draw_forest(tmp_path / folder, table)
    for ending in ("png", "svg", "csv"):
        first, second = ((tmp_path / folder / f"table1.{ending}").read_bytes() for folder in ("a", "b"))
        assert first == second
    with (tmp_path / "a" / "table1.csv").open(newline="") as file:
        arms = list(csv.DictReader(file))
    assert [(arm["label"], arm["significant"]) for arm in arms] == [("MLM", "0"), ("ICT", "1")]
    line = lines_of(tmp_path, table)["ict", "RR@10"]
    assert [arms[1][name] for name in ("difference", "interval_low", "interval_high")] == [
        line[name] for name in ("delta_control", "interval_low", "interval_high")
    ]


def test_a_figure_without_anything_to_compare_is_refused(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=1, significance=None)
    with pytest.raises(EncoreError, match="nothing to draw"):
        forest.draw_forest(tmp_path, table_of(table))
    assert "Verdict" not in table_of(table).header()

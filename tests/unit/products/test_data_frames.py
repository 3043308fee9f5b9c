"""Results as data frames: the same values as the files have, and errors in one line."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import encore
from encore.data.runs import describe, write_run
from encore.data.trec_runs import read_trec
from encore.evaluation.scores import FILE
from encore.products.tables.table import write_table
from tests.support import small_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A finished small table, as CSV and JSON."""
    made = small_table.table_of(small_table.plan(tmp_path))
    small_table.lines_of(tmp_path, made)
    write_table(tmp_path / "t.json", made)
    return tmp_path / "t.csv"


def test_a_table_has_the_values_of_its_csv(table: Path) -> None:
    found, expected = encore.read_table(table), pd.read_csv(table)
    assert list(found.columns) == list(expected.columns)
    assert len(found) == len(expected) > 5
    assert found.reproduced.notna().sum() > 5
    np.testing.assert_array_equal(found.reproduced, expected.reproduced)
    assert encore.read_table(table.with_suffix(".json")).equals(found)


def test_a_run_is_read_from_its_folder_and_from_any_trec_file(tmp_path: Path) -> None:
    lines = "q2 Q0 d9 1 2.5 x\nq1 Q0 d1 1 0.5 x\nq1 Q0 d3 2 0.75 x\nq1 Q0 d2 3 0.75 x\n"
    (tmp_path / "run.txt").write_text(lines)
    found = encore.read_run(tmp_path / "run.txt")
    assert found.to_dict("list") == {  # ties by descending id, as in trec_eval
        "query": ["q2", "q1", "q1", "q1"],
        "document": ["d9", "d3", "d2", "d1"],
        "rank": [1, 1, 2, 3],
        "score": [2.5, 0.75, 0.75, 0.5],
    }
    write_run(tmp_path, read_trec(tmp_path / "run.txt"), describe("x", collection="c", split="train", retrieval=[]))
    assert encore.read_run(str(tmp_path)).equals(found)


def test_scores_have_a_row_for_each_query_and_measure(tmp_path: Path) -> None:
    small_table.write_scores(tmp_path / "scores", 0.1, seed=1)
    found = encore.read_scores(tmp_path / "scores")
    assert found.groupby(["split", "measure"]).size().to_dict() == {("graded", "nDCG@10"): 8, ("test", "RR@10"): 40}
    assert found.value.between(0, 1).all()
    (tmp_path / "scores" / FILE).write_bytes(b"PAR1")
    with pytest.raises(encore.EncoreError, match=r"scores\.parquet"):
        encore.read_scores(tmp_path / "scores")


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(encore.EncoreError, match=r"table9\.json"):
        encore.read_table(tmp_path / "table9.csv")
    with pytest.raises(encore.EncoreError, match=r"none\.txt is missing"):
        encore.read_run(tmp_path / "none.txt")


def test_importing_encore_imports_no_pandas_and_unknown_names_are_refused() -> None:
    code = "import encore, sys; print('pandas' in sys.modules, sorted(set(dir(encore)) & {'read_table', 'read_run'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False ['read_run', 'read_table']"
    with pytest.raises(AttributeError, match="read_tables"):
        _ = encore.read_tables  # type: ignore[attr-defined]

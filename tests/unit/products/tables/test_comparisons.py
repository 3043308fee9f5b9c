"""Every number of a small table by hand, and which rows cannot be compared."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.errors import EncoreError
from encore.evaluation import scores, significance
from encore.evaluation.families import OPEN, UNTESTED
from encore.evaluation.scores import Scored
from encore.products.tables.cell_scores import CellScores
from encore.storage import csv_rows
from tests.support.small_table import (
    CLUSTERS,
    NUMERIC,
    QUERIES,
    lines_of,
    measured,
    plan,
    row_of,
    table_of,
    with_costs,
    write_scores,
)

GOLDEN = Path(__file__).parents[2] / "golden/one_run_table.csv"


def by_seed(table: dict[str, Any], row: str) -> np.ndarray:
    """RR@10 [queries, seeds] of a row, straight from its files."""
    folders = [seed["folder"] for seed in row_of(table, row)["cells"]["rr"]["reads"]]
    return np.stack([scores.read_scores(Path(folder))["test", "RR@10"].values for folder in folders], axis=1)


def test_each_number_of_a_line_is_the_one_computed_by_hand(tmp_path: Path) -> None:
    table = plan(tmp_path)
    line = lines_of(tmp_path, table_of(table))["ict", "RR@10"]
    ours, control = (by_seed(table, name) for name in ("ict", "control"))
    difference = significance.clustered(ours - control, CLUSTERS)
    assert float(line["reproduced"]) == pytest.approx(ours.mean(), abs=1e-11)
    assert float(line["sd"]) == pytest.approx(ours.mean(axis=0).std(ddof=1), abs=1e-11)
    assert float(line["delta_control"]) == pytest.approx((ours - control).mean(), abs=1e-11)
    assert (float(line["interval_low"]), float(line["interval_high"])) == pytest.approx(
        difference.interval(), abs=1e-11
    )
    alone = significance.clustered(ours, CLUSTERS).interval()
    assert (float(line["mean_low"]), float(line["mean_high"])) == pytest.approx(alone, abs=1e-11)
    assert alone[0] < ours.mean() < alone[1]
    assert float(line["p_control"]) == pytest.approx(difference.p, rel=1e-9)
    one_seed = significance.paired_t(ours[:, 0] - control[:, 0])
    assert float(line["p_ttest_one_seed_control"]) == pytest.approx(one_seed, rel=1e-9)
    assert float(line["tie_low"]) == pytest.approx(ours.mean() - 0.001, abs=1e-11)
    assert float(line["tie_high"]) == float(line["reproduced"])
    shown = ("seeds", "queries_judged", "queries_answered", "markers", "verdict", "collection", "reported")
    assert [line[name] for name in shown] == ["5", "40", "40", "†‡§", "holds here", "pydocs-1a2b3c4d", ""]


def test_rows_are_paired_by_seed_whatever_the_order_of_their_runs(tmp_path: Path) -> None:
    table = plan(tmp_path)
    cell = row_of(table, "control")["cells"]["rr"]
    ours, control = by_seed(table, "ict")[:, 1:], by_seed(table, "control")[:, 1:]
    cell["reads"] = cell["reads"][:0:-1]
    assert [read["seed"] for read in cell["reads"]] == [4, 3, 2, 1]
    line = lines_of(tmp_path, table_of(table))["ict", "RR@10"]
    difference = significance.clustered(ours - control, CLUSTERS)
    assert float(line["delta_control"]) == pytest.approx((ours - control).mean(), abs=1e-11)
    assert (float(line["interval_low"]), float(line["interval_high"])) == pytest.approx(
        difference.interval(), abs=1e-11
    )
    assert float(line["p_control"]) == pytest.approx(difference.p, rel=1e-9)
    one_seed = significance.paired_t(ours[:, 0] - control[:, 0])
    assert float(line["p_ttest_one_seed_control"]) == pytest.approx(one_seed, rel=1e-9)


MINED = {"none": 0.05, "control": 0.3, "mlm": 0.31, "ict": 0.1}  # gains in another order than under BM25 negatives


def test_each_setting_has_comparators_a_best_row_and_a_family_of_its_own(tmp_path: Path) -> None:
    table = plan(tmp_path)
    for salt, (name, gain) in enumerate(MINED.items()):
        folders: dict[int | None, str] = {
            seed: write_scores(tmp_path / f"mined-{name}-s{seed}", gain, 1000 + 10 * seed + salt) for seed in range(5)
        }
        table["rows"].append(row_of(table, name) | {"setting": "Mined", "cells": measured(f"mined+{name}", folders)})
    computed = table_of(table)
    for setting, best in (("BM25 negatives", "ict"), ("Mined", "mlm")):
        own = {"rows": [row for row in table["rows"] if row["setting"] == setting]}
        rows = {row.id: row.cells["rr"] for row in computed.rows if row.setting == setting}
        assert [name for name, cell in rows.items() if cell.ours and cell.ours.best] == [best]
        assert [cell.ours.second for cell in rows.values() if cell.ours].count(True) == 1
        for other, objectives in {"none": ["mlm", "ict"], "control": ["mlm", "ict"], "mlm": ["ict"]}.items():
            compared = [rows[name].comparisons[other] for name in objectives]
            apart = [by_seed(own, name) - by_seed(own, other) for name in objectives]
            expected = [significance.clustered(each, CLUSTERS) for each in apart]
            assert [one.difference for one in compared] == pytest.approx([each.mean for each in expected], abs=1e-11)
            corrected = significance.holm([each.p for each in expected])
            assert [one.p_holm for one in compared] == pytest.approx(corrected, rel=1e-9)


def test_a_query_is_answered_only_if_the_run_of_every_seed_answers_it() -> None:
    values, shared = np.zeros(40), np.zeros(40, np.int8)
    without = [np.array([query not in missing for query in QUERIES]) for missing in (["q0"], ["q1", "q2"])]
    scored = [Scored(QUERIES, CLUSTERS, values, values, values, there, shared) for there in without]
    assert CellScores([0, 1], scored).answered() == 37


def test_the_header_is_the_contract(tmp_path: Path) -> None:
    header = list(lines_of(tmp_path, table_of(plan(tmp_path, seeds=1)))["ict", "RR@10"])
    assert " ".join(header) == (
        "paper table row label setting system dataset split measure reported reproduced sd seeds tie_low tie_high "
        "delta_none delta_control delta_mlm interval_low interval_high p_none p_control p_mlm "
        "p_holm_none p_holm_control p_holm_mlm p_ttest_one_seed_none p_ttest_one_seed_control p_ttest_one_seed_mlm "
        "p_randomisation_none p_randomisation_control p_randomisation_mlm markers detectable "
        "queries_judged queries_answered verdict collection difference source origin column "
        "mean_low mean_high markers_printed markers_unconfirmed markers_unprinted expression real_dataset stand_in"
    )


def test_a_missing_value_is_empty_and_never_zero(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, table_of(plan(tmp_path, seeds=1)))
    copied = lines["seed", "RR@10"]
    assert {copied[name] for name in copied if name.startswith(NUMERIC)} == {""}
    assert copied["verdict"] == UNTESTED
    assert (lines["bm25", "RR@10"]["seeds"], lines["ict", "RR@10"]["sd"]) == ("", "")
    assert (lines["bm25", "RR@10"]["queries_answered"], lines["bm25", "RR@10"]["queries_judged"]) == ("38", "40")
    assert lines["mlm", "RR@10"]["delta_mlm"] == ""


def test_holm_corrects_objectives_for_each_comparator_on_the_primary_measure_only(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, table_of(plan(tmp_path)))
    for other, rows in {"none": ["mlm", "ict"], "control": ["mlm", "ict"], "mlm": ["ict"]}.items():
        expected = significance.holm([float(lines[row, "RR@10"][f"p_{other}"]) for row in rows])
        assert [float(lines[row, "RR@10"][f"p_holm_{other}"]) for row in rows] == pytest.approx(expected, rel=1e-9)
    assert lines["control", "RR@10"]["p_none"] != ""
    for outside in (("control", "RR@10"), ("ict", "nDCG@10")):
        assert lines[outside]["p_holm_none"] == lines[outside]["markers"] == lines[outside]["verdict"] == ""


def test_rows_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=1)
    table["rows"][4]["cells"]["rr"]["reads"][0]["seed"] = 7
    with pytest.raises(EncoreError, match="share no seed"):
        table_of(table)
    table["rows"][0]["cells"]["rr"]["value"] = "R@100"
    with pytest.raises(EncoreError, match="has no R@100 on test, only nDCG@10 on graded, RR@10 on test"):
        table_of(table)


def test_seeds_judged_on_other_queries_are_refused(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=2)
    folder = tmp_path / "other"
    there = np.ones(2, bool)
    part = Scored(["q1", "q0"], ["m", "m"], *[np.zeros(2)] * 3, there, np.zeros(2, np.int8))
    scores.write_scores(folder, {("test", "RR@10"): part, ("graded", "nDCG@10"): part})
    table["rows"][4]["cells"]["rr"]["reads"][1]["folder"] = str(folder)
    with pytest.raises(EncoreError, match="judged on different queries of pydocs"):
        table_of(table)


def test_numbers_are_short_and_read_back() -> None:
    assert [csv_rows.number(value) for value in (None, 0.1 + 0.2, 1.0, 1e-20)] == ["", "0.3", "1.0", "1e-20"]
    assert float(csv_rows.number(math.pi)) == pytest.approx(math.pi, rel=1e-11)


def test_a_table_of_one_run_a_row_is_what_it_was_before_there_could_be_several(tmp_path: Path) -> None:
    """The file was written when each row had one run; columns were added since, and p changed where nothing varies.

    Likewise where a component has one degree of freedom.
    """
    found = list(lines_of(tmp_path, table_of(with_costs(tmp_path))).values())
    with GOLDEN.open(newline="") as file:
        golden = list(csv.DictReader(file))
    assert len(found) == len(golden) == 24
    for line, before in zip(found, golden, strict=True):
        assert list(line)[: len(before)] == list(before)
        for name, text in before.items():
            if text and name.startswith((*NUMERIC, "tie")):
                assert float(line[name]) == pytest.approx(float(text), rel=1e-9), name
            else:
                assert line[name] == text, name


def test_a_papers_table_has_a_verdict_on_its_own_comparison(tmp_path: Path) -> None:
    """Ours claim a gain over both none and control; a paper's table has no control, and compares with none."""
    for paper, expected in (("encore", ""), ("bow", "holds here")):
        table = plan(tmp_path / paper, paper=paper)
        table["rows"] = [row for row in table["rows"] if row["id"] != "control"]
        line = lines_of(tmp_path, table_of(table))["ict", "RR@10"]
        assert (line["verdict"], line["detectable"] != "") == (expected, paper == "bow")
    with_control = lines_of(tmp_path, table_of(plan(tmp_path / "both", paper="bow")))["mlm", "RR@10"]
    assert with_control["verdict"] == OPEN  # as far above none as the control is


def test_what_nothing_stands_for_is_said_of_every_cell(tmp_path: Path) -> None:
    table = plan(tmp_path, seeds=1)
    for row in ("bm25", "ict"):
        row_of(table, row)["cells"]["ndcg"]["reads"] = []
    lines = lines_of(tmp_path, table_of(table))
    assert [lines[row, "nDCG@10"]["verdict"] for row in ("bm25", "ict", "none")] == [*[UNTESTED] * 2, ""]

"""The papers' printed numbers beside ours."""

from pathlib import Path

import pytest
from small_table import grid_of, lines_of, plan

from encore.errors import EncoreError
from encore.reporting import markdown
from encore.reporting.sheet import sheet


def test_reported_numbers_come_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "reported.csv"
    rows = ["row_label,setting,dataset,metric,value", "BERT,bm25,marco,MRR@10,0.316", "BERT,mined,marco,MRR@10,0.335"]
    path.write_text("\n".join([*rows, "BERT,bm25,marco,R@1000,", ""]))
    table = plan(tmp_path, seeds=1, reported=str(path))
    for cell, metric in (("rr", "MRR@10"), ("ndcg", "R@1000")):
        wanted = {"row_label": "BERT", "setting": "bm25", "dataset": "marco", "metric": metric}
        table["rows"][1]["cells"][cell]["reported"] = wanted
    lines = lines_of(tmp_path, grid_of(table))
    assert lines["none", "RR@10"]["reported"] == "0.316"
    assert lines["none", "nDCG@10"]["reported"] == lines["ict", "RR@10"]["reported"] == ""
    line = lines["none", "RR@10"]
    apart = float(line["reproduced"]) - 0.316
    assert float(line["difference"]) == pytest.approx(apart, abs=1e-11)
    assert lines["none", "nDCG@10"]["difference"] == ""
    shown = f"{float(line['reproduced']):.3f} (0.316; {'+' if apart >= 0 else '−'}{abs(apart):.3f})"
    assert shown in markdown.render(sheet(grid_of(table)))
    del table["rows"][1]["cells"]["rr"]["reported"]["setting"]
    with pytest.raises(EncoreError, match="2 reported numbers fit"):
        grid_of(table)

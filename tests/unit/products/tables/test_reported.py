"""The papers' printed numbers next to ours."""

from pathlib import Path
from typing import Any

import pytest

from encore.errors import EncoreError
from encore.products.claims.contrasts import Address
from encore.products.claims.run_claims import _printed
from encore.products.tables import formats, layout
from tests.support.small_table import entries_of, lines_of, notes_of, plan, row_of, table_of, with_costs


def test_reported_numbers_come_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "reported.csv"
    rows = ["row_label,setting,dataset,metric,value", "BERT,bm25,marco,MRR@10,0.316", "BERT,mined,marco,MRR@10,0.335"]
    path.write_text("\n".join([*rows, "BERT,bm25,marco,R@1000,", ""]))
    table = plan(tmp_path, seeds=1, reported=str(path))
    for cell, metric in (("rr", "MRR@10"), ("ndcg", "R@1000")):
        wanted = {"row_label": "BERT", "setting": "bm25", "dataset": "marco", "metric": metric}
        table["rows"][1]["cells"][cell]["reported"] = wanted
    lines = lines_of(tmp_path, table_of(table))
    assert lines["none", "RR@10"]["reported"] == "0.316"
    assert lines["none", "nDCG@10"]["reported"] == lines["ict", "RR@10"]["reported"] == ""
    line = lines["none", "RR@10"]
    apart = float(line["reproduced"]) - 0.316
    assert float(line["difference"]) == pytest.approx(apart, abs=1e-11)
    assert lines["none", "nDCG@10"]["difference"] == ""
    shown = f"{float(line['reproduced']):.3f} (0.316; {'+' if apart >= 0 else '−'}{abs(apart):.3f})"
    assert shown in formats.render(table_of(table), "md")
    del table["rows"][1]["cells"]["rr"]["reported"]["setting"]
    with pytest.raises(EncoreError, match="2 reported numbers fit"):
        table_of(table)


def with_printed(tmp_path: Path, *values: str, **fields: Any) -> dict[str, Any]:
    """The small table and what a paper printed under RR@10: the first for ICT, the second for the copied row."""
    lines = [f"{row},marco,MRR@10,{value}" for row, value in zip(("ICT", "SEED"), values, strict=False)]
    path = tmp_path / "reported.csv"
    path.write_text("\n".join(["row_label,dataset,metric,value", *lines, ""]))
    table = plan(tmp_path, reported=str(path), **fields)
    for row, label in (("ict", "ICT"), ("seed", "SEED")):
        wanted = {"row_label": label, "dataset": "marco", "metric": "MRR@10"}
        row_of(table, row)["cells"]["rr"]["reported"] = wanted
    row_of(table, "seed").update(reported_only="Lu et al. 2021", role="baseline", origin="printed only")
    return table


def test_a_mean_of_fewer_columns_is_not_compared_with_the_papers_of_all(tmp_path: Path) -> None:
    table = with_printed(tmp_path, ".555")
    assert row_of(table, "ict")["cells"]["rr"]["reported"]
    assert next(row for row in table_of(table).rows if row.id == "ict").cells["rr"].printed.difference is not None
    table["columns"][0]["partial"] = True
    printed = next(row for row in table_of(table).rows if row.id == "ict").cells["rr"].printed
    assert (printed.value, printed.difference, printed.difference_text) == (0.555, None, "")


@pytest.mark.parametrize(("partial", "expected"), [(False, 0.7), (True, 0.555)])
def test_a_claim_compares_a_mean_of_fewer_columns_with_what_the_paper_prints_in_the_same(
    tmp_path: Path, partial: bool, expected: float
) -> None:
    table = with_printed(tmp_path, ".555")
    with (tmp_path / "reported.csv").open("a") as file:
        file.write("ICT,marco,Mean,.7\n")
    table["columns"].append({"id": "mean", "label": "Mean", "source": "mean_of", "mean_of": ["rr"], "partial": partial})
    for row in table["rows"]:
        printed = {"row_label": "ICT", "dataset": "marco", "metric": "Mean"} if row["id"] == "ict" else {}
        row["cells"]["mean"] = {"reported": printed}
    found = _printed({"t": layout.Layout.model_validate(table)})
    assert found[Address("t", "BM25 negatives", "ict", "mean")] == pytest.approx(expected)


def shown_of(table: dict[str, Any], row: str, place: int = 1) -> str:
    return entries_of(table_of(table))[row][place].text


def test_a_copied_row_shows_what_its_source_printed_and_nothing_else(tmp_path: Path) -> None:
    table = with_printed(tmp_path, ".555", "0.339")
    line = lines_of(tmp_path, table_of(table))["seed", "RR@10"]
    assert [line[name] for name in ("reported", "reproduced", "difference", "source", "verdict", "queries_judged")] == [
        "0.339",
        "",
        "",
        "Lu et al. 2021",
        "",
        "",
    ]
    assert shown_of(table, "SEED & co_1") == "(0.339)"
    for text in (formats.render(table_of(table), ending) for ending in ("md", "tex", "html")):
        assert "(0.339)" in text
        assert "(0.555; " in text


def test_percent_is_for_people_and_the_csv_has_shares(tmp_path: Path) -> None:
    shares = lines_of(tmp_path, table_of(with_printed(tmp_path, "0.3605", "0.339")))
    percent = with_printed(tmp_path, "36.05", "33.9", unit="percent")
    assert lines_of(tmp_path, table_of(percent)) == shares
    line = lines_of(tmp_path, table_of(percent))["ict", "RR@10"]
    ours, sd, apart = (100 * float(line[name]) for name in ("reproduced", "sd", "difference"))
    assert apart == pytest.approx(ours - 36.05)
    assert shown_of(percent, "ICT") == f"{ours:.2f} ±{sd:.2f} (36.05; +{apart:.2f})"
    delta = 100 * float(line["delta_control"])
    assert shown_of(percent, "ICT", place=3).startswith(f"+{delta:.2f} [+")
    notes = notes_of(table_of(percent))
    assert any("more than 0.1" in note for note in notes)
    assert any("in percent" in note for note in notes)


@pytest.mark.parametrize(
    ("printed", "number", "shown"),
    [
        (".310", "0.31", "0.310; "),
        ("11.2B", "11200000000.0", "11.2B; "),
        ("17.5M", "17500000.0", "17.5M; "),
        ("OOM", "", "OOM"),
        ("O(n^2)", "", "O(n^2)"),
        ("-", "", "-"),
    ],
)
def test_what_is_printed_is_shown_as_it_is_and_read_as_a_number(
    tmp_path: Path, printed: str, number: str, shown: str
) -> None:
    table = with_printed(tmp_path, printed)
    assert lines_of(tmp_path, table_of(table))["ict", "RR@10"]["reported"] == number
    assert f"({shown}" in shown_of(table, "ICT")


def test_a_number_of_another_unit_is_shown_in_ours(tmp_path: Path) -> None:
    table = with_costs(tmp_path)
    (tmp_path / "reported.csv").write_text("row_label,dataset,metric,value\nBM25,system,GiB,4\n")
    table["reported"] = str(tmp_path / "reported.csv")
    table["columns"][3]["reported_scale"] = 1024
    row_of(table, "bm25")["cells"]["size"]["reported"] = {"row_label": "BM25"}
    line = lines_of(tmp_path, table_of(table))["bm25", "size (MiB)"]
    assert (line["reported"], line["difference"]) == ("4096.0", "-4093.0")
    assert shown_of(table, "BM25", place=4) == "3.00 (4,096; −4,093)"


def with_markers(tmp_path: Path, printed: str, meant: dict[str, Any]) -> dict[str, Any]:
    """What a paper printed for ICT, which our test finds above all three, with its markers."""
    table = with_printed(tmp_path, "0.555")
    path = Path(table["reported"])
    path.write_text(f'row_label,dataset,metric,value,significance_markers\nICT,marco,MRR@10,0.555,"{printed}"\n')
    table["significance"]["printed"] = meant
    return table


@pytest.mark.parametrize(
    ("printed", "meant", "shown", "unconfirmed", "unprinted"),
    [
        ("*", {"*": "none"}, "(0.555*; ", "", ""),
        ("", {"*": "none", "†": "mlm"}, "(0.555≠; ", "", "*†"),
        ("1,2", {"1": "none", "2": "control", "3": "mlm"}, "(0.555¹²≠; ", "", "3"),
        ("*", {}, "(0.555*; ", "", ""),
        ("", {"*": ["none", "mlm"]}, "(0.555≠; ", "", "*"),
    ],
)
def test_markers_of_the_paper_stand_behind_its_number(
    tmp_path: Path, printed: str, meant: dict[str, Any], shown: str, unconfirmed: str, unprinted: str
) -> None:
    table = with_markers(tmp_path, printed, meant)
    line = lines_of(tmp_path, table_of(table))["ict", "RR@10"]
    assert line["markers_printed"] == printed.replace(",", "")
    assert (line["markers_unconfirmed"], line["markers_unprinted"]) == (unconfirmed, unprinted)
    assert shown in shown_of(table, "ICT")
    made = table_of(table)
    assert any(note.startswith("Behind the paper's numbers") for note in notes_of(made)) == bool(printed or unprinted)
    assert not set("≠¹²³") & set(formats.render(made, "tex"))
    for ending in ("md", "html"):
        assert ("≠" in formats.render(made, ending)) == ("≠" in shown)


def test_a_marker_that_our_test_does_not_show_is_unconfirmed(tmp_path: Path) -> None:
    table = with_markers(tmp_path, "*†", {"*": "none", "†": "control"})
    wanted = row_of(table, "ict")["cells"]["rr"].pop("reported")
    row_of(table, "mlm")["cells"]["rr"]["reported"] = wanted  # as good as the control, above none
    line = lines_of(tmp_path, table_of(table))["mlm", "RR@10"]
    assert (line["markers_printed"], line["markers_unconfirmed"], line["markers_unprinted"]) == ("*†", "†", "")
    table["significance"]["printed"] = {"*": ["none", "control"], "†": ["none", "mlm"]}
    line = lines_of(tmp_path, table_of(table))["mlm", "RR@10"]
    assert (line["markers_unconfirmed"], line["markers_unprinted"]) == ("*", ""), "above one of two is not above both"
    assert any("* each of NONE, CONTROL" in note for note in notes_of(table_of(table)))
    secondary = row_of(table, "mlm")["cells"]
    secondary["ndcg"]["reported"] = secondary["rr"].pop("reported")  # our test has no say on a secondary measure
    line = lines_of(tmp_path, table_of(table))["mlm", "nDCG@10"]
    assert (line["markers_printed"], line["markers_unconfirmed"], line["markers_unprinted"]) == ("*†", "", "")

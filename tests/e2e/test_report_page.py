"""The report of a finished nano run: it is made with the rest and shows what is there; and Snakemake's own report."""

import csv
import re

from encore.products.claims.entries import read_claims
from tests.support.clones import Clone

PAGE = "results/report/index.html"
PRODUCTS = ("results/tables/table1.csv", "results/figures/table1.png")


def test_both_reports_show_what_is_there(nano: Clone) -> None:
    assert nano.planned(PAGE) == set(), "a finished run has its report"
    text = (nano.root / PAGE).read_text()
    with (nano.root / PRODUCTS[0]).open(newline="") as file:
        numbers = [line["reproduced"] for line in csv.DictReader(file) if line["reproduced"]]
    assert numbers
    assert all(f"<dd>{number}" in text for number in numbers)
    screen = text[: text.index('id="claims"')]
    assert '<svg class="open"' in screen
    assert len(re.findall(r'<section class="item table"', text)) == 28
    assert "1,113 cells, in which the papers print 1,036 numbers" in text
    claims = len(read_claims(nano.root / "config/papers"))
    assert len(re.findall(r'class="item" id="k-', text)) == claims > 100
    assert f"{claims} claims on our runs" in screen
    stages = set(re.findall(r'data-stage="([\w.]+)"', text))
    assert {"collection.prepared", "pretrain.ict", "finetune", "encode", "search", "evaluate"} <= stages
    assert len(text) < 2_000_000
    (nano.root / PAGE).unlink()
    assert nano.built(PAGE) == {"report"}
    assert (nano.root / PAGE).read_text() == text
    check_report_of_snakemake(nano)
    nano.replace("config/papers/encore/tables.yaml", "title: Pre-training objectives", "title: Objectives")
    assert nano.planned(PAGE) == {"table table1", "figure table1", "report"}


def check_report_of_snakemake(nano: Clone) -> None:
    """It has the captions and the categories of the rules."""
    nano.nano(*PRODUCTS, PAGE, "--report", "report.html").succeeded()
    text = (nano.root / "report.html").read_text()
    for category in ("Tables", "Figures", "Report"):
        assert f'"{category}"' in text, category
    for caption in ("Measures of every system", "Difference to the control", "in one page"):
        assert caption in text, caption

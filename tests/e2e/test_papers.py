"""A table of each paper and the claims, after a finished nano run: every number is its source's, and stays so."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from encore.evaluation.families import UNTESTED
from encore.products.claims.entries import read_claims
from encore.products.kinds import BY_RULE
from encore.products.tables.comparisons import TOO_FEW
from tests.support.clones import Clone, jobs
from tests.support.papers import ABSENT, RUN, TABLES, TARGETS

CONFIG = ("--config", RUN[-1])
SHARES = ("measure", "mean_of", "gain")  # sources whose values a paper may print in percent


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def by_address(found: list[dict[str, str]]) -> dict[tuple[str, str, str], dict[str, str]]:
    return {(line["setting"], line["row"], line["column"]): line for line in found}


def entry(clone: Clone, name: str) -> dict[str, Any]:
    """A table as its paper's file writes it, with the rows that were asked for."""
    paper, table = name.split("/")
    written: dict[str, Any] = yaml.safe_load((clone.root / f"config/papers/{paper}/tables.yaml").read_text())[table]
    asked = TABLES[name]
    rows = [
        row for row in written["rows"] if asked == "all" or {row["id"], f"{row.get('setting')}: {row['id']}"} & {*asked}
    ]
    return written | {"rows": rows}


def planned(clone: Clone, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((clone.root / f"results/plan/{name}.json").read_text())
    return found


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_all_its_rows_with_the_numbers_that_the_paper_prints(papers: Clone, name: str) -> None:
    found, table, plan = lines(papers.root / f"results/tables/{name}.csv"), entry(papers, name), planned(papers, name)
    addresses = [
        (row.get("setting", ""), row["id"], column["id"]) for row in table["rows"] for column in table["columns"]
    ]
    assert list(by_address(found)) == addresses
    file = lines(papers.root / plan["reported"])
    sources = {column["id"]: column for column in plan["columns"]}
    compared = 0
    for row in plan["rows"]:
        for column, cell in row["cells"].items():
            asked, source = cell["reported"], sources[column]
            fitting = [line["value"] for line in file if asked and all(line[key] == asked[key] for key in asked)]
            shown = by_address(found)[row["setting"], row["id"], column]["reported"]
            numbers = [float(value) for value in fitting if re.fullmatch(r"[\d.]+", value)]
            assert bool(shown) == bool(numbers), (row["id"], column)
            if shown:
                percent = plan["unit"] == "percent" and source["source"] in SHARES
                times = 0.01 if percent else source["reported_scale"]
                assert float(shown) == pytest.approx(numbers[0] * times), (row["id"], column)
                compared += 1
    assert compared > 0


@pytest.mark.parametrize("name", TABLES)
def test_a_reproduced_value_is_what_its_run_says(papers: Clone, name: str) -> None:
    """Nothing stands in a cell that nothing was read for; a measure is the mean over its run's queries."""
    found, plan = by_address(lines(papers.root / f"results/tables/{name}.csv")), planned(papers, name)
    sources = {column["id"]: column["source"] for column in plan["columns"]}
    checked = 0
    for row in plan["rows"]:
        for column, cell in row["cells"].items():
            line = found[row["setting"], row["id"], column]
            assert (line["reproduced"] != "") == bool(cell["reads"]), (row["id"], column)
            if cell["reads"] and sources[column] == "measure":
                (read,) = cell["reads"]
                scores = pd.read_parquet(papers.root / read["folder"] / "scores.parquet")
                its = scores[(scores["split"] == cell["split"]) & (scores["measure"] == cell["value"])]
                assert float(line["reproduced"]) == pytest.approx(its["value"].mean(), abs=1e-9)
                assert int(line["queries_judged"]) == its["query"].nunique() > 0
            checked += bool(cell["reads"])
    assert checked > 0


def test_a_row_of_an_absent_model_costs_nothing(papers: Clone) -> None:
    models = [path.name for path in (papers.root / "results/models").iterdir()]
    assert [name for name in models if "+costa" in name]
    assert [name for name in models if name.startswith(ABSENT)] == []


def test_pages_say_what_stands_in_and_what_is_not_there(papers: Clone) -> None:
    pages = {name: (papers.root / f"results/tables/{name}.md").read_text() for name in TABLES}
    for name in TABLES:
        assert "Not the papers’ data" in pages[name], name
    assert "whole documents take too long here" in pages["cpdae/table1"]
    assert "no See Also sections" in pages["tct_colbert/table2"]
    assert "Craswell et al. 2020" in pages["cpdae/table1"]


def test_claims_are_judged_as_those_of_stand_ins_with_one_seed(papers: Clone) -> None:
    """Every claim has a line; one with all of its cells has too few seeds, and the others say what they lack."""
    every = read_claims(papers.root / "config/papers")
    claims = {name for name, (paper, _) in every.items() if paper != "real"}  # which only runs have that name them
    found = {line["id"]: line for line in lines(papers.root / "results/claims.csv")}
    assert set(found) == claims
    words = {name: line["verdict"] for name, line in found.items()}
    assert {word for name, word in words.items() if found[name]["seeds"]} == {TOO_FEW}
    without = {word for name, word in words.items() if not found[name]["seeds"] and name != "C95"}
    assert without == {UNTESTED}  # C95 is of BM25 alone, which has no seeds
    assert words["C08"] == words["C48"] == TOO_FEW  # of a table, and of a figure
    assert (found["C08"]["proxy_data"], found["C08"]["seeds"]) == ("yes", "1")
    assert all(found[name]["why"] for name, word in words.items() if word == UNTESTED)


def test_claims_that_are_named_are_judged_as_among_all(papers: Clone, tmp_path: Path) -> None:
    named, whole = ["C08", "C48", "C95"], lines(papers.root / "results/claims.csv")
    clone = papers.copy(tmp_path / "clone")
    clone.replace(RUN[-1], "\ntables:", f"\nclaims: [{', '.join(named)}]\ntables:")
    assert jobs(clone.snakemake("results/claims.csv", *RUN).succeeded()) == {"claims"}
    assert lines(clone.root / "results/claims.csv") == [line for line in whole if line["id"] in named]


def test_a_cell_is_explained_down_to_the_raw_text(papers: Clone) -> None:
    asked = ("results/tables/costa/table4.csv", "--row", "base", "--column", "mrr10")
    told = papers.encore("explain", *asked, *CONFIG).succeeded()
    cell = by_address(lines(papers.root / asked[0]))["", "base", "mrr10"]
    for part in ("tiny+costa-base-s0-", "tiny+costa-base+marco-bm25-s0-", "results/collections/pydocs-stdlib-"):
        assert part in told
    for number in (cell["reproduced"], cell["reported"]):
        assert number[:5] in told
    links = json.loads(papers.encore("explain", *asked, "--json", *CONFIG).succeeded())
    collection = papers.folder("collections", "pydocs-stdlib").relative_to(papers.root)
    assert str(collection) in json.dumps(links)


def test_two_builds_from_the_same_artifacts_give_the_same_bytes(papers: Clone, tmp_path: Path) -> None:
    again = papers.copy(tmp_path / "again")
    results = again.root / "results"
    products = [path for name in TABLES for path in (results / "tables").glob(f"{name}.*")]
    assert len(products) == (len(BY_RULE["table"].endings) + 1) * len(TABLES), "and their manifests"
    products += results.glob("claims*")
    before = {path: path.read_bytes() for path in products}
    assert {"claims.csv", "claims.md"} <= {path.name for path in products}
    for path in products:
        path.unlink()
    made = jobs(again.snakemake(*TARGETS, *RUN).succeeded())
    assert made == {f"table {name}" for name in TABLES} | {"claims"}
    assert {path: path.read_bytes() for path in products} == before
    assert "Nothing to be done" in again.snakemake(*TARGETS, *RUN).succeeded()

"""Every table and figure of the catalogue, every claim and the report, at nano scale: ``make test-everything``."""

import csv
import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from encore.config.run import Scale
from encore.config.run_file import read_run
from encore.plan.scale import with_single_names
from encore.products.catalogue import load_catalogue
from tests.support.clones import REPOSITORY, Clone
from tests.support.forks import SIMULATED_GPU

RUN = ("--profile", "local", "--configfile", "config/nano-papers.yaml")
CLAIMS = "results/claims.csv"
REPORT = "results/report/index.html"
ENDINGS = {
    "tables": ("csv", "json", "md", "tex", "html", "manifest.json"),
    "figures": ("png", "svg", "csv", "manifest.json"),
}

COMPUTING = {"pretrain", "finetune", "encode", "search", "rerank", "teacher_scores", "inspect_model", "masked_loss"}

pytestmark = pytest.mark.everything


@pytest.fixture(scope="module")
def everything(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """All of it; the report comes last, since it shows the claims that lie there."""
    clone = finished.copy(tmp_path_factory.mktemp("everything") / "nano")
    clone.snakemake(CLAIMS, *RUN, timeout=7200).succeeded()
    clone.snakemake(*RUN, timeout=7200).succeeded()
    return clone


def test_all_of_it_is_made_on_a_gpu_too(finished: Clone, tmp_path: Path) -> None:
    """A simulated one, which refuses what a real one would and computes on the processor."""
    clone = finished.copy(tmp_path / "gpu")
    shutil.rmtree(clone.root / "results")
    for target in ([CLAIMS], []):
        clone.snakemake(*target, *RUN, env={SIMULATED_GPU: "1"}, timeout=7200).succeeded()
    runs = [json.loads(path.read_text()) for path in clone.root.glob("results/*/**/run.json")]
    assert {run["device"] for run in runs if run["stage"].partition(".")[0] in COMPUTING} == {"simulated"}
    assert {run["stage"].partition(".")[0] for run in runs} > COMPUTING


def catalogue(kind: str) -> dict[str, Any]:
    """The entries of every paper and our own, by the names of their targets; not those on real files."""
    return {
        name if paper == "encore" else f"{paper}/{name}": entry
        for paper, entries in of_papers(kind).items()
        if paper != "real"
        for name, entry in entries.items()
    }


def of_papers(kind: str) -> dict[str, dict[str, Any]]:
    """What a kind of file of each paper's folder says."""
    found = sorted((REPOSITORY / "config/papers").glob(f"*/{kind}.yaml"))
    return {path.parent.name: yaml.safe_load(path.read_text()) for path in found}


def run() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((REPOSITORY / RUN[-1]).read_text())
    return found


@cache
def scale() -> Scale:
    """What the run scales, by single names."""
    path = REPOSITORY / RUN[-1]
    base = {**yaml.safe_load((REPOSITORY / "config/nano.yaml").read_text()), **run()}
    del base["extends"]
    return with_single_names(read_run(path, base), load_catalogue(REPOSITORY / "config")).scale


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_table_and_figure_is_made_and_nothing_else(everything: Clone) -> None:
    figures = {*catalogue("figures"), "pretraining", "table1", "objectives"}  # the last two have a control
    for kind, names in (("tables", set(catalogue("tables"))), ("figures", figures)):
        folder = everything.root / "results" / kind
        made = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert made == {f"{name}.{ending}" for name in names for ending in ENDINGS[kind]}
    assert len(catalogue("tables")) - len([name for name in catalogue("tables") if "/" not in name]) == 28


def test_a_second_run_does_nothing(everything: Clone) -> None:
    assert "Nothing to be done" in everything.snakemake("all", CLAIMS, *RUN).succeeded()


def test_the_audit_finds_nothing(everything: Clone) -> None:
    found = everything.encore("audit", "--config", RUN[-1]).succeeded()
    assert "0 bad" in found
    assert "not made yet" not in found


@pytest.mark.parametrize("name", run()["tables"])
def test_a_table_has_the_rows_that_were_asked_for_and_a_number_of_the_paper(everything: Clone, name: str) -> None:
    found, rows = lines(everything.root / f"results/tables/{name}.csv"), run()["tables"][name]
    made = {line["row"] for line in found}
    assert made == ({row["id"] for row in catalogue("tables")[name]["rows"]} if rows == "all" else _ids(rows))
    assert "/" not in name or any(line["reported"] for line in found)


def _ids(rows: list[str]) -> set[str]:
    return {row.rsplit(": ", 1)[-1] for row in rows}


@pytest.mark.parametrize("name", run()["tables"])
def test_a_cell_has_a_value_or_a_reason_for_having_none(everything: Clone, name: str) -> None:
    """Nothing that is measured is missing, and nothing that cannot be has a value."""
    plan = json.loads((everything.root / f"results/plan/{name}.json").read_text())
    columns = {column["id"]: column for column in plan["columns"]}
    entries = {(row.get("setting", ""), row["id"]): row for row in catalogue("tables")[name]["rows"]}
    found = lines(everything.root / f"results/tables/{name}.csv")
    value = {(line["setting"], line["row"], line["column"]): bool(line["reproduced"]) for line in found}
    absent = scale().absent
    wrong = []
    assert value or not plan["rows"]
    for row in plan["rows"]:
        entry = entries[row["setting"], row["id"]]
        for column, cell in row["cells"].items():
            place, about = (row["setting"], row["id"], column), columns[column]
            parts = [value[*place[:2], part] for part in about["mean_of"]]
            without = (
                "reported_only" in entry
                or column in entry.get("not_applicable", {})
                or about["source"] == "printed"
                or cell["dataset"] in absent
                or (cell["split"] == "graded")  # the standard library's docstrings have no See Also sections
                or (about["source"] == "mean_of" and not any(parts))
                or (about["source"] == "gain" and row["id"] == about["gain"]["over"])  # over itself
                or (name, *place) in NO_HEAD
            )
            wrong += [place] if value[place] == without else []
    assert wrong == []


# Nothing trained a vocabulary head of the small start, which has none of its own.
NO_HEAD = {("bow/table1", "", "bert", "mlm")}


def test_figures_have_values(everything: Clone) -> None:
    """Every system of a figure, as the run scales it, has lines with numbers."""
    for name, entry in catalogue("figures").items():
        entry = {**entry, **scale().figures.get(name, {})}
        found = lines(everything.root / f"results/figures/{name}.csv")
        asked = {line["label"] for line in entry.get("lines", [])} | {
            *entry.get("levels", {}),
            *entry.get("systems", {}),
        }
        assert {line["label"] for line in found} == asked, name
    for name in ("pretraining", "table1", "objectives"):
        assert lines(everything.root / f"results/figures/{name}.csv"), name


def test_every_claim_is_judged(everything: Clone) -> None:
    claims = {name for entries in of_papers("claims").values() for name in entries}
    assert {line["id"] for line in lines(everything.root / "results/claims.csv") if line["verdict"]} == claims


def test_the_report_shows_all_of_it(everything: Clone) -> None:
    text = (everything.root / REPORT).read_text()
    states = re.findall(r'<section class="item table" id="[^"]*" data-paper="[^"]*" data-state="([^"]*)"', text)
    assert states == ["made"] * (len(catalogue("tables")) - 1), "the first is on the first screen"
    assert len(re.findall(r'<figure id="f-', text)) == len(catalogue("figures")) + 3
    claims = lines(everything.root / "results/claims.csv")
    assert len(re.findall(r'class="item" id="k-', text)) == len(claims)

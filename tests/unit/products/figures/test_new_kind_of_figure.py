"""A new kind of figure, one file's worth and one line: it is checked, planned, drawn and audited like the others."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from encore.commands.audit import recompute
from encore.commands.audit.findings import AuditReport, MadeProduct, check_product
from encore.config.run_file import read_run
from encore.errors import EncoreError
from encore.evaluation.scores import read_scores
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue
from encore.products.declared import write_plan
from encore.products.figures import kinds, style
from encore.products.figures.base import (
    DrawnRow,
    FigureContent,
    FigureEntry,
    FigureKind,
    FigurePoint,
    FigureSlice,
    PanelEntry,
    PointAxes,
    Points,
    Systems,
    available,
    measured,
)
from encore.products.figures.plan import figure_cells, figure_plan
from encore.products.kinds import kind_of_record
from encore.products.record import make_product
from encore.products.slices import Read
from encore.products.tables.grid import CellRequest
from encore.products.targets import check_target, everything_declared
from encore.storage import manifest
from encore.storage.csv_rows import number
from encore.storage.files import write_json
from tests.support import inside, small_table
from tests.support.small_reads import figure_reads


class BarsFigure(FigureEntry):
    """A bar a system."""

    kind: Literal["bars"]
    systems: Systems
    dataset: str
    panel: PanelEntry

    def axes(self) -> PointAxes:
        return PointAxes({self.panel.label: self.panel.split}, self.systems, ["mean"])


class BarsSlice(FigureSlice):
    measured: list[str]

    def reads(self) -> dict[Path, Sequence[str] | None]:
        return {Path(folder): None for row in self.rows for folder in row.reads}


def plan_bars(plan: Plan, figure: BarsFigure) -> FigureContent:
    (panel,), _ = measured(plan, figure.dataset, [figure.panel])
    systems, notes = available(plan, figure.systems)
    rows = [
        DrawnRow(label=label, system=system, reads=[scores.folder])
        for label, system in systems.items()
        for scores in [plan.scores(system, plan.config.seeds[0], figure.dataset, panel.split)]
    ]
    return FigureContent(rows, {"measured": [panel.split, panel.measure], "dataset": figure.dataset}, notes)


def draw_bars(figure: BarsSlice) -> tuple[list[list[str]], Any]:
    split, measure = figure.measured
    values = [float(np.mean(read_scores(Path(row.reads[0]))[split, measure].values)) for row in figure.rows]
    page = style.page(6, 2, figure.title, figure.caption(), wspace=0.02)
    page.figure.subplots().barh([row.label for row in figure.rows], values)
    return [[row.label, number(value)] for row, value in zip(figure.rows, values, strict=True)], page.figure


def points(figure: BarsSlice, axes: PointAxes) -> Points:
    for row in figure.rows:
        (panel,), (place,) = axes.panels, axes.places
        reads = [Read(folder=folder) for folder in row.reads]
        yield FigurePoint(panel, row.label, place), [CellRequest(value=figure.measured[1], reads=reads)]


BARS = FigureKind(BarsFigure, plan_bars, BarsSlice, ["label", "value"], draw_bars, points)

ENTRY = """
bars:
  kind: bars
  title: A bar a system
  systems: {Plain: bert-base+marco-bm25, ICT: bert-base+ict+marco-bm25}
  dataset: msmarco-passage
  panel: {label: "RR@10", split: test, measure: "RR@10"}
"""
RECORD, DATA = Path("results/figures/bars.manifest.json"), Path("results/figures/bars.csv")


@pytest.fixture
def entries(bare: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The entries of our own figures, one of them of the new kind."""
    monkeypatch.setitem(kinds.KINDS, "bars", BARS)  # the one line
    path = bare / "config/papers/encore/figures.yaml"
    path.write_text(path.read_text() + ENTRY)
    run = Path("config/nano.yaml")
    run.write_text(run.read_text().replace("tables: {table1:", "figures: [bars]\ntables: {table1:"))
    return path


@pytest.fixture
def plan(entries: Path) -> Plan:
    return Plan(read_run(Path("config/nano.yaml")), load_catalogue())


def audited(content: dict[str, Any]) -> list[str]:
    """What an audit finds about the figure."""
    report = AuditReport()
    check_product(content, RECORD, report)
    recompute.recompute_product(MadeProduct(*kind_of_record(RECORD, content), RECORD, content), report)
    return list(map(str, report.findings))


def test_its_entries_are_checked(entries: Path) -> None:
    entries.write_text(entries.read_text().replace("  panel: {label", "  panle: {label"))
    with pytest.raises(EncoreError, match=r"bars\.panle: unknown key; did you mean panel"):
        load_catalogue()
    entries.write_text(entries.read_text().replace("kind: bars", "kind: bar"))
    with pytest.raises(EncoreError, match="unknown kind of figure 'bar'; did you mean bars"):
        load_catalogue()


def test_it_is_planned(plan: Plan) -> None:
    assert "results/figures/bars.png" in everything_declared(plan)
    check_target(plan, "results/figures/bars.svg")
    assert [artifact.stage for artifact in figure_reads(plan, "bars")] == ["evaluate"] * 2
    assert figure_plan(plan, "bars").dumped()["kind"] == "bars"
    assert set(figure_cells(plan, "bars")) == {("RR@10", name, "mean") for name in ("Plain", "ICT")}


def test_it_is_drawn_and_audited(plan: Plan) -> None:
    content = figure_plan(plan, "bars").dumped()
    for gain, artifact in enumerate(figure_reads(plan, "bars")):
        small_table.write_scores(Path(artifact.folder), 0.2 * gain, seed=0)
    said = make_product("draw", write_plan("bars", content), None, inside.files("draw", "bars", RECORD.parent))
    assert said == "figure bars: results/figures/bars.png"
    with DATA.open(newline="") as file:
        values = {line["label"]: float(line["value"]) for line in csv.DictReader(file)}
    assert values["ICT"] - values["Plain"] == pytest.approx(0.2)
    assert audited(content) == []

    DATA.write_text(DATA.read_text().replace(number(values["ICT"]), "0.9"))
    record = json.loads(RECORD.read_text())
    write_json(RECORD, record | {"outputs": record["outputs"] | {DATA.name: manifest.describe(DATA)}})
    (found,) = audited(content)
    assert "ICT" in found
    assert "0.9" in found

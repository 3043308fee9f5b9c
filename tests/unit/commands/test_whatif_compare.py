"""Which cells a change is told to change: a mean's and a gain's with those that they are made of."""

from copy import deepcopy
from pathlib import Path

import yaml

from encore.commands.whatif import _after, changed, changed_cells
from encore.config.run import RunConfig
from encore.plan.plan import Plan
from encore.products.tables.entries import Table
from encore.storage.program_files import CATALOGUE
from tests.support import inside

ROOT = Path(__file__).parents[3]
RR = {"id": "rr", "label": "RR@10", "dataset": "msmarco-passage", "split": "test", "measure": "RR@10"}
TABLE = {
    "title": "T",
    "rows": [
        {"id": "bm25", "label": "BM25", "system": "bm25"},
        {"id": "none", "label": "none", "system": "bert-base+marco-bm25"},
        {"id": "ict", "label": "ICT", "system": "bert-base+ict+marco-bm25"},
    ],
    "columns": [
        RR,
        {"id": "mean", "label": "Mean", "mean_of": ["rr"]},
        {"id": "gain", "label": "Gain", "gain": {"of": "mean", "over": "none"}},
    ],
}


def plan(catalogue, **scale) -> Plan:
    kept = deepcopy(catalogue)
    kept.tables["t"] = Table.model_validate(TABLE)
    content = yaml.safe_load((ROOT / "config/nano.yaml").read_text())
    content |= {"tables": {"t": "all"}, "scale": content["scale"] | scale}
    return Plan(RunConfig.model_validate(content), kept)


def test_a_gain_changes_with_either_of_its_rows(catalogue, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    before = plan(catalogue)
    assert changed_cells(before, plan(catalogue), "t") == []

    def changed(**scale) -> set[tuple[str, str]]:
        return {(cell.row, cell.column) for cell in changed_cells(before, plan(catalogue, **scale), "t")}

    steps = before.config.scale.steps | {"ict": {"steps": 7}}
    assert changed(steps=steps) == {("ict", "rr"), ("ict", "mean"), ("ict", "gain")}
    systems = before.config.scale.systems | {"bm25": {"k1": 1.5}}  # it gives the negatives of both others too
    assert changed(systems=systems) == {("bm25", "gain"), ("none", "rr"), ("none", "mean")} | {
        (row, column) for row in ("bm25", "ict") for column in ("rr", "mean", "gain")
    }


def test_a_value_is_the_number_that_it_is_in_the_file(tmp_path: Path) -> None:
    """YAML 1.1 takes 1e-4 for a text, 1.0e-4 for a number."""
    catalogue, _ = changed(CATALOGUE, CATALOGUE / "config.yaml", ["steps.ict.learning_rate=1e-4"], tmp_path)
    steps = [yaml.safe_load((folder / "steps.yaml").read_text()) for folder in (CATALOGUE, catalogue)]
    assert steps[0] == steps[1]


def test_an_entry_of_the_runs_own_can_be_changed(bare: Path) -> None:
    run = yaml.safe_load(Path("config/nano.yaml").read_text())
    run["backbones"] = {"mine": {"start": "random", "layers": 1, "hidden": 8, "heads": 1, "vocabulary": 300}}
    run["scale"]["backbones"]["two-tower"] = "mine"
    Path("config/own.yaml").write_text(yaml.safe_dump(run))
    after = _after(Path("config/own.yaml"), ["backbones.mine.layers=2"])
    assert after.catalogue.backbones["mine"].layers == 2


def test_what_whatif_cannot_answer_is_refused_by_the_name_of_the_run(bare: Path) -> None:
    said = inside.encore("whatif", "extends=config/small.yaml", "--config", "config/nano.yaml").stderr
    assert "error: 'extends=config/small.yaml': another run would change it all; edit the file and run" in said
    said = inside.encore("whatif", "claims=[C1]", "--config", "config/nano.yaml").stderr
    assert said.startswith("error: config/nano.yaml: ")

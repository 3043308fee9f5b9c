"""Which cells a change is told to change: a mean's and a gain's with those that they are made of."""

import json
import re
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from encore.commands.whatif import PlanChange, _after, asked_first, change_text, changed, changed_cells, hidden_by
from encore.config.run import RunConfig
from encore.plan import index
from encore.plan.artifact import upstream
from encore.plan.plan import Plan
from encore.products.tables.entries import Table
from encore.products.targets import reads_of
from encore.storage.program_files import CATALOGUE
from tests.support import inside
from tests.support.small_forecast import planned

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


@pytest.mark.parametrize(
    ("run", "change", "wins"),
    [
        ("config", "steps.ict.temperature=0.1", "scale.steps, {ict,bfs,wlp,ict-bfs-wlp} sets temperature to 0.05"),
        ("config", "steps.ict.learning_rate=0.1", "scale.steps, ict sets learning_rate to 0.0055"),
        ("nano", "steps.mlm.batch=8", "scale.pretrain sets batch to 16"),
        ("nano", "systems.hybrid.queries=9", "scale.systems, hybrid{,-doct5,-tct,-tct-doct5} sets queries to 50"),
    ],
)
def test_a_key_that_the_run_sets_itself_is_told_with_the_change_that_reaches_it(bare: Path, run, change, wins) -> None:
    plan = planned(Path(f"config/{run}.yaml"))
    said = hidden_by(plan, change) or ""
    assert said.startswith(f"{change}: in config/{run}.yaml, {wins}, which wins; ask `encore whatif scale.{change}")
    reaching = re.search(r"encore whatif (\S+?)[ `]", said)[1]
    assert hidden_by(plan, reaching) is None
    assert changed_cells(plan, _after(plan.config.file, [change]), "table1") == []
    at_all = _after(plan.config.file, [reaching])
    name, key = reaching.partition("=")[0].split(".")[-2:]
    section = getattr(at_all.config.scale, reaching.split(".")[1])
    assert section[name][key] == yaml.safe_load(change.partition("=")[2])


def test_an_entry_that_the_run_replaces_is_told_with_the_one_in_its_place(bare: Path) -> None:
    plan = planned()
    said = hidden_by(plan, "backbones.bert-base.layers=3") or ""
    assert "scale.backbones has tiny in place of bert-base; ask `encore whatif backbones.tiny.layers=3 --config" in said
    assert hidden_by(plan, "backbones.tiny.layers=3") is None
    assert hidden_by(plan, "steps.costa.temperature=0.05") is None


def test_jobs_of_what_the_run_has_made_are_counted_first_and_once(bare: Path) -> None:
    """A table and its figure are in results, and a further lineage's scores are not."""
    plan = planned(lineages=["bert-base+bow+marco-bm25"])
    records = [Path(f"results/{kind}/table1.manifest.json") for kind in ("tables", "figures")]
    for record in records:
        record.parent.mkdir(parents=True)
        record.write_text("{}")
    index.INDEX.parent.mkdir(parents=True)
    made = {**dict.fromkeys(map(str, records), "config/nano.yaml"), "results/tables/table2.manifest.json": ""}
    index.INDEX.write_text(json.dumps({"artifacts": {}, "patterns": {}, "products": made}))
    table = "results/tables/table1.csv"
    own = [each.folder for each in upstream(reads_of(plan, table)) if "tiny+ict" in each.folder]
    jobs = {"evaluate": [*own, "results/scores/other"], "table": ["table1", "table2"], "figure": ["table1"]}
    asked = asked_first(plan, jobs)
    assert asked == {
        table: {"evaluate": own, "table": ["table1"]},
        "results/figures/table1.png": {"figure": ["table1"]},
    }
    said = change_text(PlanChange(jobs, 0, 0.0, 0.0, [], [], asked), "cpu").splitlines()
    assert said[:3] == [
        f"{table}, which is made: {len(own) + 1} jobs: {len(own)} evaluate, 1 table",
        "results/figures/table1.png, which is made: 1 job: 1 figure",
        "all else that the run names: 2 jobs: 1 evaluate, 1 table",
    ]

"""The plan on disk: a cluster's job looks up what its folder is made from, and plans nothing."""

import json
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.plan import index
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.declared import declared, wanted_tables
from encore.products.tables.plan import table_plan
from encore.products.targets import find, lineage_targets, needed_by, reads_of_targets

ROOT = Path(__file__).parents[3]
RUN = "config/config.yaml"


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """What the embedded default plans, with results of its own."""
    monkeypatch.chdir(ROOT)
    return load_plan()


def written(plan: Plan, folder: Path, targets: list[str]) -> index.Index:
    """The index that a run for targets writes."""
    with pytest.MonkeyPatch.context() as patch:
        reads = reads_of_targets(plan, targets)
        patch.chdir(folder)
        index.write(RUN, reads)
        return index.read()


@pytest.mark.parametrize("lineage", ["bert-base+costa-low-500", "bert-base+marco-bm25~queries=50"])
def test_a_job_finds_all_that_an_undeclared_lineage_is_made_from(plan: Plan, tmp_path: Path, lineage: str) -> None:
    """Negatives of BM25 over fifty queries say in no name which step takes them."""
    targets = lineage_targets(plan, lineage)
    wanted = [artifact for target in targets for artifact in find(plan, str(Path(target).parent)).ancestors()]
    known = written(plan, tmp_path, targets)
    assert [artifact for artifact in wanted if artifact.folder.startswith("results/negatives/bm25-")]
    for artifact in wanted:
        assert known.find(artifact.folder) == artifact


def test_every_folder_has_its_stage_spec_inputs_and_targets(plan: Plan, tmp_path: Path) -> None:
    table = "results/tables/table1.csv"
    known = written(plan, tmp_path, [table])
    content = json.loads((tmp_path / index.INDEX).read_text())
    assert content["run"] == RUN
    for artifact in needed_by(plan, [table]):
        entry = content["artifacts"][artifact.folder]
        assert (entry["stage"], entry["spec"]) == (artifact.stage, json.loads(json.dumps(artifact.spec)))
        assert entry["inputs"] == {role: parent.folder for role, parent in artifact.inputs.items()}
        assert known.entries[artifact.folder]["targets"] == [table]
        told = {name: value for name, value in entry.items() if name != "targets"}
        assert json.loads((tmp_path / index.spec_file(artifact.folder)).read_text()) == told


def test_two_runs_of_one_folder_keep_their_own_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of the first, which a cluster starts later, tells rules apart by the names of its own configuration."""
    monkeypatch.chdir(tmp_path)
    index.write(RUN, {}, patterns={"figure": "figure4"})
    index.write("config/own.yaml", {}, patterns={"figure": "mine"})
    found = index.read()
    assert found.patterns_of(Path(RUN)) == {"figure": "figure4"}
    assert found.patterns_of(Path("config/own.yaml")) == {"figure": "mine"}
    assert found.patterns_of(tmp_path / "config/own.yaml") == {"figure": "mine"}
    assert found.patterns_of(Path("config/never.yaml")) == {}


def test_a_spec_that_somebody_edited_is_written_again(plan: Plan, tmp_path: Path) -> None:
    """A program reads it, so an edited one would make another artifact under the same folder's name."""
    targets = lineage_targets(plan, "bert-base+ict+marco-bm25")
    known = written(plan, tmp_path, targets)
    model = next(folder for folder in known.entries if "+ict-s0-" in folder and folder.startswith("results/models/"))
    place = tmp_path / index.spec_file(model)
    whole = place.read_bytes()
    place.write_bytes(whole.replace(b'"seed": 0', b'"seed": 7'))
    assert place.read_bytes() != whole
    written(plan, tmp_path, targets)
    assert place.read_bytes() == whole


def test_what_was_planned_before_stays_as_long_as_it_lies_there(plan: Plan, tmp_path: Path) -> None:
    first = written(plan, tmp_path, lineage_targets(plan, "bert-base+ict+marco-bm25"))
    model = next(folder for folder in first.entries if folder.startswith("results/models/") and "+ict-s0" in folder)
    (tmp_path / model).mkdir(parents=True)
    second = written(plan, tmp_path, lineage_targets(plan, "bert-base+mlm+marco-bm25"))
    gone = [folder for folder in first.entries if "+ict+marco-bm25-s0" in folder]
    assert model in second.entries
    assert {made.folder for made in second.find(model).ancestors()} <= second.entries.keys()
    assert gone
    assert not set(gone) & second.entries.keys()


def test_a_plan_finds_what_an_earlier_one_had(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of BM25 over fifty queries is in no name that this plan could read."""
    targets = lineage_targets(plan, "bert-base+marco-bm25~queries=50")
    known = written(plan, tmp_path, targets)
    (folder,) = (each for each in known.entries if each.startswith("results/runs/bm25-") and ".50-" in each)
    other = load_plan()
    with pytest.raises(EncoreError, match="is nothing that this configuration makes"):
        other.find(folder)
    monkeypatch.chdir(tmp_path)
    assert other.find(folder) == known.find(folder)


def test_the_index_has_what_further_jobs_make(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that the report shows because it exists, say, whose upstream folders were removed."""
    (scores, *_) = [
        find(plan, str(Path(target).parent)) for target in lineage_targets(plan, "bert-base+mlm+marco-bm25")
    ]
    monkeypatch.chdir(tmp_path)
    index.write(RUN, {}, [scores])
    known = index.read()
    assert known.find(scores.folder) == scores
    assert known.entries[scores.folder]["targets"] == []
    assert all(index.spec_file(made.folder).is_file() for made in scores.ancestors())


def test_a_rule_next_to_files_needs_what_is_declared(plan: Plan) -> None:
    table = "results/tables/table1.csv"
    assert reads_of_targets(plan, [table]).keys() == {table}
    assert reads_of_targets(plan, ["all", table]).keys() == reads_of_targets(plan, []).keys() | {table}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"artifacts": 3}', "[" * 100_000])
def test_an_index_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "index.json"
    path.write_text(content)
    assert index.read(path).get("results/models/x-s0-00000000") is None
    with pytest.raises(EncoreError, match="run snakemake, which plans and writes it"):
        index.read(path).find("results/models/x-s0-00000000")


def test_a_table_that_lies_in_results_is_looked_after_like_a_declared_one(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = table_plan(plan, "costa/table4").dumped()
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    for name in ("costa/table4", "no/table"):
        place = Path(f"results/tables/{name}.manifest.json")
        place.parent.mkdir(parents=True)
        place.write_text("{}")
    assert wanted_tables(plan) == [*plan.config.tables, "costa/table4"]
    assert declared(plan)["costa/table4"] == wanted


@pytest.mark.slow
def test_every_system_can_be_asked_for_by_name_and_found_by_its_folder(plan: Plan) -> None:
    """Though no fusion can choose its weight on collections of questions, which know no RR@10."""
    for name in plan.catalogue.systems:
        targets = lineage_targets(plan, name)
        assert targets, name
        for folder in (target.rsplit("/", 1)[0] for target in targets):
            assert folder.startswith(f"results/scores/{name}-")
            assert Plan(plan.config, plan.catalogue).find(folder).spec == plan.find(folder).spec


@pytest.mark.slow
def test_a_target_needs_what_it_is_made_from_and_no_other_table_s_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of BEIR that has to be put in place by hand stops no run that does not read it."""
    monkeypatch.chdir(ROOT)
    plan = load_plan(Path("config/paper.yaml"))
    collections = {
        target: {
            made.name.rpartition("-")[0] for made in needed_by(plan, [target]) if made.stage.startswith("collection")
        }
        for target in (
            "results/tables/costa/table4.csv",
            "results/figures/costa/figure4.png",
            "results/tables/beir.csv",
            "results/claims.csv",
        )
    }
    assert not any(name.startswith("beir-") for name in collections["results/tables/costa/table4.csv"])
    assert any(name.startswith("beir-") for name in collections["results/tables/beir.csv"])
    assert collections["results/claims.csv"] >= collections["results/tables/beir.csv"]
    assert collections["results/figures/costa/figure4.png"] == {
        "msmarco-passage",
        "msmarco-passage-titles",
        "wikipedia",
    }
    assert {made.folder for made in needed_by(plan, [])} > {
        made.folder for made in needed_by(plan, ["results/tables/table1.csv"])
    }

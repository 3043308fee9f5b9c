"""The plan: resolution order, identity of artifacts, and what a change renames."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan.catalogue import read_dataset, read_step
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.kinds import BY_RULE
from encore.products.tables.plan import table_plan
from encore.products.targets import check_target, everything_declared, lineage_targets
from tests.support.shipped import run_file

ROOT = Path(__file__).parents[3]
NANO = run_file("nano")
ICT = "bert-base+ict+marco-bm25+marco-hn"
pytestmark = pytest.mark.usefixtures("at_the_root")


def folders(plan):
    table_plan(plan, "table1").dumped()
    return set(plan.made)


def test_the_order_of_resolution_is_catalogue_scale_name(make):
    plan = make()
    catalogue = read_step(plan.catalogue.steps["ict"])
    scaled = plan.resolve.step(plan.resolve.lineage("bert-base+ict").steps[0])
    named = plan.resolve.step(plan.resolve.lineage("bert-base+ict~temperature=0.5").steps[0])
    assert (catalogue.temperature, scaled.temperature, named.temperature) == (1.0, 0.05, 0.5)
    assert (catalogue.batch, scaled.batch) == (8192, 16)
    assert named.batch == 16


PASSAGES = {"kind": "beir", "path": "/proc/nowhere", "access": "ask", "splits": {"train": {"role": "train"}}}


@pytest.mark.parametrize("step", ["bfs", "wlp", "ict-bfs-wlp"])
def test_an_objective_that_reads_articles_is_refused_where_there_are_passages_only(make, step):
    """Before any job, and not by the training after hours of others."""
    datasets = dict.fromkeys(NANO["scale"]["datasets"], "Own")
    plan = make({"datasets": {"Own": PASSAGES}, "scale": NANO["scale"] | {"datasets": datasets}})
    assert plan.model(plan.resolve.lineage("bert-base+ict"), 0)
    with pytest.raises(EncoreError, match=r"articles with .* links, and 'Own' \(kind beir\) has passages only"):
        plan.model(plan.resolve.lineage(f"bert-base+{step}"), 0)
    assert make().model(make().resolve.lineage(f"bert-base+{step}"), 0)


def test_a_folder_is_named_by_lineage_seed_and_digest(make):
    plan = make()
    artifact = plan.model(plan.resolve.lineage(ICT), 0)
    assert artifact.folder.startswith("results/models/tiny+ict+marco-bm25+marco-hn-s0-")
    assert plan.find(artifact.folder) is artifact


def test_the_spec_names_everything_upstream(make):
    plan = make()
    model = plan.model(plan.resolve.lineage(ICT), 0)
    assert set(model.inputs) == {"tokens", "weights", "collection", "negatives"}
    assert all(model.spec[role] == artifact.name for role, artifact in model.inputs.items())


def test_an_artifact_says_in_a_few_words_what_it_is(make):
    plan = make()
    tuned = plan.model(plan.resolve.lineage("bert-base+ict+marco-bm25"), 0)
    start = tuned.inputs["weights"].inputs["weights"]
    assert tuned.inputs["weights"].about == (
        "ict, from tiny-s0, 17 steps, batch 16, learning rate 0.003, 64 tokens, on pydocs-stdlib"
    )
    assert tuned.about.startswith("contrastive, from tiny+ict-s0, 1.0 epochs, batch 16, learning rate 0.001, 64 tokens")
    assert start.about == "2 layers, hidden 128, 8192 wordpieces, on wikipedia"


def test_a_lineage_whose_model_only_scores_pairs_has_no_run_of_its_own(make):
    plan = make({"lineages": ["bert-base+colbert"]})
    model = plan.model(plan.resolve.lineage("bert-base+colbert"), 0)
    with pytest.raises(EncoreError, match="late-interaction scorer, whose texts have no single vector"):
        plan.scores("bert-base+colbert", 0, "msmarco-passage", "test")
    assert lineage_targets(plan, "bert-base+colbert") == [model.manifest]
    assert make().find(model.folder) == model, "found from its name alone"
    student = plan.scores("bert-base+colbert+marco-bm25", 0, "msmarco-passage", "test")
    assert student.inputs["run"].inputs["model"].inputs["weights"] is model


def test_one_objectives_field_renames_exactly_its_descendants(make):
    before, after = folders(make()), folders(make(steps={"ict": {"temperature": 0.1}}))
    assert before ^ after
    assert all("+ict" in folder for folder in before ^ after)
    assert {folder for folder in before if "+ict" in folder}.isdisjoint(after)


def test_the_recipe_renames_no_pretraining(make):
    before, after = folders(make()), folders(make(steps={"marco-bm25": {"learning_rate": 0.002}}))
    tuned = {folder for folder in before if "+marco-bm25" in folder}
    pretrained = {folder for folder in before - tuned if "+ict-s0-" in folder}
    assert tuned
    assert pretrained
    assert before - after == tuned


def test_shards_are_in_no_digest(make):
    one, two = make(), make({"execution": {"shards": 2}})
    assert {f for f in folders(one) if "/indexes/" not in f} == {f for f in folders(two) if "/indexes/" not in f}


def test_a_search_by_shard_is_in_no_digest_and_takes_a_job_for_each_of_several_shards(make, tmp_path, monkeypatch):
    """Not by default. It adds the hits, and leaves every other folder with its name and its spec."""
    monkeypatch.chdir(tmp_path)
    whole, apart = (make({"execution": {"shards": 3, "search_by_shard": asked}}) for asked in (False, True))
    before, after = folders(whole), folders(apart)
    hits = after - before
    assert before == folders(make({"execution": {"shards": 3}}))
    assert before < after
    assert {folder.split("/")[1] for folder in hits} == {"hits"}
    assert {apart.made[folder].stage for folder in hits} == {"search_shard"}
    assert all(whole.made[folder].spec == apart.made[folder].spec for folder in before)
    runs = [apart.made[folder] for folder in before if apart.made[folder].stage == "search"]
    assert len(hits) == 3 * len(runs)
    for run in runs:
        assert run.inputs.keys() == {"model", "tokens", "collection", "hit0", "hit1", "hit2"}
        parts = [run.inputs[f"hit{number}"] for number in range(3)]
        assert [each.inputs["shard0"].name for each in parts] == ["000-of-003", "001-of-003", "002-of-003"]
        assert [each.name for each in parts] == ["000-of-003", "001-of-003", "002-of-003"]
        read = [whole.made[run.folder].inputs[f"shard{number}"].folder for number in range(3)]
        assert [each.inputs["shard0"].folder for each in parts] == read
    latencies = [plan.latency(ICT, 0, "msmarco-passage", "test") for plan in (whole, apart)]
    assert len({json.dumps({role: made.folder for role, made in each.inputs.items()}) for each in latencies}) == 1
    assert folders(make({"execution": {"search_by_shard": True}})) == folders(make()), (
        "one shard is searched by one job"
    )


def test_finished_runs_and_hits_serve_however_searches_are_configured(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def made_from(asked):
        plan = make({"execution": {"shards": 2, "search_by_shard": asked}})
        run = plan.scores("bert-base+marco-bm25", 0, "msmarco-passage", "test").inputs["run"]
        return run, {made.folder for role, made in run.inputs.items() if role.startswith(("hit", "shard"))}

    (run, shards), (_, hits) = made_from(False), made_from(True)
    Path(run.folder).mkdir(parents=True)
    Path(run.manifest).touch()
    assert made_from(True)[1] == made_from(False)[1] == shards
    for folder in hits:
        Path(folder).mkdir(parents=True)
        Path(folder, "manifest.json").touch()
    assert made_from(True)[1] == made_from(False)[1] == hits


def test_how_vectors_are_stored_renames_them_and_what_is_searched(make):
    """A model that learns from no mined negatives stays, and so do BM25's runs."""
    full, half = make(), make({"numerics": NANO["numerics"] | {"vectors": "fp16"}})
    before, after = folders(full), folders(half)
    kinds = {folder.split("/")[1] for folder in before - after}
    assert {"indexes", "runs", "negatives"} <= kinds
    assert not any("+marco-hn" not in folder and "/models/" in folder for folder in before - after)
    assert {half.made[folder].spec.get("vectors") for folder in after - before if "/000-of-001" in folder} == {"fp16"}
    assert all("vectors" not in artifact.spec for artifact in full.made.values()), "the default renames nothing"


def test_trainings_in_bf16_and_no_others_carry_the_version_of_its_arithmetic(make):
    plain, half = make(), make({"numerics": NANO["numerics"] | {"precision": "bf16"}})
    for plan in (plain, half):
        plan.model(plan.resolve.lineage(ICT), 0)
    assert all("bf16" not in made.spec.get("numerics", {}) for made in plain.made.values())
    carry = {made.stage.partition(".")[0] for made in half.made.values() if made.spec.get("numerics", {}).get("bf16")}
    assert carry == {"pretrain", "finetune"}


def test_compiled_layers_are_part_of_trainings_alone_and_the_default_renames_nothing(make):
    plain, fast = make(), make({"numerics": NANO["numerics"] | {"compiled": True}})
    for plan in (plain, fast):
        plan.model(plan.resolve.lineage(ICT), 0)
    assert all("compiled" not in made.spec.get("numerics", {}) for made in plain.made.values())
    named = [made for made in fast.made.values() if "compiled" in made.spec.get("numerics", {})]
    assert {made.stage.partition(".")[0] for made in named} == {"pretrain", "finetune"}


def test_a_deterministic_gpu_is_another_model_and_the_default_renames_nothing(make):
    plain, repeated = make(), make({"numerics": NANO["numerics"] | {"deterministic": True}})
    trained = {folder for folder in folders(repeated) if "numerics" in repeated.made[folder].spec}
    assert not trained & folders(plain)
    assert any("/models/" in folder for folder in trained)
    assert all(repeated.made[folder].spec["numerics"]["deterministic"] is True for folder in trained)
    assert all("deterministic" not in made.spec.get("numerics", {}) for made in plain.made.values())


def test_finished_vectors_serve_whatever_number_of_shards_is_configured(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shards = [folder for folder in folders(make()) if folder.endswith("/000-of-001")]
    for folder in shards:
        Path(folder).mkdir(parents=True)
        Path(folder, "manifest.json").touch()
    assert shards
    assert folders(make({"execution": {"shards": 2}})) == folders(make())
    Path(shards[0], "manifest.json").unlink()
    split = folders(make({"execution": {"shards": 2}})) - folders(make())
    assert split == {str(Path(shards[0]).with_name(name)) for name in ("000-of-002", "001-of-002")}


def test_a_source_or_a_title_is_in_no_digest(make, catalogue):
    assert folders(make()) == folders(make({"title": "another"}))
    step = deepcopy(catalogue.steps)
    step["ict"]["source"] = "said differently"
    told = Plan(RunConfig.model_validate(NANO), type(catalogue)(**{**vars(catalogue), "steps": step}))
    assert folders(make()) == folders(told)


def test_seeds_share_texts_but_no_models(make):
    zero, one = folders(make()), folders(make({"seeds": [1]}))
    assert not [f for f in zero & one if "/models/" in f]
    assert [f for f in zero & one if "/collections/" in f]


def test_the_plan_is_plain_json_and_the_same_every_time(make):
    assert json.dumps(table_plan(make(), "table1").dumped()) == json.dumps(table_plan(make(), "table1").dumped())


def test_a_target_may_be_spelled_as_snakemake_takes_it(make):
    for target in ("./results/tables/table1.csv", str(ROOT / "results/tables/table1.csv")):
        check_target(make(), target)


def test_an_old_or_mistaken_folder_is_told_the_name_of_this_configuration(make):
    plan = make()
    name = plan.model(plan.resolve.lineage("bert-base+ict"), 0).name
    with pytest.raises(EncoreError, match=name.replace("+", r"\+")):
        plan.find(f"results/models/{name[:-8]}00000000")


def test_an_undeclared_lineage_is_found_from_its_folder_alone(make):
    lineage = "bert-base+costa~temperature=0.05+marco-bm25"
    targets = lineage_targets(make(), lineage)
    assert len(targets) == 1
    fresh = make()
    check_target(fresh, targets[0])
    run = fresh.find(str(Path(targets[0]).parent)).inputs["run"]
    assert make().find(run.folder).spec == run.spec


UNKNOWN = {
    "tabel1": ["target 'tabel1' is not a file of results/", "results/tables/table1.csv"],
    "results/foo": ["target 'results/foo' is not a file of results/"],
    "results/tables/tabel1.csv": ["there is no table 'tabel1'; did you mean table1 or "],
    "results/tables/table7.csv": ["there is no table 'table7'; did you mean table2 or table1 or "],
    "results/tables/table1.doc": ["tables are written as .csv, .json, .md, .tex, .html, .manifest.json"],
    "results/tables/pretraining.csv": ["there is no table 'pretraining'"],
    "results/figures/pretraining.pdf": ["figures are written as .png, .svg, .csv, .manifest.json"],
    "results/models/x/manifest.json": ["is nothing that this configuration makes", "`encore targets`"],
    "results/models/tiny+itc+marco-bm25-s0-01234567/manifest.json": ["unknown step 'itc'; did you mean tct or ict?"],
    "results/models/tyni+ict-s0-01234567/manifest.json": ["unknown backbone 'tyni'; did you mean tiny"],
    "results/models/tiny+ict~temprature=0.1-s0-01234567/manifest.json": ["'temprature'; did you mean temperature?"],
    "results/models/tiny+ict~temperature=0.10-s0-01234567/manifest.json": ["spelled 'tiny+ict~temperature=0.1'"],
    "results/models/tiny+ict~temperature=0.05-s0-01234567/manifest.json": ["its value already; leave it out"],
    "results/models/tiny+ict-s0-01234567/manifest.json": ["was made by another configuration", "tiny+ict-s0-"],
    "results/logs/audit.log": ["is not a target"],
    "results/plan/table1.json": ["is not a target"],
}


@pytest.mark.parametrize("target", UNKNOWN)
def test_an_unknown_target_is_refused_in_one_line(make, target):
    with pytest.raises(EncoreError) as refused:
        check_target(make(), target)
    assert "\n" not in str(refused.value)
    assert all(part in str(refused.value) for part in UNKNOWN[target]), refused.value


def test_a_figure_of_a_table_without_a_control_is_refused_before_any_job(make):
    plan = make({"tables": {"table2": ["Recipes: tct"]}})
    said = r"^figures/table2: no objective of this table is compared"
    with pytest.raises(EncoreError, match=said):
        check_target(plan, "results/figures/table2.png")
    with pytest.raises(EncoreError, match=said):
        BY_RULE["figure"].slice(plan, "table2")


def test_every_declared_target_is_a_target(make):
    plan = make()
    for target in everything_declared(plan):
        check_target(plan, target)


def test_every_entry_says_where_its_values_come_from(catalogue):
    sources = {f"backbone {name}": entry.source for name, entry in catalogue.backbones.items()}
    sources |= {f"step {name}": entry.get("source") for name, entry in catalogue.steps.items()}
    sources |= {f"system {name}": entry.source for name, entry in catalogue.systems.items()}
    assert sources.keys() >= {"backbone tiny", "step ict", "system bm25"}
    assert [name for name, source in sources.items() if not source] == []


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("seeds", "five-seeds")]


@pytest.mark.parametrize("name", ["config", "nano", *SLOW])
def test_every_shipped_configuration_plans(name):
    path = ROOT / f"config/{name}.yaml"
    if not path.is_file():
        pytest.fail(f"{path} is missing")
    plan = load_plan(path)
    assert everything_declared(plan)


def test_a_reported_number_is_part_of_the_tables_plan(make, tmp_path, monkeypatch):
    monkeypatch.setattr("encore.products.tables.reported.PAPERS", tmp_path)
    (tmp_path / "encore").mkdir()
    file = tmp_path / "encore/table1.csv"
    plan = make()
    table = plan.catalogue.tables["table1"].model_copy(update={"reported": "table1.csv"})
    monkeypatch.setitem(plan.catalogue.tables, "table1", table)
    with pytest.raises(EncoreError, match="are missing"):
        table_plan(plan, "table1").dumped()
    file.write_text("row_label,dataset,metric,value\nBERT,d,m,0.335\n")
    before = table_plan(plan, "table1").dumped()
    file.write_text("row_label,dataset,metric,value\nBERT,d,m,0.336\n")
    after = table_plan(plan, "table1").dumped()
    assert {key for key in before if before[key] != after[key]} == {"reported_sha256"}


def test_a_split_that_training_uses_is_called_by_its_role():
    dataset = {"kind": "beir", "path": "x", "splits": {"dev": {"role": "valid"}}}
    with pytest.raises(ValueError, match="'valid'"):
        read_dataset(dataset)


def test_a_figure_is_a_target_only_where_a_difference_can_be_drawn(make):
    assert "results/figures/table1.png" in everything_declared(make())
    assert "results/figures/table1.png" not in everything_declared(make({"tables": {"table1": ["bm25", "none"]}}))

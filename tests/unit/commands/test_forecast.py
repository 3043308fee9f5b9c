"""What ``encore preflight`` says and refuses: missing and finished jobs, limits, unknown sizes, machines by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import inside
import pytest

from encore.commands.preflight import downloads, forecast_text, machine
from encore.commands.preflight.fetches import Fetches
from encore.commands.preflight.first_training import first_training
from encore.commands.preflight.forecast import PRODUCTS, Forecast, forecast
from encore.commands.preflight.jobs import TRAINING, Jobs
from encore.commands.preflight.machine import MACHINES
from encore.commands.preflight.rates import SHIPPED, read_rates
from encore.commands.preflight.sizes import SIZES, CollectionSizes, read_stated
from encore.config.run import Limits
from encore.config.validation import read_yaml
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan

ROOT = Path(__file__).parents[3]
RUN = Path("config/nano.yaml")


def planned(**changes: Any) -> Plan:
    return load_plan(RUN, {**read_yaml(RUN), **changes})


def estimate(plan: Plan, name: str = "cpu", gpus: int = 1, tables: tuple[str, ...] = ()) -> Forecast:
    known = machine.find_machine(name, MACHINES)
    return forecast(plan, tables, known, read_rates(SHIPPED), gpus, known.cores, SIZES)


def finish(artifact: Artifact, **content: Any) -> None:
    """Let an artifact look finished."""
    folder = Path(artifact.folder)
    folder.mkdir(parents=True)
    made = {"spec": {}, "results": {}, "inputs": {}, "outputs": {"file": {"bytes": 1000}}, **content}
    (folder / "manifest.json").write_text(json.dumps(made))
    run = {"seconds": 8.0, "peak_memory_mb": 300, "device": "cpu", "python": "3.11", "packages": {}}
    (folder / "run.json").write_text(json.dumps(run))


def test_before_anything_is_made_everything_is_missing(bare: Path) -> None:
    found = estimate(planned())
    assert len(found.missing) == len(found.jobs) > 30
    rules = {rule.rule: rule for rule in found.rules}
    assert rules["pretrain"].missing == 1
    assert rules["finetune"].missing == 5
    assert rules["table"].missing == rules["figure"].missing == 1
    assert all(rule.seconds > 0 for rule in found.rules)
    assert found.schedule.wall >= found.schedule.critical_seconds > 0


def test_what_is_finished_is_not_made_again_nor_what_it_was_made_from(bare: Path) -> None:
    plan = planned()
    before = estimate(plan)
    model = next(job.artifact for job in before.jobs if job.rule == "pretrain")
    finish(model)
    after = estimate(plan)
    assert {rule.rule: rule.finished for rule in after.rules}["pretrain"] == 1
    assert len(before.missing) - len(after.missing) == 1
    collection = next(job.artifact for job in before.jobs if job.rule == "collection")
    assert collection.folder in {job.artifact.folder for job in after.missing}, "others still need it"


def test_a_finished_root_needs_nothing_behind_it(bare: Path) -> None:
    plan = planned()
    for job in estimate(plan).jobs:
        if job.rule == "evaluate":
            finish(job.artifact)
    found = estimate(plan)
    assert {job.rule for job in found.missing} == {"table", "figure"}


def test_cheaper_products_shorten_searches_on_a_gpu_and_nothing_else(bare: Path) -> None:
    numerics = read_yaml(RUN)["numerics"]
    seconds = {}
    for products in ("fp32", "tf32", "fp16"):
        found = estimate(planned(numerics={**numerics, "search": products}), "a100-80gb")
        searches = [job for job in found.missing if job.rule == "search"]
        seconds[products] = {rule.rule: rule.seconds for rule in found.rules}
        assert {job.precision("fp32") for job in searches} == {"bf16" if products == "fp16" else products}
    assert seconds["fp16"].pop("search") < seconds["tf32"].pop("search") < seconds["fp32"].pop("search")
    assert seconds["fp16"] == seconds["tf32"] == seconds["fp32"]


def test_gpus_shorten_the_wall_but_not_below_the_chain(bare: Path) -> None:
    one, four = (estimate(planned(), "a100-80gb", gpus) for gpus in (1, 4))
    assert four.schedule.wall <= one.schedule.wall
    assert four.schedule.critical_seconds == one.schedule.critical_seconds <= four.schedule.wall
    assert four.gpu_hours == pytest.approx(one.gpu_hours)
    assert one.energy_kwh > 0


def test_larger_batches_than_fit_are_parted(bare: Path) -> None:
    steps = read_yaml(RUN)["scale"]["steps"] | {"ict": {"batch": 8192, "steps": 1}}
    backbones = {"bert-base": "bert-base", "bert-base-tct": "bert-base-tct", "bert-base-random": "tiny-random"}
    plan = planned(scale=read_yaml(RUN)["scale"] | {"steps": steps, "backbones": backbones})
    small, large = estimate(plan, "l4"), estimate(plan, "h200")
    assert small.gpu_memory <= 24e9 < large.gpu_memory
    assert any("examples at once" in note for note in small.notes)


@pytest.mark.parametrize("limit", list(Limits.model_fields))
def test_every_limit_refuses_by_name(bare: Path, limit: str) -> None:
    found = estimate(planned(), "l4")
    object.__setattr__(found, "downloads", [downloads.Download("made-up", "source", 5e9, 0.0, "")])
    complaints = found.complaints(Limits(**{limit: 1e-9}))
    assert [complaint.split(":")[0] for complaint in complaints] == [f"limits.{limit}"]
    assert found.peak_disk > 5e9, "a download lies on the disk too"
    assert found.complaints(Limits(**{limit: 1e9})) == []


@pytest.mark.parametrize(
    ("name", "refused"),
    [("v100-32gb", ["bf16", "tf32"]), ("t4", ["bf16", "tf32"]), ("cpu", ["tf32"]), ("l4", [])],
)
def test_a_machine_that_lacks_the_precision_is_refused_before_a_job_is(
    bare: Path, name: str, refused: list[str]
) -> None:
    found = {each: estimate(planned(numerics={"precision": each}), name) for each in ("fp32", "tf32", "bf16")}
    about = {each: [line for line in one.complaints(Limits()) if "precision" in line] for each, one in found.items()}
    assert sorted(each for each, lines in about.items() if lines) == refused
    for each in refused:
        (line,) = about[each]
        assert line.startswith(f"numerics.precision: {found[each].machine.device} does not compute in {each}; set ")
        assert "precision: fp32`" in line
        assert found[each].gpu_hours == pytest.approx(found["fp32"].gpu_hours)


def test_vectors_that_are_removed_after_use_take_less_disk(bare: Path) -> None:
    kept, removed = estimate(planned()), estimate(planned(execution={"keep_vectors": False}))
    models = sorted(kept.disk_of(job) for job in kept.jobs if job.rule == "encode")
    at_once = 1 + removed.cores
    assert len(models) > at_once
    assert kept.disk["indexes"] - removed.disk["indexes"] == pytest.approx(sum(models[:-at_once]))
    assert kept.disk.keys() == removed.disk.keys()


def test_vectors_that_a_search_encodes_again_are_missing(bare: Path) -> None:
    shard = next(job.artifact for job in estimate(planned()).jobs if job.rule == "encode")
    Path(shard.folder).mkdir(parents=True)
    manifest = {"stage": "encode", "spec": shard.spec, "results": {}, "inputs": {}, "outputs": {}}
    Path(shard.manifest).write_text(json.dumps(manifest))
    Path(shard.folder, "index").write_bytes(b"vectors")
    assert shard.folder not in {job.artifact.folder for job in estimate(planned()).missing}
    Path(shard.folder, "index").write_bytes(b"")
    assert shard.folder in {job.artifact.folder for job in estimate(planned()).missing}


def test_too_little_free_disk_is_refused(bare: Path) -> None:
    found = estimate(planned())
    object.__setattr__(found, "free", 10.0)
    assert any(complaint.startswith("disk: ") for complaint in found.complaints(Limits()))


def test_the_program_refuses_with_1_and_says_why(bare: Path) -> None:
    run = read_yaml(RUN) | {"limits": {"disk_gb": 0.001, "wall_hours": 1e-6}}
    Path("config/tight.yaml").write_text(json.dumps(run))
    done = inside.encore("preflight", "--config", "config/tight.yaml")
    assert done.returncode == 1
    beyond = [line for line in done.stdout.splitlines()[:20] if line.startswith("beyond: limits.")]
    assert [line.split(".")[1].split(":")[0] for line in beyond] == ["disk_gb", "wall_hours"]
    assert max(map(len, done.stdout.splitlines())) <= forecast_text.WIDTH


def test_json_holds_what_the_text_says(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned()
    found = estimate(plan)
    content = json.loads(json.dumps(forecast_text.forecast_json(found, ["x"])))
    assert content["jobs"]["missing"] == len(found.missing)
    assert content["complaints"] == ["x"]
    assert {rule["rule"] for rule in content["rules"]} == {rule.rule for rule in found.rules}
    assert content["disk"]["peak"] == pytest.approx(sum(found.disk.values()))


def test_the_first_training_of_the_longest_chain_starts_when_its_preparations_are_there(bare: Path) -> None:
    found = estimate(planned())
    first = first_training(found.missing, found.schedule)
    assert first is not None
    assert first.last is not None
    place = found.schedule.critical.index(first.folder)
    jobs = {job.artifact.folder: job for job in found.missing}
    rules = [jobs[folder].rule for folder in found.schedule.critical[: place + 1]]
    assert rules[0] == "collection"
    assert [rule in TRAINING for rule in rules] == [*([False] * place), True]
    assert first.seconds >= found.schedule.begins[first.last] + found.seconds(jobs[first.last]) > 0
    assert first.last in {part.folder for part in jobs[first.folder].artifact.inputs.values()}
    line = f"training   after {forecast_text.duration(first.seconds)}, the first of that chain; last before it: "
    assert line in forecast_text.forecast_text(found)
    assert forecast_text.forecast_json(found, [])["first_training"] == first._asdict()


def test_texts_of_all_runs_are_part_of_no_digest_and_take_disk(bare: Path) -> None:
    tables, everything = (planned(execution={"text_runs": which}) for which in ("tables", "all"))
    found = [estimate(plan) for plan in (tables, everything)]
    folders = [[job.artifact.folder for job in each.jobs] for each in found]
    assert folders[0] == folders[1]
    assert found[0].disk["runs"] < found[1].disk["runs"]


def test_where_nothing_is_trained_no_training_starts(bare: Path) -> None:
    found = estimate(planned(tables={"table1": ["bm25"]}))
    assert not any(job.rule in ("pretrain", "finetune") for job in found.missing)
    assert "training " not in forecast_text.forecast_text(found)
    assert forecast_text.forecast_json(found, [])["first_training"] is None


def test_a_rule_that_was_not_measured_is_named_and_taken_for_any_other(bare: Path) -> None:
    found, strange = estimate(planned()), Artifact("divine", "results/divined/x-00000000", {})
    job = Jobs(planned(), found.sizes, found.machine, Fetches(planned(), {})).of(strange)
    object.__setattr__(found, "missing", [*found.missing, job])
    assert "nothing is known of rule divine; it is taken to start and to do no more" in found.notes
    assert found.seconds(job) == found.rates.rules["other"].seconds.stated["start"]
    known = {job.rule for job in found.jobs} - PRODUCTS
    assert all(f"rule {rule};" not in note for note in found.notes for rule in known)


def test_any_table_of_the_catalogue_is_estimated_and_no_other(bare: Path) -> None:
    declared, paper = estimate(planned(), tables=("table1",)), estimate(planned(), tables=("costa/table4",))
    assert {job.rule for job in paper.jobs} >= {"pretrain", "finetune", "table"}
    assert {job.artifact.folder for job in paper.jobs} != {job.artifact.folder for job in declared.jobs}
    with pytest.raises(EncoreError, match="no table, figure or target 'costa/tabel4'; did you mean costa/table4"):
        estimate(planned(), tables=("costa/tabel4",))


def test_a_figure_and_the_claims_are_estimated_too(bare: Path) -> None:
    figure, claims = estimate(planned(), tables=("label_efficiency",)), estimate(planned(), tables=("claims",))
    assert "table" not in {job.rule for job in figure.jobs}
    assert {job.rule for job in figure.jobs} >= {"pretrain", "finetune", "evaluate"}
    of_a_table = {
        job.artifact.folder for job in estimate(planned(), tables=("costa/table4",)).jobs if job.rule == "finetune"
    }
    assert of_a_table < {job.artifact.folder for job in claims.jobs}


@pytest.mark.parametrize("flag", ["--gpus=0", "--cores=-1", "--gpus=many"])
def test_a_count_below_one_is_refused(bare: Path, flag: str) -> None:
    done = inside.encore("preflight", flag)
    assert done.returncode == 2
    assert "is no whole number above 0" in done.stderr
    assert "Traceback" not in done.stderr


def test_limits_are_part_of_no_digest(bare: Path) -> None:
    names = [
        {job.artifact.folder for job in estimate(planned(**more)).jobs} for more in ({}, {"limits": {"ram_gb": 4}})
    ]
    assert names[0] == names[1]


def test_an_unknown_size_is_named(bare: Path) -> None:
    own = {"kind": "beir", "path": "data/own", "splits": {"test": {"role": "test", "measures": {"RR@10": "RR@10"}}}}
    plan = planned(datasets={"own": own})
    size = CollectionSizes(plan, read_stated(SIZES)).of("own-00000000")
    assert size.topics("test") > 0
    assert any("passages unknown" in note for note in size.notes)
    assert any("queries of test unknown" in note for note in size.notes)


def test_published_counts_come_before_stated_ones(bare: Path) -> None:
    plan = planned(scale=read_yaml(RUN)["scale"] | {"datasets": {}})
    size = CollectionSizes(plan, read_stated(SIZES)).of("msmarco-passage-00000000")
    assert size.passages.count == 8_841_823
    assert size.topics("test") == 6_980
    assert size.topics("train") == 502_939 - 6_980
    assert size.topics("train", 100) == 100


def test_a_part_of_a_collection_is_as_large_as_it_says(bare: Path) -> None:
    parts = {
        "some": {"kind": "subset", "of": "msmarco-passage", "passages": 50_000, "train_queries": 700},
        "pages": {"kind": "subset", "of": "wikipedia", "articles": 70_000},
    }
    split = {"train": {"role": "train"}, "test": {"role": "test", "measures": {"RR@10": "RR@10"}}}
    parts["some"]["splits"] = split
    plan = planned(datasets=parts)
    sizes = CollectionSizes(plan, read_stated(SIZES))
    some, pages, whole = (sizes.of(f"{name}-00000000") for name in ("some", "pages", "wikipedia"))
    assert (some.passages.count, some.topics("train"), some.topics("test")) == (50_000, 700, 6_980)
    assert pages.sections.count == pytest.approx(whole.sections.count * 70_000 / whole.articles.count)
    assert (pages.passages.count, whole.passages.count) == (0, 0), "they are only pre-trained on"
    assert sizes.of("msmarco-passage-00000000").passages.count == 8_841_823, "the whole is as it was"


def test_counts_of_a_made_collection_come_before_all(bare: Path) -> None:
    folder = bare / "results/collections/pydocs-stdlib-00000000"
    folder.mkdir(parents=True)
    counted = {"passages": 77, "sections": 5, "sentences": 9, "splits": {"test": {"queries": 3}}}
    (folder / "statistics.json").write_text(json.dumps(counted))
    size = CollectionSizes(planned(), read_stated(SIZES)).of("pydocs-stdlib-00000000")
    assert (size.passages.count, size.topics("test"), size.origin) == (77, 3, "counted")


def test_an_unknown_machine_has_a_nearest_name(bare: Path) -> None:
    with pytest.raises(EncoreError, match="did you mean a100-80gb"):
        machine.find_machine("a100-80g", MACHINES)


@pytest.mark.parametrize("name", read_yaml(ROOT / MACHINES))
def test_every_named_machine_is_faster_than_a_core_if_it_has_a_gpu(bare: Path, name: str) -> None:
    found, core = estimate(planned(), name), estimate(planned())
    trainings = [job for job in found.jobs if job.rule == "finetune"]
    faster = [found.seconds(job) < core.seconds(job) for job in trainings]
    assert faster == [name != "cpu"] * 5
    assert (found.gpu_hours > 0) == (name != "cpu")


@pytest.mark.parametrize(
    ("count", "says"), [(None, "unknown"), (0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e11, "250 GB")]
)
def test_bytes_have_the_unit_that_suits(count: float | None, says: str) -> None:
    assert forecast_text.size(count) == says


@pytest.mark.parametrize(("seconds", "says"), [(3, "3 s"), (90, "1.5 min"), (7200, "2.0 h"), (864000, "10.0 d")])
def test_times_have_the_unit_that_suits(seconds: float, says: str) -> None:
    assert forecast_text.duration(seconds) == says

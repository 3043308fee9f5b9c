"""What ``encore preflight`` says and refuses: missing and finished jobs, limits, unknown sizes, machines by name."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from encore.commands.preflight import downloads, forecast_text, machines
from encore.commands.preflight import forecast as preflight
from encore.commands.preflight.forecast import forecast
from encore.commands.preflight.machines import MACHINES
from encore.commands.preflight.sizes import SIZES, CollectionSizes, read_stated
from encore.config.run import Limits
from encore.config.validation import read_yaml
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, upstream
from tests.support import inside
from tests.support.quick_first import quick_first
from tests.support.results_pages import RECORDING
from tests.support.small_forecast import RUN, estimate, planned

ROOT = Path(__file__).parents[3]


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
    rules = found.rules
    assert (rules["pretrain"].jobs, rules["finetune"].jobs) == (1, 5)
    assert rules["table"].jobs == rules["figure"].jobs == 1
    assert {name for name, needs in rules.items() if needs.operations} == {"pretrain", "finetune", "encode", "search"}
    assert all(needs.ram > 0 for needs in rules.values())
    assert sum(needs.jobs for needs in rules.values()) == found.total.jobs == len(found.missing)


def test_what_is_finished_is_not_made_again_nor_what_it_was_made_from(bare: Path) -> None:
    plan = planned()
    before = estimate(plan)
    model = next(job.artifact for job in before.jobs if job.rule == "pretrain")
    finish(model)
    after = estimate(plan)
    assert "pretrain" not in after.rules
    assert len(before.missing) - len(after.missing) == 1
    collection = next(job.artifact for job in before.jobs if job.rule == "collection")
    assert collection.folder in {job.artifact.folder for job in after.missing}, "others still need it"


def test_a_finished_root_needs_nothing_behind_it(bare: Path) -> None:
    plan = planned()
    for job in estimate(plan).jobs:
        if job.rule in ("evaluate", "pretrain"):  # of the table, and of the figure of losses
            finish(job.artifact)
    found = estimate(plan)
    assert {job.rule for job in found.missing} == {"table", "figure"}


def test_a_folder_that_a_killed_job_left_is_made_again_with_all_that_was_made_from_it(bare: Path) -> None:
    """As Snakemake does: tests/trust/test_kills.py."""
    plan = planned()
    jobs = estimate(plan).jobs
    for job in jobs:
        finish(job.artifact) if job.artifact.inputs or job.rule == "collection" else None
    left = next(job.artifact for job in jobs if job.rule == "pretrain")
    (Path(left.folder) / "manifest.json").unlink()
    behind = {job.artifact.folder for job in jobs if left in upstream([job.artifact])}
    assert {job.artifact.folder for job in estimate(plan).missing} == behind
    assert len(behind) > 5
    shutil.rmtree(left.folder)
    rules = [job.rule for job in estimate(plan).missing]
    assert rules == ["pretrain", "table", "figure"], "both read it, and were never made"


def test_larger_batches_than_fit_are_parted(bare: Path) -> None:
    steps = read_yaml(RUN)["scale"]["steps"] | {"ict": {"batch": 8192, "steps": 1}}
    backbones = {"bert-base": "bert-base", "bert-base-tct": "bert-base-tct", "bert-base-random": "tiny-random"}
    plan = planned(scale=read_yaml(RUN)["scale"] | {"steps": steps, "backbones": backbones})
    small, large = estimate(plan, "l4"), estimate(plan, "h200")
    assert small.total.gpu_memory <= 24e9 < large.total.gpu_memory
    assert any("examples at once" in note for note in small.notes)


@pytest.mark.parametrize("limit", list(Limits.model_fields))
def test_every_limit_refuses_by_name(bare: Path, limit: str) -> None:
    found = estimate(planned(), "l4")
    object.__setattr__(found, "downloads", [downloads.Download("made-up", "source", 5e9, 0.0, "")])
    object.__setattr__(found, "free", 1e15)  # a full disk of this machine would be refused, too
    complaints = found.complaints(Limits(**{limit: 1e-9}))
    assert [complaint.split(":")[0] for complaint in complaints] == [f"limits.{limit}"]
    assert found.peak_disk > 5e9, "a download lies on the disk too"
    assert found.complaints(Limits(**{limit: 1e9})) == []


@pytest.mark.parametrize(
    ("name", "refused"), [("v100-32gb", ["bf16", "tf32"]), ("t4", ["bf16", "tf32"]), ("cpu", ["tf32"]), ("l4", [])]
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
        assert found[each].total.gpu_hours == pytest.approx(found["fp32"].total.gpu_hours)


def test_what_compiled_layers_need_is_said_before_a_job_is(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is refused where it trains; of another one nobody knows here."""
    monkeypatch.setattr(preflight, "lacks_to_compile", lambda: "a C compiler")
    plan = planned(numerics={"compiled": True})
    here, there = estimate(plan, "cpu"), estimate(plan, "l4")
    said = "numerics.compiled: trainings need a C compiler, which this machine has not; install it first"
    assert said in here.complaints(Limits())
    assert not any("compiled" in line for line in there.complaints(Limits()))
    assert there.notes[0].startswith("numerics.compiled: machines that train need a C compiler")
    assert not any("compiled" in line for line in estimate(planned(), "cpu").complaints(Limits()))


def test_vectors_that_are_removed_after_use_take_less_disk(bare: Path) -> None:
    kept, removed = estimate(planned()), estimate(planned(execution={"keep_vectors": False}))
    models = sorted(job.needs.vectors for job in kept.jobs if job.rule == "encode")
    at_once = 1 + removed.gpus
    assert len(models) > at_once
    assert kept.disk["vectors"] - removed.disk["vectors"] == pytest.approx(sum(models[:-at_once]))
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
    run = read_yaml(RUN) | {"limits": {"disk_gb": 0.001, "ram_gb": 1e-6}}
    Path("config/tight.yaml").write_text(json.dumps(run))
    done = inside.encore("preflight", "--config", "config/tight.yaml")
    assert done.returncode == 1
    problems = [line for line in done.stdout.splitlines()[:20] if line.startswith("problem: limits.")]
    assert [line.split(".")[1].split(":")[0] for line in problems] == ["disk_gb", "ram_gb"]
    assert max(map(len, done.stdout.splitlines())) <= forecast_text.WIDTH


def test_json_holds_what_the_text_says(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned()
    found = estimate(plan)
    content = json.loads(json.dumps(forecast_text.forecast_json(found, ["x"])))
    assert content["missing"]["jobs"] == len(found.missing)
    assert content["complaints"] == ["x"]
    assert content["rules"].keys() == found.rules.keys()
    assert content["disk"]["peak"] == pytest.approx(sum(found.disk.values()))


def test_any_table_of_the_catalogue_is_estimated_and_no_other(bare: Path) -> None:
    declared, paper = estimate(planned(), tables=("table1",)), estimate(planned(), tables=("costa/table4",))
    assert {job.rule for job in paper.jobs} >= {"pretrain", "finetune", "table"}
    assert {job.artifact.folder for job in paper.jobs} != {job.artifact.folder for job in declared.jobs}
    with pytest.raises(EncoreError, match="no table, figure or target 'costa/tabel4'; did you mean costa/table4"):
        estimate(planned(), tables=("costa/tabel4",))


@pytest.mark.slow
def test_a_figure_and_the_claims_are_estimated_too(bare: Path) -> None:
    figure, claims = estimate(planned(), tables=("label_efficiency",)), estimate(planned(), tables=("claims",))
    assert "table" not in {job.rule for job in figure.jobs}
    assert {job.rule for job in figure.jobs} >= {"pretrain", "finetune", "evaluate"}
    of_a_table = {
        job.artifact.folder for job in estimate(planned(), tables=("costa/table4",)).jobs if job.rule == "finetune"
    }
    assert of_a_table < {job.artifact.folder for job in claims.jobs}


@pytest.mark.parametrize("flag", ["--gpus=0", "--gpus=-1", "--gpus=many"])
def test_a_count_below_one_is_refused(bare: Path, flag: str) -> None:
    done = inside.encore("preflight", flag)
    assert done.returncode == 2
    assert "is not a whole number above 0" in done.stderr
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
    assert any("passages unknown" in note for note in size.assumed)
    assert any("queries of test unknown" in note for note in size.assumed)


def test_of_articles_that_are_there_nothing_is_assumed(bare: Path) -> None:
    sections = [{"title": "", "level": 2, "paragraphs": ["Five words are in here."]}] * 2
    article = {"_id": "a", "title": "A", "links": [], "sections": sections}
    Path("articles.jsonl").write_text(json.dumps(article) + "\n")
    plan = planned(datasets={"own": {"kind": "encyclopedia", "path": "articles.jsonl"}})
    size = CollectionSizes(plan, read_stated(SIZES)).of("own-00000000")
    assert (size.sections.count, size.articles.count, size.passages.count, size.notes) == (2, 1, 0, [])


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
    assert (size.passages.count, size.topics("test"), size.notes) == (77, 3, [])
    (folder / "statistics.json").write_text("[" * 100_000)
    damaged = CollectionSizes(planned(), read_stated(SIZES)).of("pydocs-stdlib-00000000")
    assert damaged.passages.count > 77, "as without it"


def test_an_unknown_machine_has_a_nearest_name(bare: Path) -> None:
    with pytest.raises(EncoreError, match="did you mean a100-80gb"):
        machines.find_machine("a100-80g", MACHINES)


@pytest.mark.parametrize("name", read_yaml(ROOT / MACHINES))
def test_every_named_gpu_has_hours_and_the_processor_has_none(bare: Path, name: str) -> None:
    found = estimate(planned(), name)
    assert found.total.operations > 0
    assert (found.total.gpu_hours > 0) == (found.total.gpu_memory > 0) == (name != "cpu")
    text = " ".join(forecast_text.forecast_text(found).split())
    assert ("GPU-hours with --machine" in text) == (name == "cpu")


@pytest.mark.parametrize(("name", "peak"), [("h200", 0.2 * 989e12), ("a100-80gb", 0.35 * 312e12)])
def test_operations_at_the_peak_and_its_utilisation_are_gpu_hours(bare: Path, name: str, peak: float) -> None:
    training = estimate(planned(numerics={"precision": "bf16"}), name).rules["pretrain"]
    assert training.gpu_hours == pytest.approx(training.operations / peak / 3600)


def test_gpu_hours_are_near_what_an_h100_took() -> None:
    """Operations a second of what was measured; texts as MS MARCO's with four workers, as ``paper.yaml`` has them."""
    record = json.loads((ROOT / "benchmarks/results/gpu/gpu-nvidia-h100-80gb-hbm3.json").read_text())["measured"]
    rows = [*record["data"]["full"], *record["data"]["packed"], record["finetuning"]["rows"][0]]
    expected = machines.find_machine("h100-80gb").flops_a_second("bf16")
    assert expected is not None
    for row in rows:
        reached = row["utilisation"] * record["peaks"]["bf16_tflops"] * 1e12
        assert expected / 2.4 < reached < 2 * expected


@pytest.mark.parametrize("name", quick_first(["demo", "ten-seeds", "real-zero-shot", "real-two-tower"]))
def test_core_hours_are_within_a_factor_of_two_of_what_recorded_runs_took(bare: Path, name: str) -> None:
    run, products = RECORDING.RECORDINGS[name]
    (bare / "data/squad-v1.1-dev").mkdir(parents=True)
    (bare / "data/squad-v1.1-dev/dev-v1.1.json").write_text('{"data": []}')  # all sizes are stated
    said = (bare / run).read_text()
    (bare / run).write_text(re.sub(r"(path: data/(?:cranfield|cacm))(,|\n *)", r"\1\2access: later\2", said))
    plan = planned(Path(run))
    targets = [f"results/{product}" for product in products]
    found = forecast(plan, targets, machines.find_machine("cpu"))
    took = json.loads((ROOT / f"docs/recorded/{name}/run.json").read_text())["cpu_hours"]
    assert took / 2 < found.core_hours < 2 * took
    assert f"about {found.core_hours:,.1f} core-hours" in forecast_text.forecast_text(found)
    on_gpu = forecast(plan, targets, machines.find_machine("l4"))
    assert 0 < on_gpu.core_hours < found.core_hours


def test_the_papers_scale_is_estimated_on_one_screen(bare: Path) -> None:
    found = estimate(planned(Path("config/paper.yaml")), "h100-80gb", 8)
    assert len(found.jobs) > 1000
    assert found.total.gpu_hours > 500
    assert found.disk["vectors"] < 0.3e12, "of the models on 8 GPUs, and of one more"
    assert len(forecast_text.forecast_text(found).splitlines()) < 60


@pytest.mark.parametrize(
    ("count", "says"), [(None, "unknown"), (0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e11, "250 GB")]
)
def test_bytes_have_the_unit_that_suits(count: float | None, says: str) -> None:
    assert forecast_text.size(count) == says


@pytest.mark.parametrize(("hours", "says"), [(0.0, "less than 0.1"), (0.1, "about 0.1"), (1234.56, "about 1,235")])
def test_hours_are_never_all_zeros(hours: float, says: str) -> None:
    assert forecast_text.about(hours, 1) == says


def test_the_forecast_says_before_a_run_what_makes_its_comparisons_unfair():
    """As nano is: its control alone reads more than an epoch, and few questions choose it."""
    short, coarse = (
        "4 fine-tunings read 0.40 of an epoch or little more, and others 1.36",
        "one is more than a gain of 0.01",
    )
    unfair = estimate(planned(), tables=("table1",)).notes
    assert [sum(text in note for note in unfair) for text in (short, coarse)] == [1, 1]
    changes = read_yaml(RUN)
    changes["scale"]["steps"]["control"] |= {"validate_every": None, "steps_per_epoch": 1}
    fair = estimate(planned(**changes), tables=("table1",)).notes
    assert not [note for note in fair if "of an epoch" in note or "more than a gain" in note]

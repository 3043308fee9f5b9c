"""What plans say of checkpoints: which commit, which folder or source, and what a model without a step reads."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from encore import stages
from encore.commands.preflight.forecast import forecast
from encore.commands.preflight.machines import find_machine
from encore.commands.preflight.shapes import shape_of
from encore.commands.show_config import config_text
from encore.config import checkpoints
from encore.config.entries import Backbone
from encore.config.run import RunConfig
from encore.config.systems import T5, read_expansion, read_system
from encore.errors import EncoreError
from encore.plan import folders
from encore.plan.artifact import Artifact, Topics
from encore.plan.artifacts.doc2query import doc2query_model
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.catalogue import load_plan
from encore.products.targets import everything_declared
from encore.storage.files import sha256
from tests.support.shipped import run_file
from tests.support.small_adapters import adapter
from tests.support.small_published import of_sentence_transformers

ROOT = Path(__file__).parents[3]
NANO = run_file("nano")
RELEASED = {"seed", "retromae", "simcse", "costa", "bow", "tct", "tct-hn-plus"}

pytestmark = pytest.mark.usefixtures("at_the_root")


def fetched(plan: Plan) -> list[Artifact]:
    """Everything from the network among what has been planned so far."""
    return [artifact for artifact in plan.made.values() if artifact.stage in stages.that("fetches")]


def plan_of(catalogue: Catalogue, **backbones: Any) -> Plan:
    """A plan of nano with backbones, or keys of the run, of its own."""
    run = {key: backbones.pop(key) for key in ("tables", "lineages", "execution", "scale") if key in backbones}
    own = {name: Backbone.model_validate({"start": "checkpoint", **fields}) for name, fields in backbones.items()}
    known = replace(catalogue, backbones={**catalogue.backbones, **own}) if own else catalogue
    return Plan(RunConfig.model_validate(NANO | run), known)


def begun(plan: Plan, backbone: str):
    return plan.model(plan.resolve.lineage(backbone), 0)


def test_every_released_model_is_a_backbone_that_says_where_it_is_from(catalogue: Catalogue) -> None:
    for name in RELEASED:
        backbone = catalogue.backbones[f"{name}-released"]
        assert backbone.checkpoint
        assert backbone.source
    plan = plan_of(catalogue)
    stages = {name: begun(plan, f"{name}-released").inputs["checkpoint"].stage for name in RELEASED}
    assert stages == dict.fromkeys(RELEASED - {"seed"}, "fetch_checkpoint") | {"seed": "fetch_source"}


def test_a_checkpoint_is_fetched_for_its_vocabulary_and_for_its_weights(catalogue: Catalogue) -> None:
    plan = plan_of(catalogue)
    model = begun(plan, "costa-released")
    brought = model.inputs["checkpoint"]
    assert brought.folder.startswith("results/checkpoints/xyma--costa-wiki-")
    assert brought.spec["id"] == "xyma/COSTA-wiki"
    assert model.inputs["tokenizer"].inputs == {"checkpoint": brought}
    assert brought in fetched(plan)
    assert plan_of(catalogue).find(brought.folder).spec == brought.spec
    assert folders.named(plan, "xyma/COSTA-wiki") == [brought.manifest]


@pytest.mark.slow
def test_the_embedded_default_fetches_no_checkpoint(catalogue: Catalogue) -> None:
    def stages(run: str) -> set[str]:
        plan = load_plan(ROOT / f"config/{run}.yaml")
        everything_declared(plan)
        return {artifact.stage for artifact in fetched(plan)}

    assert "fetch_checkpoint" in stages("paper")
    assert "fetch_checkpoint" not in stages("config")


def test_another_commit_is_another_model(catalogue: Catalogue) -> None:
    own = {name: {"checkpoint": "a/b", "revision": digit * 40} for name, digit in (("one", "1"), ("two", "2"))}
    plan = plan_of(catalogue, free={"checkpoint": "a/b"}, **own)
    models = [begun(plan, name) for name in ("free", "one", "two")]
    assert len({model.inputs["tokenizer"].name for model in models}) == 3
    assert len({model.name.rpartition("-")[2] for model in models}) == 3


def test_the_commit_of_a_t5_is_that_of_its_download_alone(catalogue: Catalogue) -> None:
    def model(**given: str) -> Artifact:
        said = {"kind": "t5", "collection": "msmarco-passage", "steps": 1, "batch": 1, "learning_rate": 1}
        fields = read_expansion(said | given)
        assert isinstance(fields, T5)
        return doc2query_model(plan_of(catalogue), "t5-base", fields)

    free, pinned = model(checkpoint="a/b"), model(checkpoint="a/b", revision="1" * 40)
    assert pinned.inputs["checkpoint"].spec["revision"] == "1" * 40
    assert free.inputs["checkpoint"].spec["revision"] is None
    assert "revision" not in free.spec["expansion"] | pinned.spec["expansion"]
    assert free.name != pinned.name
    with pytest.raises(ValueError, match="`revision:` is the commit of a `checkpoint:`, and there is none"):
        model(backbone="tiny", revision="1" * 40)


def test_every_checkpoint_of_the_hub_has_a_commit_or_a_reason_for_none() -> None:
    """Read as text: a comment above a group of entries is about all of them."""
    text = (ROOT / "config/backbones.yaml").read_text() + (ROOT / "config/doc2query.yaml").read_text()
    parts = [part for part in re.split(r"\n\n(?=# )", text) if "commit is named" not in part]
    entries = [entry for part in parts for entry in part.split("\n\n") if "checkpoint: " in entry]
    assert len(entries) > 5
    assert [entry for entry in entries if "revision: " not in entry] == []


def test_a_folder_that_is_missing_is_told_by_its_name(catalogue: Catalogue) -> None:
    plan = plan_of(catalogue, own={"checkpoint": "./nope", "pooling": "mean"}, lineages=["own"])
    (missing,) = (each for each in forecast(plan, [], find_machine(None)).downloads if each.kind == "by hand")
    assert (missing.name, missing.bytes) == ("nope", None)
    with pytest.raises(EncoreError, match=r"^nope is missing; put it there, or correct its name in the configuration$"):
        folders.refuse_missing(plan, [begun(plan, "own")])


def test_a_folder_counts_by_its_content_wherever_it_lies(catalogue: Catalogue, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "README.md"):
        (first / name).write_text(f'{{"file": "{name}"}}')
    second = Path(shutil.copytree(first, tmp_path / "second"))

    def names() -> list[str]:
        plan = plan_of(catalogue, one={"checkpoint": str(first)}, two={"checkpoint": str(second)})
        return [begun(plan, name).name.rpartition("-")[2] for name in ("one", "two")]

    same = names()
    assert same[0] == same[1]
    (second / "README.md").write_text("other words")
    assert names() == same
    (second / "model.safetensors").write_text("other weights")
    assert names()[0] == same[0] != names()[1]
    plan = plan_of(catalogue, one={"checkpoint": str(first)})
    assert begun(plan, "one").source == str(first)
    assert not [artifact for artifact in fetched(plan) if artifact.stage == "fetch_checkpoint"]
    (first / "tokenizer.json").unlink()
    with pytest.raises(EncoreError, match="first lacks a vocabulary"):
        begun(plan_of(catalogue, one={"checkpoint": str(first)}), "one")


def test_an_adapter_counts_by_its_own_content_and_its_bases(catalogue: Catalogue, tmp_path: Path) -> None:
    base, own, both = tmp_path / "base", tmp_path / "own", {"adapter_config.json", "adapter_model.safetensors"}
    base.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (base / name).write_text(f'{{"file": "{name}"}}')

    def start(of: str) -> Artifact:
        adapter(own, of, {"query": (8, 8)})
        return begun(plan_of(catalogue, own={"checkpoint": str(own), "sha256": {"config.json": "0" * 64}}), "own")

    first = start(str(base))
    assert (first.source, "checkpoint" in first.inputs) == (str(own), False)
    assert {*both, "base/model.safetensors"} < first.spec["content"].keys()
    assert first.spec["sha256"] == {"config.json": "0" * 64}, "of the base: compared in the job"
    (base / "model.safetensors").write_text("other weights")
    assert start(str(base)).name != first.name
    fetched = start("someone/base")
    assert (fetched.source, fetched.spec["content"].keys()) == (str(own), both)
    assert fetched.inputs["checkpoint"].spec["id"] == "someone/base"
    assert fetched.inputs["tokenizer"].inputs["checkpoint"] is fetched.inputs["checkpoint"]


def test_a_folder_that_is_not_there_yet_is_planned_by_its_name(catalogue: Catalogue, tmp_path: Path) -> None:
    plan = plan_of(catalogue, own={"checkpoint": "./data/models/mine"})
    assert begun(plan, "own").spec["content"] == {"absent": "mine"}
    assert [checkpoints.is_folder(name) for name in ("bert-base-uncased", "a/b", "a/b/c", "../a", "/a")] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_a_released_retriever_answers_without_a_step_as_its_authors_read_texts(catalogue: Catalogue) -> None:
    plan = plan_of(catalogue)
    lineage = plan.resolve.lineage("tct-released")
    assert plan.resolve.lengths(lineage) == (154, 36)
    run = plan.run("tct-released", 0, "msmarco-passage", Topics("test", 1000))
    assert run.spec["query_length"] == 36
    assert run.inputs["model"].spec["backbone"]["augment"] is True
    assert plan.resolve.lengths(plan.resolve.lineage("bert-base-tct")) == (160, 160), (
        "stands for a model that says nothing of it"
    )
    ours, theirs = (
        catalogue.backbones[name].model_dump(exclude={"checkpoint", "revision", "length", "query_length"})
        for name in ("bert-base-tct", "tct-hn-plus-released")
    )
    assert ours == theirs


def test_nothing_small_stands_for_published_weights(catalogue: Catalogue) -> None:
    plan = load_plan()
    released = {name for name in catalogue.backbones if name.endswith("-released")}
    assert len(released) > 6
    assert released <= plan.config.scale.absent.keys()
    with pytest.raises(EncoreError, match="not testable here: these are weights that somebody trained"):
        plan.resolve.lineage("retromae-released+marco-bm25")


def test_a_forecast_counts_a_checkpoint_once_and_not_what_lies_there(catalogue: Catalogue, tmp_path: Path) -> None:
    plan = plan_of(catalogue, tables={}, lineages=["tct-released"], execution={"data_root": str(tmp_path)})

    def missing() -> dict[str, float | None]:
        found = forecast(plan, (), find_machine(None))
        return {each.name: each.missing for each in found.downloads if each.kind == "checkpoint"}

    (before,) = missing().values()
    assert before == pytest.approx(4 * 109.5e6, rel=0.01)
    place = tmp_path / "checkpoints" / "castorini--tct_colbert-v2-msmarco"
    place.mkdir(parents=True)
    (place / "pytorch_model.bin").write_text("weights")
    assert missing() == {"castorini/tct_colbert-v2-msmarco": 0.0}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"start": "random", "checkpoint": "a/b"}, "`start: random` reads no `checkpoint:`"),
        ({"start": "random", "revision": "1" * 40}, "`revision:` is the commit of a `checkpoint:`"),
        ({"start": "checkpoint", "checkpoint": "a/b", "revision": "main"}, "revision"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Backbone.model_validate(fields)


def test_a_checkpoint_without_a_name_is_refused(catalogue: Catalogue) -> None:
    with pytest.raises(EncoreError, match="needs the field 'checkpoint'"):
        begun(plan_of(catalogue, own={}), "own")


def test_an_archive_with_two_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match=r"has no config\.json"):
        checkpoints.inside(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    with pytest.raises(EncoreError, match=r"more than one config\.json"):
        checkpoints.inside(tmp_path)


def local(place: Path, **said: Any) -> Path:
    """A user's folder of sentence-transformers, as far as planning reads it."""
    place.mkdir()
    config = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    (place / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 512, **said}))
    for name, text in {"model.safetensors": "", "tokenizer.json": "{}"}.items():
        (place / name).write_text(text)
    of_sentence_transformers(place, length=256, prompts={"query": "query: "})
    return place


def test_a_folder_needs_no_shape_by_hand_and_says_where_its_values_are_from(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    plan = plan_of(catalogue, own={"checkpoint": str(local(tmp_path / "own"))})
    spec = begun(plan, "own").spec["backbone"]
    assert (spec["layers"], spec["hidden"], spec["pooling"], spec["similarity"]) == (6, 384, "mean", "cosine")
    assert plan.resolve.lengths(plan.resolve.lineage("own")) == (256, 256)
    assert shape_of(begun(plan, "own")).layers == 6
    told = config_text(plan, "own")
    line = next(line for line in told.splitlines() if line.startswith("  pooling "))
    assert line.split() == ["pooling", "mean", f"{tmp_path}/own/1_Pooling/config.json"]
    with pytest.raises(EncoreError, match=r"backbone 'own'.*says pooling 'mean'"):
        begun(plan_of(catalogue, own={"checkpoint": str(tmp_path / "own"), "pooling": "cls"}), "own")


def test_prompts_that_tokens_reach_over_are_part_of_the_store(catalogue: Catalogue, tmp_path: Path) -> None:
    bert, roberta = local(tmp_path / "bert"), local(tmp_path / "roberta", model_type="roberta")
    plan = plan_of(catalogue, bert={"checkpoint": str(bert)}, roberta={"checkpoint": str(roberta)})
    stores = [plan.tokens("pydocs", plan.resolve.named_backbone(name)) for name in ("bert", "roberta")]
    assert [store.spec.get("prompts") for store in stores] == [None, {"queries": "query: ", "passages": ""}]


def test_an_encoder_by_transformers_code_is_fine_tuned_and_not_pre_trained(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    plan = plan_of(catalogue, own={"checkpoint": str(local(tmp_path / "own", model_type="roberta"))})
    assert plan.model(plan.resolve.lineage("own+marco-bm25"), 0).stage == "finetune"
    with pytest.raises(EncoreError, match=r"own\+mlm: 'own' runs by Transformers' code"):
        plan.model(plan.resolve.lineage("own+mlm"), 0)


def test_a_pinned_file_that_changed_is_refused_when_planning(catalogue: Catalogue, tmp_path: Path) -> None:
    place = local(tmp_path / "own")
    pinned = {"checkpoint": str(place), "sha256": {"tokenizer.json": sha256(place / "tokenizer.json")}}
    same = begun(plan_of(catalogue, own=pinned), "own").name
    assert same == begun(plan_of(catalogue, own={"checkpoint": str(place)}), "own").name
    (place / "tokenizer.json").write_text('{"other": 1}')
    with pytest.raises(EncoreError, match=r"tokenizer\.json has the sha256"):
        begun(plan_of(catalogue, own=pinned), "own")
    remote = {"checkpoint": "a/b", "sha256": {"config.json": "0" * 64}}
    assert begun(plan_of(catalogue, own=remote), "own").spec["sha256"] == remote["sha256"]


def test_a_checkpoint_as_it_is_has_one_value_whatever_the_seeds(catalogue: Catalogue) -> None:
    plan = plan_of(catalogue, given={"checkpoint": "a/b"}, wider={"checkpoint": "a/b", "projection_dim": 64})
    chance = {name: plan.resolve.has_chance(name) for name in ("given", "given@hnsw", "given+marco-bm25", "wider")}
    assert chance == {"given": False, "given@hnsw": False, "given+marco-bm25": True, "wider": True}
    runs = {plan.run("given", seed, "msmarco-passage", Topics("test", 10)).folder for seed in (None, 0, 1)}
    assert len(runs) == 1


def test_what_ranks_again_with_a_checkpoint_as_it_is_has_no_seed_in_its_name(catalogue: Catalogue) -> None:
    again = replace(
        catalogue,
        systems={**catalogue.systems, "again": read_system({"kind": "rerank", "first": "bm25", "ranker": "given"})},
    )
    plan = plan_of(again, given={"checkpoint": "a/b"})
    assert not plan.resolve.has_chance("again")
    run = plan.run("again", None, "msmarco-passage", Topics("test", 10))
    assert re.fullmatch(r"again-[0-9a-f]{8}", run.owner)
    assert plan.find(run.folder) is run

"""Backbones that start from the model of a lineage: shared by all seeds, and refused before anything is planned."""

from pathlib import Path

import pytest
import yaml

from encore.config.entries import Backbone
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue, check_starts

TINY = yaml.safe_load((Path(__file__).parents[3] / "config/backbones.yaml").read_text())["tiny"]
STEPS = {"mlm": {"kind": "pretrain"}, "marco-bm25": {"kind": "finetune"}}


def refusal(**backbones: dict[str, object]) -> str:
    found = {name: Backbone.model_validate(fields) for name, fields in {"tiny": TINY, **backbones}.items()}
    with pytest.raises(EncoreError) as error:
        check_starts(found, STEPS, "backbones.yaml")
    return str(error.value)


def started(lineage: str | None, **changes: object) -> dict[str, object]:
    return {**TINY, "start": "lineage", "lineage": lineage, **changes}


@pytest.mark.parametrize(
    ("backbones", "says"),
    [
        ({"a": started(None)}, "backbones.yaml: a: lineage: is missing; name the lineage"),
        ({"a": started("tiny++mlm")}, "backbones.yaml: a: lineage: lineage 'tiny++mlm'"),
        ({"a": started("tyni+mlm")}, "backbones.yaml: a: lineage: unknown backbone 'tyni'; did you mean tiny?"),
        ({"a": started("tiny+mml")}, "backbones.yaml: a: lineage: unknown step 'mml'; did you mean mlm?"),
        ({"a": started("tiny+marco-bm25")}, "'marco-bm25' is fine-tuning; a start has learned from texts alone"),
        ({"a": started("a+mlm")}, "'a' starts from itself (a from a); name another"),
        ({"a": started("b+mlm"), "b": started("a+mlm")}, "'a' starts from itself (a from b from a); name another"),
        ({"a": started("tiny+mlm", hidden=64)}, "hidden is 64 here and 128 in 'tiny', whose weights are taken"),
    ],
)
def test_a_start_that_cannot_be_is_refused_with_its_place(backbones: dict[str, object], says: str) -> None:
    assert says in refusal(**backbones)


def test_a_lineage_belongs_to_its_own_kind_of_start() -> None:
    with pytest.raises(ValueError, match="`start: lsa` reads no `lineage:`"):
        Backbone.model_validate({**TINY, "lineage": "tiny+mlm"})


@pytest.fixture
def trained(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backbone that starts from MLM on the texts, and another one that pools its states otherwise."""
    for name, pooling in (("small-bert", "cls"), ("small-bert-mean", "mean")):
        backbone = Backbone.model_validate(started("tiny+mlm~steps=20", pooling=pooling))
        monkeypatch.setitem(catalogue.backbones, name, backbone)


@pytest.mark.usefixtures("at_the_root", "trained")
def test_all_seeds_and_rows_share_one_trained_start(make) -> None:
    plan = make({"seeds": [0, 1]})
    ict = [plan.model(plan.resolve.lineage("small-bert+ict"), seed) for seed in (0, 1)]
    none = plan.model(plan.resolve.lineage("small-bert"), 1)
    assert ict[0].folder != ict[1].folder
    assert ict[0].inputs["weights"] is ict[1].inputs["weights"] is none
    assert none.folder.startswith("results/models/small-bert-s0-")
    source = plan.model(plan.resolve.lineage("tiny+mlm~steps=20"), 0)
    assert none.inputs["pretrained"] is source
    assert none.spec["pretrained"] == source.name
    assert none.inputs["tokenizer"] is source.inputs["weights"].inputs["tokenizer"]
    assert plan.find(none.folder) is none
    mean = plan.model(plan.resolve.lineage("small-bert-mean"), 0)
    assert (mean.inputs["pretrained"], mean.folder == none.folder) == (source, False)


@pytest.mark.usefixtures("at_the_root")
def test_seeds_share_a_published_model_as_it_is_unless_something_of_it_is_drawn(
    make, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = catalogue.backbones["bert-tiny"]
    monkeypatch.setitem(catalogue.backbones, "headed", published.model_copy(update={"projection_dim": 64}))
    plan = make({"seeds": [0, 1]})
    for name, shared in (("bert-tiny", True), ("headed", False)):
        first, second = (plan.model(plan.resolve.lineage(name), seed) for seed in (0, 1))
        assert (first is second or first.folder == second.folder) is shared, name


@pytest.mark.usefixtures("at_the_root", "trained")
def test_another_budget_of_the_start_renames_all_that_comes_of_it(make) -> None:
    before, after = (
        {name: plan.model(plan.resolve.lineage(name), 0).folder for name in ("small-bert+ict", "tiny+ict")}
        for plan in (make(), make(steps={"mlm": {"learning_rate": 1e-5}}))
    )
    assert before["small-bert+ict"] != after["small-bert+ict"]
    assert before["tiny+ict"] == after["tiny+ict"]

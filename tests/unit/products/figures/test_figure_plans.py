"""Figures of the catalogue: their plans under every shipped run, targets, and mistakes in one line."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue, load_plan
from encore.products.declared import declared
from encore.products.figures import kinds as drawings
from encore.products.figures.plan import figure_plan
from encore.products.targets import PAGE, check_target, everything_declared
from tests.support.shipped import run_file
from tests.support.small_reads import figure_reads

ROOT = Path(__file__).parents[4]
NANO = run_file("nano")
# Every figure of the papers that shows results, and our own.
FIGURES = {"tct_colbert/figure2", *(f"bow/figure{number}" for number in (2, 3, 4, 5)), "costa/figure3", "costa/figure4"}
FIGURES |= {"cpdae/table4", "label_efficiency", "corpus_growth"}

pytestmark = pytest.mark.usefixtures("at_the_root")


def make(figures=None, asked=(), **changes):
    content = deepcopy(NANO) | {"tables": {}} | changes
    if figures is not None:
        content["scale"] = content["scale"] | {"figures": figures}
    plan = Plan(RunConfig.model_validate(content), load_catalogue())
    plan.asked = asked
    return plan


def test_every_figure_that_shows_results_is_there():
    assert set(load_catalogue().figures) == FIGURES


@pytest.mark.parametrize("run", ["config", "nano", "paper", "seeds", "small"])
def test_every_figure_is_planned_and_its_slice_can_be_drawn(run):
    plan = load_plan(ROOT / f"config/{run}.yaml")
    for name in FIGURES:
        content = figure_plan(plan, name).dumped()
        drawn = drawings.KINDS[content["kind"]].slice.model_validate(json.loads(json.dumps(content)))
        folders = {artifact.folder for artifact in figure_reads(plan, name)}
        assert folders == {str(folder) for folder in drawn.reads()}
        assert folders
        check_target(plan, f"results/figures/{name}.svg")


def test_what_is_declared_or_lies_in_results_is_looked_after(tmp_path, monkeypatch):
    plan = make(figures={}, **{"lineages": []})
    figure_plan(plan, "bow/figure2").dumped()
    monkeypatch.chdir(tmp_path)
    record = Path("results/figures/bow/figure2.manifest.json")
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    assert "bow/figure2" in declared(plan)
    assert everything_declared(plan) == [PAGE]
    record.unlink()
    content = deepcopy(NANO) | {"tables": {}, "figures": ["cpdae/table4"]}
    plan = Plan(RunConfig.model_validate(content), plan.catalogue)
    assert everything_declared(plan) == ["results/figures/cpdae/table4.png", PAGE]
    assert set(declared(plan)) == {"cpdae/table4"}


@pytest.mark.parametrize(
    ("figures", "name", "says"),
    [
        ({}, "bow/figure6", "no figure 'bow/figure6'; did you mean bow/figure"),
        ({"bow/figure2": {"kss": [1, 2]}}, "bow/figure2", "kss: unknown key; did you mean ks"),
        ({"bow/figure2": {"systems": {"x": "bert-base+bwo"}}}, "bow/figure2", "did you mean bow"),
        ({"bow/figure2": {"kind": "words"}}, "bow/figure2", "kind"),
        ({"costa/figure3": {"split": "tset"}}, "costa/figure3", "no split 'tset'"),
        ({"costa/figure4": {"crossover": ["bert"]}}, "costa/figure4", "'bert' is not a line"),
        ({"costa/figure4": {"sizes": [{"stepp": "x"}]}}, "costa/figure4", "a size cannot fill"),
        ({"costa/figure4": {"levels": {"x": "bert-base+marco-bm25"}}}, "costa/figure4", "draw it as a line"),
        ({"costa/figure4": {"panels": [{"label": "x", "split": "test", "measure": "RR@1"}]}}, "costa/figure4", "RR@10"),
        ({"tct_colbert/figure2": {"systems": {"x": "bm25"}}}, "tct_colbert/figure2", "not a lineage searched exactly"),
    ],
)
def test_a_mistake_is_said_in_one_line(figures, name, says):
    with pytest.raises(EncoreError, match=says) as refused:
        check_target(make(figures), f"results/figures/{name}.png")
    assert "\n" not in str(refused.value)


def test_a_scale_of_no_figure_is_refused():
    with pytest.raises(EncoreError, match=r"scale\.figures: unknown name 'bow/figure7'"):
        make({"bow/figure7": {}})


def test_an_entry_of_no_kind_is_refused(tmp_path):
    papers = tmp_path / "papers/mine"
    papers.mkdir(parents=True)
    for path in (ROOT / "config").glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())
    (papers / "figures.yaml").write_text("figure1: {kind: pie, title: x}\n")
    with pytest.raises(EncoreError, match=r"figures\.yaml: figure1: unknown kind of figure 'pie'"):
        load_catalogue(tmp_path)


def test_what_a_run_cannot_have_is_left_out_with_the_reason():
    content = deepcopy(NANO) | {"tables": {}}
    content["scale"]["absent"] = content["scale"].get("absent", {}) | {"bow-released": "nobody has it"}
    content["scale"]["figures"] = {"bow/figure2": {"systems": {"BoW": "bow-released", "BERT": "bert-base"}}}
    plan = Plan(RunConfig.model_validate(content), load_catalogue())
    drawn = figure_plan(plan, "bow/figure2").dumped()
    assert [row["label"] for row in drawn["rows"]] == ["BERT"]
    assert "BoW is not testable here: nobody has it." in drawn["notes"]


def test_samples_of_queries_have_models_of_their_own():
    plan = make()
    (costa, *_) = figure_plan(plan, "costa/figure4").dumped()["rows"]
    smallest = {point["sample"]: point["models"][0] for point in costa["points"] if point["size"] == 0}
    assert sorted(smallest) == [0, 1, 2]
    assert "costa-low-500-s0" in smallest[0]
    assert "costa-low-500~sample=2-s0" in smallest[2]


def test_the_head_that_all_are_asked_with_is_that_of_their_start():
    plan = make({"bow/figure2": {"head": "start"}})
    inspections = {
        artifact.inputs["model"].name.split("-s0")[0]: artifact for artifact in figure_reads(plan, "bow/figure2")
    }
    assert inspections["tiny+mlm-wwm"].inputs["head"].folder == inspections["tiny"].inputs["model"].folder
    assert all("head" not in artifact.inputs for artifact in figure_reads(make(), "bow/figure2"))


def test_a_map_says_on_how_many_queries_its_models_were_trained_here():
    assert "Training queries: COSTA on 40; SEED on 40." in figure_plan(make(), "costa/figure3").dumped()["notes"]


def test_a_level_is_left_out_of_a_panel_that_its_dataset_lacks_and_a_note_says_so():
    whole = load_plan(ROOT / "config/paper.yaml")
    passages = whole.catalogue.datasets["msmarco-passage"]
    without = passages.model_copy(
        update={
            "splits": {name: split for name, split in passages.splits.items() if name != "graded"},
            "absent": {"graded": "nobody judged it"},
        }
    )
    catalogue = replace(whole.catalogue, datasets=whole.catalogue.datasets | {"msmarco-passage": without})
    before, after = (figure_plan(plan, "costa/figure4").dumped() for plan in (whole, Plan(whole.config, catalogue)))
    points = [[point["measured"] for point in each["rows"][-1]["points"]] for each in (before, after)]
    assert points == [[0, 1, 2, 3], [0, 1]], "two panels are of graded judgments"
    notes = sorted(set(after["notes"]) - set(before["notes"]))
    assert len(notes) == 2
    assert all(
        note.startswith("BM25: ") and note.endswith(" is not testable here: nobody judged it.") for note in notes
    )


def test_a_level_can_be_of_another_dataset_with_the_same_queries():
    """BM25 in COSTA's figure 4 searches passages without titles, the models those with titles."""
    *lines, level = figure_plan(load_plan(ROOT / "config/paper.yaml"), "costa/figure4").dumped()["rows"]
    assert {Path(folder).name.split(".")[0] for folder in level["reads"]} == {"msmarco-passage"}
    scores = {Path(point["scores"]).name.split(".")[0] for line in lines for point in line["points"]}
    assert scores == {"msmarco-passage-titles"}
    with pytest.raises(EncoreError, match="nothing is left to draw"):
        check_target(make({"costa/figure4": {"levels_dataset": "squad-reqa"}}), "results/figures/costa/figure4.png")

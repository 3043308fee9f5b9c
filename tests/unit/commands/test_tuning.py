"""Choosing on the validation role: what is tried, what is never asked for, and that configurations hold the choice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from encore.commands.tuning import search
from encore.commands.tuning.grid import read_grid, systems
from encore.config.lineage import StepName, parse
from encore.data.collection import Collection, Judgment, topics, write_collection
from encore.data.rankings import Ranking
from encore.datasets.kinds import build_collection
from encore.errors import EncoreError
from encore.evaluation import judging
from encore.plan import tuning
from encore.plan.catalogue import read_dataset
from encore.plan.plan import Plan
from encore.plan.tuning import Trial
from encore.products.catalogue import load_plan
from tests.support.small_grid import VALUES, grid

GRIDS = {
    "default": "trials",
    "objectives": "objectives",
    "recipes": "recipes",
    "hard-negatives": "hard-negatives",
    "rivals": "rivals",
    "rival-recipes": "rival-recipes",
}  # and the records of their trials
RECORDS = {Path(f"config/tuning/{name}.yaml"): Path(f"config/tuning/{record}.csv") for name, record in GRIDS.items()}


pytestmark = pytest.mark.usefixtures("at_the_root")


# The choice that was made


def every_trial():
    return [trial for record in RECORDS.values() for trial in tuning.read_trials(record)]


@pytest.mark.parametrize("run", ["config", "seeds"])
def test_the_configuration_has_the_best_trial_of_every_row(run):
    recorded = every_trial()
    assert tuning.differences(load_plan(Path(f"config/{run}.yaml")), recorded) == []
    assert recorded == tuning.choose(recorded)


def test_nanos_control_fine_tunes_at_the_recipes_rate():
    """So that a change of the recipe reaches every model of the tests' run."""
    plan = load_plan(Path("config/nano.yaml"))
    recipe, control = (plan.resolve.step(StepName(name)).learning_rate for name in ("marco-bm25", "control"))
    assert recipe == control


def test_every_trained_row_of_table_1_has_recorded_trials():
    rows = load_plan().catalogue.tables["table1"].rows
    assert {trial.row for trial in every_trial()} >= {row.id for row in rows if row.id != "bm25"}


@pytest.mark.parametrize("file", RECORDS)
def test_every_row_of_a_grid_tried_equally_many_values_and_those_of_the_grid(file):
    tried, recorded = read_grid(file), tuning.read_trials(RECORDS[file])
    values = {row: {trial.value for trial in recorded if trial.row == row} for row in tried.rows}
    assert {trial.row for trial in recorded} == tried.rows.keys()
    assert len({len(found) for row, found in values.items() if row != tried.recipe}) == 1
    for row, tuned in tried.rows.items():
        assert set(tuned.values) <= values[row]
        assert {trial.step for trial in recorded if trial.row == row} == {tuned.step}
    assert {(trial.split, trial.measure) for trial in recorded} == {("valid", "RR@10")}
    assert load_plan().resolve.dataset(tried.dataset).fields.splits["valid"].role == "valid"


def test_every_objective_of_the_table_of_objectives_tried_as_many_values_as_those_of_table_1():
    first, added = (read_grid(Path(f"config/tuning/{name}.yaml")) for name in ("default", "objectives"))
    rows = [*first.rows.keys() - {first.recipe}, *added.rows]
    values = {row: {trial.value for trial in every_trial() if trial.row == row} for row in rows}
    assert {len(found) for found in values.values()} == {first.most}


@pytest.mark.parametrize("file", RECORDS)
def test_no_recorded_choice_is_at_an_edge_while_more_values_are_allowed(file):
    tried, recorded = read_grid(file), tuning.read_trials(RECORDS[file])
    values = {row: len({trial.value for trial in recorded if trial.row == row}) for row in tried.rows}
    assert not tuning.at_an_edge(recorded) or max(values.values()) + 2 > (tried.most or 0)


REAL = ("real", "real-two-tower")  # the grids of real text


@pytest.mark.parametrize("name", REAL)
def test_every_row_of_real_text_tried_equally_many_values_and_an_edge_bought_more(name):
    grid = read_grid(Path(f"config/tuning/{name}.yaml"))
    recorded = tuning.read_trials(Path(f"config/tuning/{name}.csv"))
    values = {row: {trial.value for trial in recorded if trial.row == row} for row in grid.rows}
    assert {len(found) for found in values.values()} == {grid.most}
    best = {row: max(trial.score for trial in recorded if trial.row == row) for row in grid.rows}
    assert {row: trial.score for row, trial in tuning.chosen_of(recorded).items()} == best
    assert {trial.split for trial in recorded} == {"valid-80"}


def test_the_rows_of_real_text_have_their_best_trials_rates():
    """The two-tower paper's from ``real.yaml``; the others, which begin with another model, from their table."""
    plan = load_plan(Path("config/real-two-tower.yaml"))
    assert tuning.differences(plan, tuning.read_trials(Path("config/tuning/real-two-tower.csv"))) == []
    chosen = tuning.chosen_of(tuning.read_trials(Path("config/tuning/real.csv")))
    rows = {row.id: row.system.format(share=80, longer=540) for row in plan.catalogue.tables["real/reqa"].rows}
    assert chosen.keys() == rows.keys() - {"bm25"}
    for name, trial in chosen.items():
        (step,) = [step for step in parse(rows[name]).steps if step.name == trial.step]
        assert plan.resolve.step(step).learning_rate == trial.value, name


def test_a_value_that_is_not_the_best_trials_is_noticed():
    recorded = every_trial()
    content = yaml.safe_load(Path("config/config.yaml").read_text())
    content["scale"]["steps"]["ict"]["learning_rate"] = 0.123
    (difference,) = tuning.differences(load_plan(given=content), recorded)
    assert "'ict': learning_rate is 0.123" in difference


# What is tried


def test_rows_that_an_earlier_grid_chose_are_not_tried_again():
    later = read_grid(Path("config/tuning/objectives.yaml"))
    assert not later.rows.keys() & read_grid(later.after).rows.keys()
    lineages = systems(later, load_plan())
    assert lineages.keys() == later.rows.keys()


@pytest.mark.parametrize("name", GRIDS)
def test_every_grid_fits_its_table(name):
    """Rows that go on from a row of the grid are left to a later one: hard negatives after the student."""
    asked = read_grid(Path(f"config/tuning/{name}.yaml"))
    assert systems(asked, load_plan()).keys() == asked.rows.keys()


def test_a_trial_is_an_override_of_the_rows_own_step():
    plan, rate = load_plan(), ("ict", "learning_rate")
    lineage = search.trial_lineage(plan, "bert-base+ict+marco-bm25", {rate: 0.25})
    assert str(lineage) == "bert-base+ict~learning_rate=0.25+marco-bm25"
    now = plan.resolve.step(StepName("ict")).learning_rate
    assert str(search.trial_lineage(plan, "bert-base+ict+marco-bm25", {rate: now})) == "bert-base+ict+marco-bm25"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"none": [1e-3, 2e-3, 3e-3]}, "equally many values"),
        ({"none": [2e-3, 1e-3]}, "ascending"),
        ({"unknown": VALUES}, "is not a trained row"),
        ({"ict": None}, "row 'ict' has no trials"),
    ],
)
def test_a_grid_that_does_not_treat_rows_alike_is_refused(changes, complaint):
    rows = {row: tuned.model_dump() for row, tuned in grid().rows.items()}
    for row, values in changes.items():
        rows[row] = {**rows.get(row, {"step": "extra"}), "values": values}
    rows = {row: tuned for row, tuned in rows.items() if tuned["values"]}
    with pytest.raises(EncoreError, match=complaint):
        systems(grid(rows=rows), load_plan())


def test_two_rows_do_not_choose_one_value():
    rows = {row: tuned.model_dump() for row, tuned in grid().rows.items()}
    rows["random"]["step"] = "marco-bm25"
    with pytest.raises(EncoreError, match="two rows choose the same field"):
        grid(rows=rows)


def test_a_row_does_not_choose_for_another():
    rows = {row: tuned.model_dump() for row, tuned in grid().rows.items()}
    with pytest.raises(EncoreError, match="row 'mlm' takes step 'marco-bm25', which row 'none' chooses for; make"):
        systems(grid(rows=rows, recipe=None), load_plan())
    with pytest.raises(EncoreError, match="recipe: 'nine' is none of the rows"):
        grid(rows=rows, recipe="nine")


def test_the_recipe_is_the_best_in_the_mean_over_all_its_rows():
    """Not the best of the row without pre-training, nor one that only some rows have tried."""
    low, high, further = ("r~learning_rate=0.1", "r~learning_rate=0.2", "r~learning_rate=0.3")
    scored = {
        ("none", low): 0.50, ("ict", low): 0.50, ("mlm", low): 0.40,
        ("none", high): 0.40, ("ict", high): 0.70, ("mlm", high): 0.45,
        ("ict", further): 0.90,
    }  # fmt: skip
    tried = [trial(1e-3, score, row, recipe) for (row, recipe), score in scored.items()]
    tried += [trial(2e-3, 0.55, "ict", low), trial(2e-3, 0.65, "ict", high), trial(1e-3, 0.3, "control")]
    chosen = tuning.chosen_of(tuning.choose(tried))
    assert {row: best.score for row, best in chosen.items()} == {"none": 0.4, "ict": 0.7, "mlm": 0.45, "control": 0.3}
    assert {best.recipe for row, best in chosen.items() if row != "control"} == {high}


@pytest.mark.parametrize(
    ("best", "edge", "further"),
    [(1e-3, True, [3.3e-4, 1.1e-4]), (3e-3, False, [1.7e-3, 5.2e-3]), (9e-3, True, [2.7e-2, 8.1e-2])],
)
def test_an_edge_is_gone_beyond_and_a_best_inside_is_looked_at_more_closely(best, edge, further):
    values = [1e-3, 3e-3, 9e-3]
    done = tuning.choose([trial(value, 1.0 if value == best else 0.5) for value in values])
    assert [each.row for each in tuning.at_an_edge(done)] == (["ict"] if edge else [])
    assert tuning.two_more(values, best) == pytest.approx(further)


def test_several_fields_together_have_no_edge():
    tried = [
        Trial("r", "s", {"batch": batch, "learning_rate": 1e-3}, "a+s", "12345678", "valid", "RR@10", batch)
        for batch in (8.0, 16.0)
    ]
    assert tuning.at_an_edge(tuning.choose(tried)) == []


def test_the_best_is_chosen_and_of_equals_the_first():
    tried = [trial(1e-3, 0.5), trial(2e-3, 0.5), trial(3e-3, 0.4), trial(1e-3, 0.1, "mlm")]
    assert [done.chosen for done in tuning.choose(tried)] == [True, False, False, True]


def test_a_record_reads_back_and_is_sorted(tmp_path):
    tried = tuning.choose([trial(2e-3, 0.25), trial(3e-5, 0.125), trial(1e-3, 0.5, "bow")])
    tuning.write_trials(tmp_path / "trials.csv", tried)
    assert tuning.read_trials(tmp_path / "trials.csv") == [tried[2], tried[1], tried[0]]
    (tmp_path / "trials.csv").write_text((tmp_path / "trials.csv").read_text().replace("yes", "perhaps"))
    with pytest.raises(EncoreError, match="line 2: not a trial"):
        tuning.read_trials(tmp_path / "trials.csv")


def trial(value, score, row="ict", recipe=""):
    return Trial(row, "ict", {"learning_rate": value}, "a+b", "12345678", "valid", "RR@10", score, recipe=recipe)


# What is never asked for


@pytest.mark.parametrize("split", ["test", "graded", "train"])
def test_scores_of_another_role_are_refused(split):
    with pytest.raises(EncoreError, match="hyper-parameters are chosen on role 'valid' only"):
        search.validation_scores(load_plan(), grid(split=split), "bert-base+marco-bm25")


def test_a_validation_split_that_is_searched_with_test_queries_is_refused():
    """Splits that share topics are scored together, so the test split would be opened with such a one."""
    plan = load_plan()
    splits = plan.resolve.dataset("pydocs").fields.splits
    poisoned = {**splits, "valid": splits["valid"].model_copy(update={"topics": "test"})}
    datasets = plan.catalogue.datasets | {
        "pydocs": plan.resolve.dataset("pydocs").fields.model_copy(update={"splits": poisoned})
    }
    catalogue = type(plan.catalogue)(**{**vars(plan.catalogue), "datasets": datasets})
    with pytest.raises(EncoreError, match="split 'graded' has role 'graded'"):
        search.validation_scores(Plan(plan.config, catalogue), grid(), "bert-base+marco-bm25")


def test_no_trial_is_made_from_an_evaluation_or_a_run_of_test_queries():
    plan, wanted = load_plan(), grid()
    lineages = list(systems(wanted, plan).values())
    assert len(lineages) == len(wanted.rows) > 0
    for lineage in lineages:
        for made in search.validation_scores(plan, wanted, lineage).ancestors():
            opened = {made.spec["split"]} if "split" in made.spec else set(made.spec.get("splits", {}))
            assert opened <= {"train", "valid"} or made.stage.startswith("collection"), made.folder


def test_a_trial_is_scored_where_test_judgments_are_gone(tmp_path):
    collection = Collection(tmp_path)
    documents = [{"_id": name, "title": "", "text": name} for name in ("a", "b")]
    queries = [{"_id": name, "text": name} for name in ("v", "t")]
    judged = {"valid": [Judgment("v", "b", 3)], "test": [Judgment("t", "a", 3)]}
    write_collection(tmp_path, documents, queries, judged)
    spec = search.validation_scores(load_plan(), grid(), "bert-base+marco-bm25").spec
    ranking = {"v": Ranking(["a", "b"], np.array([2, 1], dtype=np.float32))}
    before = judging.summary(judging.judge(ranking, collection, spec))
    assert before == {"valid": {"judged": 1, "answered": 1, "RR@10": 0.5}}
    (tmp_path / "qrels/test.tsv").write_text("poison")
    assert judging.summary(judging.judge(ranking, collection, spec)) == before
    (tmp_path / "qrels/test.tsv").unlink()
    assert judging.summary(judging.judge(ranking, collection, spec)) == before
    with pytest.raises(EncoreError, match="no split 'test'"):
        judging.judge(ranking, collection, {"splits": {"test": spec["splits"]["valid"]}})


# Few labels: lineages that choose for themselves, over a grid of two fields


LOW = Path("config/tuning/lowres.yaml")


def test_few_labels_are_tuned_over_the_papers_grid_for_every_model_and_size():
    low = read_grid(LOW)
    found = systems(low, load_plan())
    assert found == low.lineages
    for row, tuned in low.rows.items():
        assert len({(tried["batch"], tried["learning_rate"]) for tried in tuned.settings()}) == 6
        assert tuned.step == f"costa-low-{row.rsplit('-', 1)[-1]}"


def test_no_choice_for_few_labels_sees_a_reported_query():
    plan, low = load_plan(), read_grid(LOW)
    splits = plan.resolve.dataset(low.dataset).fields.splits
    for lineage in low.lineages.values():
        artifact = search.validation_scores(plan, low, lineage)
        for made in artifact.ancestors():
            opened = {made.spec["split"]} if "split" in made.spec else set(made.spec.get("splits", {}))
            if not made.stage.startswith("collection"):
                assert {splits[split].role for split in opened} <= {"train", "valid"}, made.folder
    for split in ("test", "graded", "train"):
        with pytest.raises(EncoreError, match="hyper-parameters are chosen on role 'valid' only"):
            search.validation_scores(plan, low.model_copy(update={"split": split}), lineage)


def test_queries_that_a_choice_is_made_on_are_in_no_sample(tmp_path):
    """As on MS MARCO: training queries held out as the split `valid`, and samples of all sizes from the others."""
    source, folder = tmp_path / "source", tmp_path / "collection"
    (source / "qrels").mkdir(parents=True)
    names = [f"q{i}" for i in range(400)]
    (source / "corpus.jsonl").write_text('{"_id": "d", "text": "t"}\n')
    (source / "queries.jsonl").write_text("".join(f'{{"_id": "{name}", "text": "t"}}\n' for name in names))
    for split, asked in (("train", names[:300]), ("dev", names[300:])):
        lines = "".join(f"{name}\td\t1\n" for name in asked)
        (source / f"qrels/{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    splits = {"train": {"role": "train"}, "valid": {"role": "valid"}, "dev": {"role": "test"}}
    fields = read_dataset({"kind": "beir", "path": str(source), "valid_queries": 50, "splits": splits})
    build_collection("beir", fields.resolve(), folder, source=source, processes=1)
    held_out = set(topics(Collection(folder), "valid"))
    assert len(held_out) == 50
    assert held_out < set(names[:300]), "training queries, none of the reported ones"
    for size in (10, 100, 250, 10000):
        for sample in (0, 1, 2):
            assert not held_out & set(topics(Collection(folder), "train", size, sample))


def test_a_row_whose_name_is_a_formula_is_a_text_and_reads_back(tmp_path):
    tried = tuning.choose([replace(trial(1e-3, 0.5), row=f"{sign}1+1") for sign in "+-=@"])
    tuning.write_trials(tmp_path / "trials.csv", tried)
    _, *lines = (tmp_path / "trials.csv").read_text().splitlines()
    assert [line[:5] for line in lines] == ["'+1+1", "'-1+1", "'=1+1", "'@1+1"]
    assert tuning.read_trials(tmp_path / "trials.csv") == tried


def test_combinations_are_recorded_and_read_back(tmp_path):
    tried = [
        Trial("r", "s", {"batch": batch, "learning_rate": rate}, "a+s", "12345678", "valid", "RR@10", score)
        for (batch, rate, score) in ((8.0, 1e-3, 0.5), (8.0, 5e-4, 0.25), (16.0, 5e-4, 0.625))
    ]
    tuning.write_trials(tmp_path / "trials.csv", tuning.choose(tried))
    text = (tmp_path / "trials.csv").read_text()
    assert "r,s,batch+learning_rate,8+0.0005," in text
    again = tuning.read_trials(tmp_path / "trials.csv")
    assert [trial.settings for trial in again] == [tried[1].settings, tried[0].settings, tried[2].settings]
    assert [trial.chosen for trial in again] == [False, False, True]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"lineages": {"a": "b+c"}}, "give one of them"),
        ({"table": None}, "give one of them"),
        ({"rows": {"ict": {"step": "ict", "values": VALUES, "crossed": {"learning_rate": VALUES}}}}, "with itself"),
        ({"rows": {"ict": {"step": "ict", "values": VALUES, "crossed": {"batch": [16, 8]}}}}, "ascending"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(changes, complaint):
    with pytest.raises(EncoreError, match=complaint):
        grid(**changes)

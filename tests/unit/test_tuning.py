"""Choosing on the validation role: what is tried, what is never asked for, and that configurations hold the choice."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from encore.commands.tuning import search, trials
from encore.commands.tuning.grid import TuningGrid, read_grid, rounds, systems
from encore.commands.tuning.trials import Trial
from encore.config.lineage import StepName
from encore.config.run import RunConfig
from encore.config.validation import checked
from encore.data.collection import Collection, Judgment, topics, write_collection
from encore.data.kinds import build_collection
from encore.data.runs import Ranking
from encore.errors import EncoreError
from encore.evaluation import judging, scores
from encore.evaluation.scores import Scored
from encore.plan.catalogue import read_dataset
from encore.plan.plan import Plan
from encore.plan.project import load_plan
from encore.storage import manifest

ROOT = Path(__file__).parents[2]
RECORDS = {
    Path("config/tuning/default.yaml"): Path("config/tuning/trials.csv"),
    Path("config/tuning/objectives.yaml"): Path("config/tuning/objectives.csv"),
    Path("config/tuning/recipes.yaml"): Path("config/tuning/recipes.csv"),
}
VALUES = [1e-3, 2e-3]


pytestmark = pytest.mark.usefixtures("at_the_root")


def grid(**changes):
    names = {"random": "marco-scratch", "none": "marco-bm25", "control": "control"}
    names |= {name: name for name in ("mlm", "ict", "bfs", "wlp", "ict-bfs-wlp", "bow", "costa")}
    fields = {"table": "table1", "setting": "BM25 negatives", "dataset": "msmarco-passage", "split": "valid"}
    rows = {row: {"step": step, "values": VALUES} for row, step in names.items()}
    return checked(TuningGrid, fields | {"measure": "RR@10", "rows": rows} | changes, "grid")


# The choice that was made


def every_trial():
    return [trial for record in RECORDS.values() for trial in trials.read_trials(record)]


@pytest.mark.parametrize("run", ["config", "seeds"])
def test_the_configuration_has_the_best_trial_of_every_row(run):
    recorded = every_trial()
    assert trials.differences(load_plan(Path(f"config/{run}.yaml")), recorded) == []
    assert recorded == trials.choose(recorded)


def test_nano_has_the_chosen_recipe_and_objective():
    """Its control fine-tunes at the recipe's rate: a change of the recipe must reach every model of the tests' run."""
    shared = [trial for trial in every_trial() if trial.row in ("none", "ict")]
    assert {trial.row for trial in shared} == {"none", "ict"}
    assert trials.differences(load_plan(Path("config/nano.yaml")), shared) == []


def test_every_trained_row_has_equally_many_trials():
    counts = Counter(trial.row for trial in every_trial())
    tables = load_plan().catalogue.tables
    recipes = [row for row in tables["table2"].rows if row.setting == "Recipes"]
    rows = [*tables["table1"].rows, *tables["objectives"].rows, *recipes]
    assert counts.keys() == {row.id for row in rows if row.id != "bm25"}
    assert set(counts.values()) == {3}


@pytest.mark.parametrize("file", RECORDS)
def test_the_recorded_trials_are_those_of_the_grid_on_the_validation_split(file):
    tried, recorded = read_grid(file), trials.read_trials(RECORDS[file])
    wanted = [(row, tuned.step, settings) for row, tuned in tried.rows.items() for settings in tuned.settings()]
    assert sorted((trial.row, trial.step, str(trial.settings)) for trial in recorded) == sorted(
        (row, step, str(settings)) for row, step, settings in wanted
    )
    assert {(trial.split, trial.measure) for trial in recorded} == {("valid", "RR@10")}
    assert load_plan().resolve.dataset(tried.dataset).splits["valid"].role == "valid"


def test_a_value_that_is_not_the_best_trials_is_noticed():
    recorded = every_trial()
    content = yaml.safe_load(Path("config/config.yaml").read_text())
    content["scale"]["steps"]["ict"]["learning_rate"] = 0.123
    (difference,) = trials.differences(load_plan(given=content), recorded)
    assert "'ict': learning_rate is 0.123" in difference


# What is tried


def test_rows_that_share_a_recipe_come_after_the_row_that_chooses_it():
    wanted = grid()
    first, second = rounds(wanted, systems(wanted, load_plan()))
    assert first == ["random", "none", "control"]
    assert second == ["mlm", "ict", "bfs", "wlp", "ict-bfs-wlp", "bow", "costa"]


def test_rows_that_an_earlier_grid_chose_are_not_tried_again():
    later = read_grid(Path("config/tuning/objectives.yaml"))
    assert not later.rows.keys() & read_grid(later.after).rows.keys()
    lineages = systems(later, load_plan())
    assert lineages.keys() == later.rows.keys()
    assert len(rounds(later, lineages)) == 1, "what they share is chosen already"


def test_a_trial_is_an_override_of_the_rows_own_step():
    plan, tuned = load_plan(), grid().rows["ict"]
    lineage = search.trial_lineage(plan, "bert-base+ict+marco-bm25", tuned, {"learning_rate": 0.25})
    assert str(lineage) == "bert-base+ict~learning_rate=0.25+marco-bm25"
    now = plan.resolve.step(StepName("ict")).learning_rate
    assert (
        str(search.trial_lineage(plan, "bert-base+ict+marco-bm25", tuned, {"learning_rate": now}))
        == "bert-base+ict+marco-bm25"
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"none": [1e-3, 2e-3, 3e-3]}, "equally many values"),
        ({"none": [2e-3, 1e-3]}, "ascending"),
        ({"unknown": VALUES}, "is no trained row"),
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


def test_the_best_is_chosen_and_of_equals_the_first():
    tried = [trial(1e-3, 0.5), trial(2e-3, 0.5), trial(3e-3, 0.4), trial(1e-3, 0.1, "mlm")]
    assert [done.chosen for done in trials.choose(tried)] == [True, False, False, True]


def test_a_record_reads_back_and_is_sorted(tmp_path):
    tried = trials.choose([trial(2e-3, 0.25), trial(3e-5, 0.125), trial(1e-3, 0.5, "bow")])
    trials.write_trials(tmp_path / "trials.csv", tried)
    assert trials.read_trials(tmp_path / "trials.csv") == [tried[2], tried[1], tried[0]]
    (tmp_path / "trials.csv").write_text((tmp_path / "trials.csv").read_text().replace("yes", "perhaps"))
    with pytest.raises(EncoreError, match="line 2: no trial"):
        trials.read_trials(tmp_path / "trials.csv")


def trial(value, score, row="ict"):
    return Trial(row, "ict", {"learning_rate": value}, "a+b", "12345678", "valid", "RR@10", score)


# What is never asked for


@pytest.mark.parametrize("split", ["test", "graded", "train"])
def test_scores_of_another_role_are_refused(split):
    with pytest.raises(EncoreError, match="hyper-parameters are chosen on role 'valid' only"):
        search.validation_scores(load_plan(), grid(split=split), "bert-base+marco-bm25")


def test_a_validation_split_that_is_searched_with_test_queries_is_refused():
    """Splits that share topics are scored together, so the test split would be opened with such a one."""
    plan = load_plan()
    splits = plan.resolve.dataset("pydocs").splits
    poisoned = {**splits, "valid": splits["valid"].model_copy(update={"topics": "test"})}
    datasets = plan.catalogue.datasets | {
        "pydocs": plan.resolve.dataset("pydocs").model_copy(update={"splits": poisoned})
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
    assert rounds(low, found) == [list(low.lineages)]
    for row, tuned in low.rows.items():
        assert len({(tried["batch"], tried["learning_rate"]) for tried in tuned.settings()}) == 6
        assert tuned.step == f"costa-low-{row.rsplit('-', 1)[-1]}"


def test_no_choice_for_few_labels_sees_a_reported_query():
    plan, low = load_plan(), read_grid(LOW)
    splits = plan.resolve.dataset(low.dataset).splits
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


def test_combinations_are_recorded_and_read_back(tmp_path):
    tried = [
        Trial("r", "s", {"batch": batch, "learning_rate": rate}, "a+s", "12345678", "valid", "RR@10", score)
        for (batch, rate, score) in ((8.0, 1e-3, 0.5), (8.0, 5e-4, 0.25), (16.0, 5e-4, 0.625))
    ]
    trials.write_trials(tmp_path / "trials.csv", trials.choose(tried))
    text = (tmp_path / "trials.csv").read_text()
    assert "r,s,batch+learning_rate,8+0.0005," in text
    again = trials.read_trials(tmp_path / "trials.csv")
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


# From the grid to the record, with a pretended Snakemake


def test_every_lineage_gets_its_own_choice_under_a_name_to_ask_for(workshop):
    _, asked = workshop
    low = read_grid(LOW)

    def prefer(run, targets):
        asked.append((load_plan(run), targets))
        for target in targets:
            artifact = asked[-1][0].find(str(Path(target).parent))
            best = "batch=8" if "costa+" in target else "batch=16"
            pretend(artifact, 0.75 if best in target and "learning_rate" in target else 0.25)

    done = search.tune(Path("config/config.yaml"), low, prefer)
    assert Counter(trial.row for trial in done) == dict.fromkeys(low.rows, 6)
    chosen = {trial.row: trial for trial in done if trial.chosen}
    assert {row: trial.settings["batch"] for row, trial in chosen.items()} == {
        "none-500": 16, "costa-500": 8, "none-2000": 16, "costa-2000": 8,
    }  # fmt: skip
    plan = load_plan(Path("config/config.yaml"))
    for trial in chosen.values():
        assert plan.model(plan.resolve.lineage(trial.lineage), 0).name.endswith(trial.model), "no training is repeated"
        assert plan.resolve.lineage(f"{trial.lineage}~sample=2"), "the other samples take the same choice"


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """The configuration without collections or results, so that nothing but scores can be read."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    asked = []

    def build(run, targets):
        plan = load_plan(run)
        asked.append((plan, targets))
        for target in targets:
            artifact = plan.find(str(Path(target).parent))
            pretend(artifact, quality(artifact))

    return build, asked


def quality(artifact):
    """A score that is best at the larger value of `ict`, at the smaller one of other steps."""
    return 0.75 if ("ict~" in artifact.folder) == ("=0.002" in artifact.folder) else 0.25


def pretend(artifact, value):
    with manifest.record(Path(artifact.folder), stage="evaluate", spec=artifact.spec, inputs=[]):
        found = np.array([value, value])
        scored = Scored(["q", "r"], ["q", "r"], found, found, found, np.array([True, True]), np.zeros(2, np.int8))
        scores.write_scores(Path(artifact.folder), {("valid", "RR@10"): scored})


def test_later_rounds_use_what_was_chosen_first(workshop):
    build, asked = workshop
    done = search.tune(Path("config/nano.yaml"), grid(), build)
    assert Counter(trial.row for trial in done) == dict.fromkeys(grid().rows, len(VALUES))
    chosen = {trial.row: trial.settings["learning_rate"] for trial in done if trial.chosen}
    assert chosen == dict.fromkeys(grid().rows, 1e-3) | {"ict": 2e-3}
    (first, _), (second, targets) = asked
    assert first.resolve.step(StepName("marco-bm25")).learning_rate == 5e-6, "starts from the papers' own value"
    assert second.resolve.step(StepName("marco-bm25")).learning_rate == 1e-3
    assert all("tiny+" in target and "+marco-bm25-s0" in target for target in targets)


def test_trials_keep_their_names_after_the_choice_is_written(workshop):
    build, _ = workshop
    done = search.tune(Path("config/nano.yaml"), grid(), build)
    content = yaml.safe_load(Path("config/nano.yaml").read_text())
    content["scale"]["steps"].setdefault("marco-bm25", {})["learning_rate"] = 1e-3
    content["scale"]["steps"]["ict"]["learning_rate"] = 2e-3
    Path("written.yaml").write_text(yaml.safe_dump(content))
    assert search.tune(Path("written.yaml"), grid(), build) == done


def test_a_trial_declares_no_table(workshop):
    build, asked = workshop
    search.tune(Path("config/nano.yaml"), grid(), build)
    run = checked(RunConfig, yaml.safe_load(Path("results/tuning/round2.yaml").read_text()), "round2")
    assert (run.tables, run.lineages) == ({}, [])
    assert len(asked) == 2


def test_altered_scores_are_not_read(workshop):
    build, _ = workshop

    def spoil(run, targets):
        build(run, targets)
        Path(targets[0]).with_name("scores.parquet").write_bytes(b"better")

    with pytest.raises(EncoreError, match=r"scores\.parquet has 6 bytes"):
        search.tune(Path("config/nano.yaml"), grid(), spoil)

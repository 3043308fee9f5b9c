"""Choosing on the validation role: what is tried, what is never asked for, and that configurations hold the choice."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

from encore.config.validation import checked, read_yaml
from encore.data.collection import Collection, Judgment, topics, write_collection
from encore.data.rankings import Ranking
from encore.datasets.kinds import build_collection
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol, judging, scores
from encore.plan import tuning
from encore.plan.catalogue import read_dataset
from encore.plan.lineage import StepName, parse
from encore.plan.plan import Plan
from encore.plan.tuning import TUNING, Trial
from encore.products.catalogue import load_plan
from encore.products.tables.plan import table_plan
from encore.storage import manifest
from tests.support import small_claims
from tools import tune
from tools.tune import Grid

pytestmark = pytest.mark.usefixtures("at_the_root")

RUNS = {"real-two-tower": "config/real-two-tower.yaml"}  # others are the default's
RUNS |= {f"labels-{each}": "config/labels.yaml" for each in ("1", "1-edges", "10")}
RUNS |= {f"labels-cls-{each}": "config/labels-cls.yaml" for each in ("1", "10")}
NAMES = sorted(path.stem for path in Path("config/tuning").resolve().glob("*.yaml"))
RECORDED = [name for name in NAMES if Path("config/tuning", f"{name}.csv").is_file()]  # others were not run yet
VALUES = "{0.0011,0.002}"  # not nano's own, 0.001


def read(name: str) -> Grid:
    return checked(Grid, read_yaml(TUNING / f"{name}.yaml"), name)


def record(name: str) -> list[Trial]:
    return tuning.read_trials(TUNING / f"{name}.csv")


@cache
def plan_of(name: str) -> Plan:
    return load_plan(Path(RUNS.get(name, "config/config.yaml")))


def grid(**changes) -> Grid:
    """Two values for each of five rows of table 1."""
    rows = {"none": [f"bert-base+marco-bm25~learning_rate={VALUES}"]}
    rows["random"] = [f"bert-base-random+marco-scratch~learning_rate={VALUES}"]
    for name in ("mlm", "ict", "costa"):
        rows[name] = [f"bert-base+{name}~learning_rate={VALUES}+marco-bm25~learning_rate={VALUES}"]
    fields = {"dataset": "msmarco-passage", "split": "valid", "measure": "RR@10", "shared": "marco-bm25", "rows": rows}
    return checked(Grid, fields | changes, "grid")


def trial(value, score, row="ict", recipe=""):
    return Trial(row, "ict", {"learning_rate": value}, "a+b", "12345678", "valid", "RR@10", score, recipe=recipe)


def pairs_of(*scored) -> list[Trial]:
    """Trials of two fields together: a batch, a rate and a score."""
    settings = [({"batch": batch, "learning_rate": rate}, score) for batch, rate, score in scored]
    return [Trial("r", "s", own, "a+s", "12345678", "valid", "RR@10", score) for own, score in settings]


# The choice that was made


@pytest.mark.parametrize("name", RECORDED)
def test_a_record_has_each_trial_of_its_grid_and_the_best_of_each_row(name):
    def about(each):
        return each.row, each.step, str(each.settings), each.recipe, each.split, each.measure

    recorded = {about(each): each for each in record(name)}
    tried = [about(each) for each in tune.trials(read(name))]
    assert recorded.keys() == set(tried)
    in_order = [recorded[facts] for facts in tried]
    assert in_order == tune.choose(in_order)


@pytest.mark.parametrize("run", ["config", "seeds"])
def test_the_configuration_has_the_best_trial_of_every_row(run):
    recorded = [each for name in RECORDED if name not in RUNS for each in record(name)]
    assert list(tune.differences(load_plan(Path(f"config/{run}.yaml")), recorded)) == []


def test_a_value_that_is_not_the_best_trials_is_noticed():
    content = yaml.safe_load(Path("config/config.yaml").read_text())
    content["scale"]["steps"]["ict"]["learning_rate"] = 0.123
    (difference,) = tune.differences(load_plan(given=content), record("trials"))
    assert "'ict': learning_rate is 0.123" in difference


def test_nanos_control_fine_tunes_at_the_recipes_rate():
    """So that a change of the recipe reaches every model of the tests' run."""
    plan = load_plan(Path("config/nano.yaml"))
    recipe, control = (plan.resolve.step(StepName(name)).learning_rate for name in ("marco-bm25", "control"))
    assert recipe == control


@pytest.mark.parametrize(
    ("names", "table", "setting"),
    [
        (["trials"], "table1", "BM25 negatives"),
        (["trials", "objectives"], "objectives", "BM25 negatives"),
        (["recipes", "hard-negatives"], "table2", "Recipes"),
    ],
)
def test_every_trained_row_of_a_table_is_tried_in_the_tables_lineage(names, table, setting):
    rows = {row.id: row.system for row in plan_of("trials").catalogue.tables[table].rows if row.setting == setting}
    tried = {each.row: each.lineage for name in names for each in tune.trials(read(name)) if each.row in rows}
    assert tried.keys() == rows.keys() - {"bm25"}
    for row, lineage in tried.items():
        given = parse(rows[row])
        assert parse(lineage).backbone == given.backbone
        assert [step.name for step in parse(lineage).steps] == [step.name for step in given.steps]


def test_all_objectives_of_table_1_and_of_the_tables_of_objectives_tried_equally_many_values():
    tried: dict[str, set[float]] = {}
    for each in [*record("trials"), *record("objectives"), *record("rivals")]:
        tried.setdefault(each.row, set()).add(each.value)
    assert {row: len(found) for row, found in tried.items()} == {**dict.fromkeys(tried, 5), "none": 3}


def test_the_two_tower_papers_rows_on_real_text_have_their_best_trials_rates():
    assert list(tune.differences(plan_of("real-two-tower"), record("real-two-tower"))) == []


# What is tried


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"rows": {"a": ["b+ict~learning_rate={1,2}"], "c": ["b+mlm~learning_rate={1,2,3}"]}}, "equally many values"),
        ({"rows": {"a": ["b+ict~learning_rate=1"]}}, "row 'a' must try values of one step, in braces; it has none"),
        ({"rows": {"a": ["b+ict~learning_rate={1,2}+mlm~batch={1,2}"]}}, r"it has \['ict', 'mlm'\]"),
        ({"rows": {"a": ["b+ict~learning_rate={1,2"]}}, "is not `step` or `step~key=value`"),
        ({"rows": {}}, "rows"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(changes, complaint):
    with pytest.raises(EncoreError, match=complaint):
        list(tune.trials(grid(**changes)))


def test_the_runs_own_value_is_left_out_of_the_name_that_is_requested():
    plan = plan_of("trials")
    now = plan.resolve.step(StepName("ict")).learning_rate
    assert tune.requested(plan, f"bert-base+ict~learning_rate={now}+marco-bm25") == "micro-bert+ict+marco-bm25"
    kept = tune.requested(plan, "bert-base+ict~learning_rate=0.25+marco-bm25")
    assert kept == "micro-bert+ict~learning_rate=0.25+marco-bm25"


def test_the_recipe_is_the_best_in_the_mean_over_all_its_rows():
    """Not the best of the row without pre-training, nor one that only some rows have tried."""
    low, high, further = ("r~learning_rate=0.1", "r~learning_rate=0.2", "r~learning_rate=0.3")
    scored = {
        ("none", low): 0.50, ("ict", low): 0.50, ("mlm", low): 0.40,
        ("none", high): 0.40, ("ict", high): 0.70, ("mlm", high): 0.45,
        ("ict", further): 0.90,
    }  # fmt: skip
    tried = [trial(1e-3, score, row, recipe) for (row, recipe), score in scored.items()]
    tried = [replace(each, step="r") if each.row == "none" else each for each in tried]
    tried += [trial(2e-3, 0.55, "ict", low), trial(2e-3, 0.65, "ict", high), trial(1e-3, 0.3, "control")]
    chosen = {each.row: each for each in tune.choose(tried) if each.chosen}
    assert {row: best.score for row, best in chosen.items()} == {"none": 0.4, "ict": 0.7, "mlm": 0.45, "control": 0.3}
    assert {best.recipe for row, best in chosen.items() if row != "control"} == {high}


def test_each_row_chooses_both_of_two_crossed_rates():
    """With equally many trials of each row, one without pre-training too."""
    rows = {
        "none": ["bert-base+reqa-1~learning_rate={1,2,3,4}"],
        "ict": ["bert-base+ict~learning_rate={0.1,0.2}+reqa-1~learning_rate={1,2}"],
    }
    crossed = {"shared": None, "crossed": "reqa-1"}
    tried = list(tune.trials(grid(rows=rows, **crossed)))
    names = [("none", "reqa-1", "")] * 4 + [("ict", "ict", f"reqa-1~learning_rate={rate}") for rate in (1, 2)] * 2
    assert [(each.row, each.step, each.recipe) for each in tried] == names
    scores = (0.1, 0.3, 0.2, 0.1, 0.4, 0.6, 0.5, 0.3)
    done = tune.choose([replace(each, score=score) for each, score in zip(tried, scores, strict=True)])
    chosen = {each.row: each.lineage for each in done if each.chosen}
    ict = "bert-base+ict~learning_rate=0.1+reqa-1~learning_rate=2"
    assert chosen == {"none": "bert-base+reqa-1~learning_rate=2", "ict": ict}
    assert [(each.row, each.step, each.value) for each in tuning.at_an_edge(done)] == [
        ("ict", "ict", 0.1),
        ("ict", "reqa-1", 2),
    ]
    with pytest.raises(EncoreError, match=r"equally many values, and these do not: {'none': 3, 'ict': 4}"):
        list(tune.trials(grid(rows=rows | {"none": ["bert-base+reqa-1~learning_rate={1,2,3}"]}, **crossed)))


def test_the_best_is_chosen_and_of_equals_the_first():
    tried = [trial(1e-3, 0.5), trial(2e-3, 0.5), trial(3e-3, 0.4), trial(1e-3, 0.1, "mlm")]
    assert [done.chosen for done in tune.choose(tried)] == [True, False, False, True]


@pytest.mark.parametrize(("best", "edge"), [(1e-3, True), (3e-3, False), (9e-3, True)])
def test_a_best_value_at_an_edge_is_known(best, edge):
    done = tune.choose([trial(value, 1.0 if value == best else 0.5) for value in (1e-3, 3e-3, 9e-3)])
    assert [each.row for each in tuning.at_an_edge(done)] == (["ict"] if edge else [])


def test_several_fields_together_have_no_edge():
    assert tuning.at_an_edge(tune.choose(pairs_of((8.0, 1e-3, 8), (16.0, 1e-3, 16)))) == []


# The records


def test_a_record_reads_back_and_is_sorted(tmp_path):
    tried = tune.choose([trial(2e-3, 0.25), trial(3e-5, 0.125), trial(1e-3, 0.5, "bow")])
    tune.write_trials(tmp_path / "trials.csv", tried)
    assert tuning.read_trials(tmp_path / "trials.csv") == [tried[2], tried[1], tried[0]]


def test_a_row_whose_name_is_a_formula_is_a_text_and_reads_back(tmp_path):
    tried = tune.choose([replace(trial(1e-3, 0.5), row=f"{sign}1+1") for sign in "+-=@"])
    tune.write_trials(tmp_path / "trials.csv", tried)
    _, *lines = (tmp_path / "trials.csv").read_text().splitlines()
    assert [line[:5] for line in lines] == ["'+1+1", "'-1+1", "'=1+1", "'@1+1"]
    assert tuning.read_trials(tmp_path / "trials.csv") == tried


def test_combinations_are_recorded_and_read_back(tmp_path):
    tried = pairs_of((8.0, 1e-3, 0.5), (8.0, 5e-4, 0.25), (16.0, 5e-4, 0.625))
    tune.write_trials(tmp_path / "trials.csv", tune.choose(tried))
    assert "r,s,batch+learning_rate,8+0.0005," in (tmp_path / "trials.csv").read_text()
    again = tuning.read_trials(tmp_path / "trials.csv")
    assert [each.settings for each in again] == [tried[1].settings, tried[0].settings, tried[2].settings]
    assert [each.chosen for each in again] == [False, False, True]


@pytest.mark.parametrize("name", RECORDED)
def test_every_record_is_written_again_to_the_same_bytes(name, tmp_path):
    tune.write_trials(tmp_path / "again.csv", record(name))
    assert (tmp_path / "again.csv").read_bytes() == (TUNING / f"{name}.csv").read_bytes()


# From a grid to its record, with a pretended Snakemake


def quality(folder: str) -> float:
    """A score that is best at the larger value of `ict`, and at the smaller one of other steps."""
    ict = 0.5 if "ict~learning_rate=0.002" in folder else 0.25
    return ict + (0.25 if "marco-bm25~learning_rate=0.0011" in folder else 0.0)


def pretend(plan: Plan, targets, spoil: bytes = b"") -> None:
    for target in targets:
        artifact = plan.find(str(Path(target).parent))
        with manifest.record(Path(artifact.folder), stage="evaluate", spec=artifact.spec, inputs=[]):
            scored = small_claims.scored(["q", "r"], np.array([quality(artifact.folder)] * 2))
            scores.write_scores(Path(artifact.folder), {("valid", "RR@10"): scored})
        if spoil:
            (Path(artifact.folder) / "scores.parquet").write_bytes(spoil)


@pytest.fixture
def nano(tmp_path, monkeypatch) -> Plan:
    """Nano's plan in a folder with the configuration alone, so that nothing but scores can be read."""
    (tmp_path / "config").symlink_to(Path("config").resolve())
    monkeypatch.chdir(tmp_path)
    return load_plan(Path("config/nano.yaml"))


def test_all_rows_choose_the_recipe_together_and_their_own_values_under_it(nano):
    asked: list[str] = []

    def build(targets):
        asked.extend(targets)
        pretend(nano, targets)

    done = tune.tune(nano, grid(), build)
    assert len(asked) == len(set(asked)) == len(done) == 2 + 2 + 3 * 4
    chosen = {each.row: each for each in done if each.chosen}
    assert chosen["ict"].lineage == "tiny+ict~learning_rate=0.002+marco-bm25~learning_rate=0.0011"
    assert {chosen[row].recipe for row in ("none", "mlm", "costa")} == {"marco-bm25~learning_rate=0.0011"}
    assert {row: chosen[row].value for row in ("none", "mlm", "costa", "random")} == dict.fromkeys(
        ("none", "mlm", "costa", "random"), 1.1e-3
    )
    for each in done:
        assert nano.model(nano.resolve.lineage(each.lineage), 0).name.endswith(each.model)


def test_a_record_says_which_step_was_kept_and_of_how_many_equal_ones(nano, tmp_path):
    """So that a rate is told from a stopping accident; the planted control is the first of five equal validations."""
    rows = {
        "none": [f"bert-base+marco-bm25~learning_rate={VALUES}"],
        "control": [f"bert-base+control~learning_rate={VALUES}"],
    }

    def build(targets):
        pretend(nano, targets)
        for name, results in (
            ("marco-bm25", {"steps": 40}),
            ("control", {"steps": 40, "best_step": 8, "equal_validations": 5}),
        ):
            for rate in (0.0011, 0.002):
                model = nano.model(nano.resolve.lineage(f"tiny+{name}~learning_rate={rate}"), 0)
                with manifest.record(Path(model.folder), stage="finetune", spec={}, inputs=[]) as facts:
                    facts["results"] = results

    done = tune.tune(nano, grid(shared=None, rows=rows), build)
    assert {(each.row, each.kept_step, each.equal) for each in done} == {("none", "40", ""), ("control", "8", "5")}
    tune.write_trials(tmp_path / "trials.csv", done)
    assert tuning.read_trials(tmp_path / "trials.csv") == sorted(done, key=lambda each: (each.row, each.value))


def test_altered_scores_are_not_read(nano):
    with pytest.raises(EncoreError, match=r"scores\.parquet has 6 bytes"):
        tune.tune(nano, grid(), lambda targets: pretend(nano, targets, b"better"))


def test_a_table_names_the_rows_that_are_best_at_an_edge(nano, monkeypatch):
    """Those whose models the trials made, and no others: another value, or another start, is another model."""
    done = tune.tune(nano, grid(), lambda targets: pretend(nano, targets))
    assert {"ict", "mlm"} < {each.row for each in tuning.at_an_edge(done)}, "of two values each is at an edge"
    content = yaml.safe_load(Path("config/nano.yaml").read_text()) | {"tables": {"table1": ["none", "ict"]}}
    content["scale"]["steps"].setdefault("marco-bm25", {})["learning_rate"] = 1.1e-3
    content["scale"]["steps"]["ict"]["learning_rate"] = 2e-3
    told = "Best at the edge of what was tried, so a value beyond it may be better: "
    assert not [note for note in table_plan(load_plan(given=content), "table1").notes if note.startswith(told)]
    monkeypatch.setattr("encore.plan.tuning.TUNING", Path("records"))
    tune.write_trials(Path("records/trials.csv"), done)
    notes = table_plan(load_plan(given=content), "table1").notes
    assert f"{told}marco-bm25 (learning_rate 0.0011), ICT (learning_rate 0.002)." in notes
    content["scale"]["steps"]["ict"]["learning_rate"] = 3e-3
    notes = table_plan(load_plan(given=content), "table1").notes
    assert f"{told}marco-bm25 (learning_rate 0.0011)." in notes
    beyond = [replace(each, settings={"learning_rate": each.value / 2}, chosen=False) for each in done]
    tune.write_trials(Path("records/trials-edges.csv"), beyond)
    assert not [note for note in table_plan(load_plan(given=content), "table1").notes if note.startswith(told)]


# What is never asked for


@pytest.mark.parametrize("split", ["test", "graded", "train"])
def test_scores_of_another_role_are_refused(split):
    with pytest.raises(EncoreError, match="hyper-parameters are chosen on role 'valid' only"):
        tune.validation_scores(plan_of("trials"), grid(split=split), "bert-base+marco-bm25")


@pytest.mark.parametrize(("split", "refused"), [("valid-80", True), ("valid-1", False)])
def test_a_validation_of_another_share_is_refused(split, refused):
    """The 80 % that train and validate hold the questions of 1 %, and most that test it."""
    plan, asked = plan_of("trials"), grid(dataset="squad-reqa", split=split, measure="R@10", shared=None)
    if not refused:
        assert tune.validation_scores(plan, asked, "two-tower+reqa-1").spec["splits"].keys() == {split}
        return
    with pytest.raises(EncoreError, match=r"split 'valid-80' may hold questions that two-tower\+reqa-1 trains on"):
        tune.validation_scores(plan, asked, "two-tower+reqa-1")


def test_a_validation_split_that_is_searched_with_test_queries_is_refused():
    """Splits that share topics are scored together, so the test split would be opened with such a one."""
    plan = plan_of("trials")
    splits = plan.resolve.dataset("pydocs").fields.splits
    poisoned = {**splits, "valid": splits["valid"].model_copy(update={"topics": "test"})}
    datasets = plan.catalogue.datasets | {
        "pydocs": plan.resolve.dataset("pydocs").fields.model_copy(update={"splits": poisoned})
    }
    catalogue = type(plan.catalogue)(**{**vars(plan.catalogue), "datasets": datasets})
    with pytest.raises(EncoreError, match="split 'graded' has role 'graded'"):
        tune.validation_scores(Plan(plan.config, catalogue), grid(), "bert-base+marco-bm25")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in RUNS])
def test_no_trial_of_any_grid_is_made_from_a_reported_query(name):
    plan, asked = plan_of(name), read(name)
    splits = plan.resolve.dataset(asked.dataset).fields.splits
    lineages = {each.row: each.lineage for each in tune.trials(asked)}
    assert lineages
    for lineage in lineages.values():
        for made in tune.validation_scores(plan, asked, tune.requested(plan, lineage)).ancestors():
            opened = {made.spec["split"]} if "split" in made.spec else set(made.spec.get("splits", {}))
            if not made.stage.startswith("collection"):
                assert {splits[split].role for split in opened} <= {"train", "valid"}, made.folder


def test_few_labels_are_tuned_over_the_papers_grid_for_every_model_and_size():
    tried: dict[str, set[tuple[float, ...]]] = {}
    for each in tune.trials(read("lowres")):
        assert each.step == f"costa-low-{each.row.rsplit('-', 1)[-1]}"
        assert each.settings.keys() == {"batch", "learning_rate"}
        tried.setdefault(each.row, set()).add(tuple(each.settings.values()))
    assert {row: len(found) for row, found in tried.items()} == dict.fromkeys(tried, 6)


def test_a_trial_is_scored_where_test_judgments_are_gone(tmp_path):
    collection = Collection(tmp_path)
    documents = [{"_id": name, "title": "", "text": name} for name in ("a", "b")]
    queries = [{"_id": name, "text": name} for name in ("v", "t")]
    judged = {"valid": [Judgment("v", "b", 3)], "test": [Judgment("t", "a", 3)]}
    write_collection(tmp_path, documents, queries, judged)
    spec = tune.validation_scores(plan_of("trials"), grid(), "bert-base+marco-bm25").spec
    protocol = EvaluationProtocol(splits=spec["splits"])
    ranking = {"v": Ranking(["a", "b"], np.array([2, 1], dtype=np.float32))}
    before = judging.summary(judging.judge(ranking, collection, protocol))
    assert before == {"valid": {"judged": 1, "answered": 1, "RR@10": 0.5}}
    (tmp_path / "qrels/test.tsv").write_text("poison")
    assert judging.summary(judging.judge(ranking, collection, protocol)) == before
    (tmp_path / "qrels/test.tsv").unlink()
    assert judging.summary(judging.judge(ranking, collection, protocol)) == before
    with pytest.raises(EncoreError, match="no split 'test'"):
        judging.judge(ranking, collection, EvaluationProtocol(splits={"test": spec["splits"]["valid"]}))


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

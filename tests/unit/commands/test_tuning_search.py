"""From a grid to the record of its trials, with a pretended Snakemake."""

import contextlib
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from encore.commands.tuning import search
from encore.commands.tuning.grid import read_grid
from encore.config.lineage import StepName
from encore.config.run import RunConfig
from encore.config.validation import checked
from encore.errors import EncoreError
from encore.evaluation import scores
from encore.plan import tuning
from encore.products.catalogue import load_plan
from encore.products.tables.plan import table_plan
from encore.storage import manifest
from tests.support import small_claims
from tests.support.small_grid import VALUES, grid

ROOT = Path(__file__).parents[3]
LOW = Path("config/tuning/lowres.yaml")


NANO = Path("config/nano.yaml")


class Workshop:
    """The configuration without collections or results, so that nothing but scores can be read."""

    def __init__(self, folder):
        (folder / "config").symlink_to(ROOT / "config")
        self.folder, self.requested = folder, []

    def build(self, run, targets):
        """Pretend that Snakemake made these, and remember under which plan."""
        plan = load_plan(run)
        self.requested.append((plan, targets))
        for target in targets:
            artifact = plan.find(str(Path(target).parent))
            pretend(artifact, quality(artifact))


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Workshop(tmp_path)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """One search over nano's table: the workshop, and every trial."""
    workshop = Workshop(tmp_path_factory.mktemp("tuned"))
    with contextlib.chdir(workshop.folder):
        return workshop, search.tune(NANO, grid(), workshop.build)


def test_every_lineage_gets_its_own_choice_under_a_name_to_ask_for(workshop):
    requested = workshop.requested
    low = read_grid(LOW)

    def prefer(run, targets):
        requested.append((load_plan(run), targets))
        for target in targets:
            artifact = requested[-1][0].find(str(Path(target).parent))
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


def quality(artifact):
    """A score that is best at the larger value of `ict`, at the smaller one of other steps."""
    ict = 0.5 if ("ict~" in artifact.folder) == ("ict~learning_rate=0.002" in artifact.folder) else 0.25
    return ict + (0.25 if "marco-bm25~learning_rate=0.001" in artifact.folder else 0.0)


def pretend(artifact, value):
    with manifest.record(Path(artifact.folder), stage="evaluate", spec=artifact.spec, inputs=[]):
        found = np.array([value, value])
        scored = small_claims.scored(["q", "r"], found)
        scores.write_scores(Path(artifact.folder), {("valid", "RR@10"): scored})


def test_all_rows_choose_the_recipe_together_and_their_own_values_under_it(tuned):
    workshop, done = tuned
    chosen = tuning.chosen_of(done)
    assert chosen["ict"].lineage == "tiny+ict~learning_rate=0.002+marco-bm25~learning_rate=0.001"
    sharing = grid().rows.keys() - {"random", "control"}
    assert {chosen[row].recipe for row in sharing} == {"marco-bm25~learning_rate=0.001"}
    assert chosen["none"].value == 1e-3
    for row in grid().rows:
        tried = {trial.value for trial in done if trial.row == row and trial.recipe == chosen[row].recipe}
        assert tried == ({1e-3} if row == "none" else set(VALUES)), "every value under the recipe that was chosen"
    for row in sharing:
        recipes = {trial.recipe for trial in done if trial.row == row and trial.value == chosen[row].value}
        assert len(recipes) == (1 if row == "none" else len(VALUES)), "every recipe with the value that was chosen"
    assert len({under.resolve.step(StepName("marco-bm25")).learning_rate for under, _ in workshop.requested}) == 1
    assert workshop.requested[0][0].resolve.step(StepName("marco-bm25")).learning_rate == 5e-6, (
        "starts from the papers' own value"
    )


def test_an_edge_buys_two_more_values_for_every_row_until_none_is_at_one(workshop):
    """Of `ict` the best is 0.008, two extensions beyond its grid; of all others it is inside from the first."""
    requested = workshop.requested
    three = [5e-4, 1e-3, 2e-3]

    def build(run, targets):
        requested.append((load_plan(run), targets))
        for target in targets:
            artifact = requested[-1][0].find(str(Path(target).parent))
            far = abs(np.log2(rate(artifact.folder, "ict", 1e-3) / 8e-3))
            off = sum(abs(np.log2(rate(artifact.folder, step, 1e-3) / 1e-3)) for step in STEPS)
            pretend(artifact, float(np.exp(-far - off)))

    rows = {row: {"step": tuned.step, "values": three} for row, tuned in grid().rows.items()}
    done = search.tune(NANO, grid(rows=rows, most=9), build)
    assert tuning.at_an_edge(done) == []
    assert tuning.chosen_of(done)["ict"].value == 8e-3
    values = {row: sorted({trial.value for trial in done if trial.row == row}) for row in rows}
    assert values["ict"][:6] == [5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]
    assert {row: len(found) for row, found in values.items()} == dict.fromkeys(rows, 7) | {"none": 3}
    assert tuning.chosen_of(done)["mlm"].value == 1e-3
    once = search.tune(NANO, grid(rows=rows, most=5), build)
    assert [each.row for each in tuning.at_an_edge(once)] == ["ict"], (
        "at the edge of as many as are allowed: the table says so"
    )


STEPS = ("marco-scratch", "marco-bm25", "control", "mlm", "bfs", "wlp", "ict-bfs-wlp", "bow", "costa")


def rate(folder, step, default):
    found = re.search(rf"\+{step}~learning_rate=([0-9.e-]+?)(?:\+|-s0)", folder)
    return float(found[1]) if found else default


def test_trials_keep_their_names_after_the_choice_is_written(tuned, workshop):
    _, done = tuned
    content = yaml.safe_load(NANO.read_text())
    content["scale"]["steps"].setdefault("marco-bm25", {})["learning_rate"] = 1e-3
    content["scale"]["steps"]["ict"]["learning_rate"] = 2e-3
    Path("written.yaml").write_text(yaml.safe_dump(content))
    assert search.tune(Path("written.yaml"), grid(), workshop.build) == done


def test_a_trial_declares_no_table(tuned):
    workshop, _ = tuned
    text = (workshop.folder / "results/tuning/trials.yaml").read_text()
    run = checked(RunConfig, yaml.safe_load(text), "trials")
    assert (run.tables, run.lineages) == ({}, [])
    assert len(workshop.requested) > 1


def test_altered_scores_are_not_read(workshop):
    def spoil(run, targets):
        workshop.build(run, targets)
        Path(targets[0]).with_name("scores.parquet").write_bytes(b"better")

    with pytest.raises(EncoreError, match=r"scores\.parquet has 6 bytes"):
        search.tune(NANO, grid(), spoil)


def test_a_table_names_the_rows_that_are_best_at_an_edge(tuned, workshop, tmp_path):
    """Those whose models the trials made, and no others: another value, or another start, is another model."""
    _, done = tuned
    assert {"ict", "mlm"} < {each.row for each in tuning.at_an_edge(done)}, "of two values each is at an edge"
    content = yaml.safe_load(NANO.read_text()) | {"tables": {"table1": ["none", "ict"]}}
    content["scale"]["steps"].setdefault("marco-bm25", {})["learning_rate"] = 1e-3
    content["scale"]["steps"]["ict"]["learning_rate"] = 2e-3
    told = "Best at the edge of what was tried, so a value beyond it may be better: "
    assert not [note for note in table_plan(load_plan(given=content), "table1")["notes"] if note.startswith(told)]
    own = tmp_path / "own"
    shutil.copytree(ROOT / "config", own / "config")
    for record in (own / "config/tuning").glob("*.csv"):
        record.unlink()
    tuning.write_trials(own / "config/tuning/trials.csv", done)
    os.chdir(own)
    notes = table_plan(load_plan(given=content), "table1")["notes"]
    assert f"{told}marco-bm25 (learning_rate 0.001), ICT (learning_rate 0.002)." in notes
    content["scale"]["steps"]["ict"]["learning_rate"] = 3e-3
    notes = table_plan(load_plan(given=content), "table1")["notes"]
    assert f"{told}marco-bm25 (learning_rate 0.001)." in notes
